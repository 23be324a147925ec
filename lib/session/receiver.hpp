// The receiver of one session, sans-IO: packets, time and results of I/O in, actions out.
//
// It learns the catalogue, asks its shell for room, joins, places every segment where it belongs, digests each block while
// it is hot, asks for what is missing, and commits an object when every block and the root are proven.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <ddf/options.hpp>
#include "codecs/block_digest.hpp"
#include "lib/model/lane_set.hpp"
#include "lib/model/layout.hpp"
#include "lib/model/prng.hpp"
#include "lib/model/session_plan.hpp"
#include "lib/session/actions.hpp"
#include "lib/wire/messages.hpp"

namespace ddf {

struct receiver_options {
  receiver_id id;
  std::string host;
  std::uint32_t buffer_bytes = 212'992;   // receive buffer granted by the system
  std::uint32_t group_buffer_bytes = 0;   // for DATA to the group, where that has a buffer of its own; 0: it has not
  std::function<bool(const manifest&)> wanted = [](const manifest&) { return true; };
  std::uint64_t bytes_max = ~std::uint64_t(0);   // refuse a session of more bytes, before anything is opened
  std::uint64_t bytes_free = ~std::uint64_t(0);  // room for what is not here yet
  multicast_use multicast = multicast_use::attempt;
  duration sender_silence = std::chrono::seconds(10);
  lane_offer reads;                              // by which this host can read from the sender's memory
  bool reads_required = false;                   // a sender whose memory cannot be read is refused
};

struct opened_object {
  range_set resumable;               // blocks (rows) an earlier transfer left: to be proven before they count
  std::optional<digest> current;     // root of the version that is there already
  std::vector<held_version> held;    // all that may serve as a base, what matters most first; `object` is set by the engine
};

struct patch {   // what came of applying a delta
  digest_table table;   // of the version it makes; the root is its own word
  range_set rows;       // blocks that are written and have these digests
};

class receiver {
 public:
  receiver(receiver_options options, session_id session, path sender, prng& rng, time_point now);
  receiver(const receiver&) = delete;
  receiver& operator=(const receiver&) = delete;

  /// `to_group`: it came to the group's address, not to ours.
  void handle_datagram(time_point now, path from, bool to_group, std::span<const std::byte> datagram);
  /// What take_run() finds in datagrams that arrived as one: the same as each of them alone, for less.
  void handle_run(time_point now, path from, bool to_group, const data_run& run);
  void handle_opened(time_point now, std::uint32_t object, result<opened_object> r);
  void handle_block_digest(time_point now, std::uint64_t block, result<digest> d);
  void handle_store_error(time_point now, std::uint32_t object, error e);   // a write failed
  void handle_committed(time_point now, std::uint32_t object, result<void> r);
  /// After apply_delta. What the delta did not make, and everything after an error, is asked for whole.
  void handle_patched(time_point now, std::uint32_t delta, result<patch> r);
  /// After read_segments. Output of a read: the segments, without the stamps, which the shell has compared.
  void handle_read(time_point now, std::uint64_t id, result<std::span<const std::byte>> r);
  void handle_timeout(time_point now);
  void stop(time_point now, error reason);   // leave; the sender is told

  std::optional<receiver_action> poll_action(time_point now);
  /// The placements that poll_action() would give next, all at once: for a shell that has a packet's time to count. They come
  /// before every other action.
  std::span<const place_segments> placements() const { return std::span(placements_).subspan(placements_next_); }
  void placements_taken() { placements_.clear(), placements_next_ = 0; }
  time_point next_timeout() const;

  bool finished() const { return finished_; }
  bool joined() const { return token_.value != 0; }
  bool wanted_nothing() const { return wanted_nothing_; }
  bool withdrawn() const { return withdrawn_; }   // the sender ended the session before it began: nothing was to be sent
  const session_id& session() const { return session_; }
  const path& sender_path() const { return sender_; }
  const catalogue& objects() const { return objects_; }   // after the plan has come: the catalogue's, then the deltas
  const session_plan& plan() const { return plan_; }
  bool is_delta(std::uint32_t object) const { return object >= catalogue_objects_; }
  const delta_stream& delta(std::uint32_t object) const { return plan_.deltas[object - catalogue_objects_]; }   // of one that is_delta()
  const layout& segments() const { return layout_; }
  bool deaf() const { return deaf_; }
  session_state sender_state() const { return sender_state_; }

  /// Rows of the digest table whose blocks are whole on disk, for a later resume.
  range_set complete_blocks(std::uint32_t object) const;
  /// Digests of an object that is about to be committed or was.
  digest_table digests(std::uint32_t object) const;
  std::vector<object_report> reports() const;

  struct counters {
    std::uint64_t segments = 0, bytes = 0, duplicates = 0, repaired_segments = 0, repaired_bytes = 0, unicast_bytes = 0;
    std::uint64_t nacks = 0, nack_ranges = 0, suppressed = 0, bad_blocks = 0, resumed_bytes = 0, bytes_verified = 0, bytes_wanted = 0;
    std::uint64_t read_bytes = 0;   // of segments that were granted, those that had come by UDP meanwhile too
    std::uint64_t patched_bytes = 0, deltas_failed = 0;   // of objects that a delta made
    std::map<std::string, std::uint64_t> dropped;
  };
  const counters& count() const { return counters_; }
  struct times {
    time_point first_heard{}, joined = never, first_data = never, last_data = never, whole = never, finished = never;
  };
  const times& when() const { return times_; }

 private:
  enum class block_state : std::uint8_t { pending, checking, digested, verified };
  struct object_state {
    bool wanted = false, opened = false, hold = false, failed = false, table_known = false, committing = false, done = false;
    bool current = false;                       // was there already
    bool prepared = false;                      // complete and proven, waits for COMMIT
    bool patching = false, patched = false;     // a delta will make it; … has made it, or part of it
    std::vector<held_version> held;
    std::uint64_t verified = 0;                 // blocks
    std::optional<digest> current_root;
    range_set resumable;
    std::vector<std::byte> table;               // as received
    digest root;
    error problem;
    time_point started = never, ended = never;
  };

  static constexpr duration keepalive = std::chrono::milliseconds(500);   // a receiver is heard at least so often

  void on(time_point now, path from, bool to_group, const announce& m, std::size_t datagram_bytes);
  void on(time_point now, const catalogue_chunk& m);
  void on(time_point now, path from, const welcome& m);
  void on(time_point now, const repair_notice& m);
  void on(time_point now, const farewell& m);
  void on(time_point now, const close_session& m);
  void on(time_point now, const commit_group& m);
  void on(time_point now, const grant& m);
  void on_segments(time_point now, bool to_group, const data_run& run);
  void drop(const char* reason, std::uint64_t packets = 1) { counters_.dropped[reason] += packets; }
  bool is_sender(const endpoint& e) const;

  struct description {   // the catalogue or the plan, as far as it is here
    bool plan = false, taken = false;
    std::uint32_t bytes = 0;                    // 0: not announced
    digest proof;
    std::vector<std::byte> content;
    range_set chunks;
    time_point due = never;
    std::uint64_t chunk_count() const { return (bytes + catalogue_chunk_bytes - 1) / catalogue_chunk_bytes; }
  };
  void announced(time_point now, description& d, std::uint32_t bytes, const digest& proof, std::span<const std::byte> inside);
  void ask_for_chunks(time_point now, description& d);
  void take_description(time_point now, description& d, std::span<const std::byte> bytes);
  void take_catalogue(time_point now, std::span<const std::byte> bytes);
  void take_plan(time_point now, std::span<const std::byte> bytes);
  void choose_ways(time_point now);
  void no_room(time_point now, std::uint64_t needed);
  void become_current(time_point now, std::uint32_t object);
  void need_whole(time_point now, std::uint32_t object);
  void ready_if_opened(time_point now);
  void take_layout(time_point now);
  void segments_arrived(time_point now, const data_run& run, const segment_extent& first);
  void block_whole(time_point now, std::uint64_t block);
  void digest_whole(time_point now, std::uint64_t block);
  void block_digested(time_point now, std::uint64_t block, const digest& d);
  void block_bad(time_point now, std::uint64_t block);
  void table_arrived(time_point now, std::uint32_t object);
  void check_block(time_point now, std::uint64_t block);
  void check_object(time_point now, std::uint32_t object);
  void fail_object(time_point now, std::uint32_t object, error e);
  void release(std::uint32_t object);   // nothing of it is asked for any more
  void check_all_done(time_point now);
  void finish(time_point now, error outcome);

  void raise_horizon(time_point now, std::uint64_t horizon);
  void arm_nack(time_point now);
  void give_back(std::uint64_t id, const std::string& why_not = {});
  std::uint64_t forget_request(const range& r);   // of what is not being read; output: how many segments were still missing
  void send_nacks(time_point now);
  bool askable(std::uint64_t segment) const;
  void expire_requests(time_point now);
  void judge_answers(std::uint64_t arrived, std::uint64_t missing);
  void repairs_drained(time_point now, std::uint64_t answer);
  void measure_response(time_point now, const range& arrived);
  bool at_tail() const { return have_layout_ && horizon_ >= layout_.segments(); }   // everything was sent once
  void become_deaf(time_point now, std::string why);
  bool datagram_known() const;
  void send_join(time_point now);
  void send_status(time_point now, bool at_once = false);
  void send_done(time_point now);
  void send_prepared(time_point now);
  void send(const message& m, std::size_t pad_to = 0);
  duration rto() const;
  std::uint64_t ask_limit() const;

  receiver_options options_;
  session_id session_;
  path sender_;
  prng& rng_;
  counters counters_;
  times times_;

  // The session as the sender describes it.
  catalogue objects_;
  std::size_t catalogue_objects_ = 0;
  session_plan plan_;
  bool have_catalogue_ = false, have_layout_ = false, all_opened_ = false, wanted_nothing_ = false, withdrawn_ = false;
  description catalogue_, planned_;
  bool sender_plans_ = false, group_commit_ = false, commit_heard_ = false;
  std::uint32_t segment_bytes_ = 0;
  session_state sender_state_ = session_state::gathering;
  bool sender_multicasts_ = true;
  layout layout_;
  std::uint32_t group_size_ = 1;
  duration grtt_ = std::chrono::milliseconds(1), rtt_{0};

  // Joining.
  join_token token_{};
  bool in_rate_loop_ = false, deaf_ = false;
  std::vector<endpoint> other_addresses_;   // of the sender, on its other interfaces; at most 31
  endpoint counted_from_;                   // of them the one whose packets make up received_: a second rail brings copies
  time_point counted_at_{};
  std::uint32_t rails_ = 0, rails_joined_ = 0;
  std::uint16_t datagram_bytes_ = 0, datagram_joined_ = 0;
  bool whole_packet_heard_ = false, ready_joined_ = false, deaf_joined_ = false;
  std::uint32_t announces_heard_ = 0, echo_us_ = 0;
  time_point echo_at_{}, join_due_ = never, layout_ask_due_{};
  duration join_interval_ = std::chrono::milliseconds(5);

  // What is here.
  std::vector<object_state> states_;
  range_set have_;                          // segments that are placed, or are not wanted
  std::vector<std::uint32_t> remaining_;    // segments missing, per block
  std::vector<block_state> blocks_;
  std::vector<digest> computed_;
  std::uint64_t wanted_objects_ = 0, ended_objects_ = 0, prepared_objects_ = 0;
  block_digester digester_;                 // of what arrives in order

  // The group's sequence and what is missing of it.
  bool sequence_known_ = false;
  std::uint64_t sequence_ = 0, sequence_at_first_ = 0, received_ = 0, status_sequence_ = 0;
  std::uint64_t horizon_ = 0, settled_ = 0; // segments below have been sent; … and long enough ago not to be merely reordered
  std::uint64_t settling_ = 0;
  time_point settle_due_ = never;
  range_set requested_;
  struct request {
    time_point sent, expires;
    range segments;
    bool first_time;                        // no part of it was asked for before
  };
  std::deque<request> requests_;             // oldest in front
  std::map<std::uint64_t, std::vector<range>> reads_;   // open grants
  range_set reading_;                        // segments in them
  std::deque<std::uint64_t> released_;       // lately: a GRANT that is repeated is answered again
  std::uint64_t unicast_sequence_ = 0;       // DATA packets sent to us alone, as far as we heard
  time_point nack_due_ = never;
  duration response_{0};                    // from NACK to its answer, smoothed
  time_point unanswered_since_ = never;     // asked since then, and nothing new came
  time_point asked_to_join_ = never;
  time_point answered_at_{};                // when the last of what we asked for came
  std::uint64_t asked_up_to_ = 0;           // segments from here on were never asked for
  static constexpr std::uint64_t ask_window_most = 2048;
  std::uint64_t ask_window_ = ask_window_most, answered_ = 0, unanswered_ = 0;   // segments
  std::uint32_t retries_ = 0;
  std::uint64_t progress_mark_ = 0;

  // Timers.
  time_point heard_at_{}, group_heard_at_ = never, data_at_ = never, status_due_ = never, silence_check_{};
  bool status_pending_ = false, confirm_pending_ = false;
  duration tail_interval_ = std::chrono::milliseconds(2);
  time_point unicast_first_ = never;
  std::uint32_t rejoins_ = 0;
  time_point asked_sender_at_{};
  time_point done_due_ = never, prepared_due_ = never;
  duration done_interval_{};
  std::uint32_t done_tries_ = 0;
  bool leaving_ = false, all_done_ = false, finished_ = false;
  bool sender_closed_ = false;              // while the last objects are made visible
  error outcome_;

  std::vector<place_segments> placements_;
  std::size_t placements_next_ = 0;
  std::vector<receiver_action> out_;        // drained by the shell after each batch; keeps its memory
  std::size_t out_next_ = 0;
};

}  // namespace ddf
