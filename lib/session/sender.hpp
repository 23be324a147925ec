// The sender of one session, sans-IO: packets, time and commands in, actions out.
//
// gathering: announces, admits receivers, has its shell plan.  streaming: what the group needs once to it, repairs between.
// flushing: all was sent, what is missing is asked for.  lingering: everyone is served, late receivers still may come.
// After finish an engine only answers DONE with FAREWELL.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include <ddf/options.hpp>
#include "lib/model/lane_set.hpp"
#include "lib/model/layout.hpp"
#include "lib/model/prng.hpp"
#include "lib/model/session_plan.hpp"
#include "lib/session/actions.hpp"
#include "lib/session/answer_log.hpp"
#include "lib/session/repair_queue.hpp"
#include "lib/session/window_control.hpp"
#include "lib/wire/messages.hpp"

namespace ddf {

struct sender_rail {
  std::uint32_t datagram_bytes = 1472;   // largest UDP payload that leaves whole
  std::uint32_t header_bytes = 28;       // IP and UDP headers in front of each
  std::string name;
};

struct sender_options {
  session_id session;
  catalogue objects;
  std::vector<sender_rail> rails;            // at least one, at most 32
  std::vector<bool> tables_known;            // per object: the digest table exists before its data is read
  bool plans = false;                        // the shell answers plan_session
  bool group_commit = false;                 // receivers switch together, when all, or `quorum` of them, are prepared
  multicast_use multicast = multicast_use::attempt;
  std::uint32_t batch_segments = 44;         // packets handed to the shell at once
  std::uint64_t rate_bytes_per_s = 0;        // 0: as fast as the group confirms
  std::uint32_t window_packets_max = 1 << 14;
  std::uint32_t window_bytes_max = 8 << 20;  // receivers that share cores take turns of milliseconds; more only grows queues
  std::uint32_t expect = 0;
  duration wait = std::chrono::seconds(2);
  duration deadline{0};                      // 0: none
  std::uint32_t quorum = 0;                  // 0: all
  duration linger{0};
  bool serve = false;
  std::function<std::uint64_t()> make_token;   // unpredictable, not zero; empty: from the prng, for simulations
  std::uint32_t receivers_max = 4096;
  std::uint32_t rate_loop_max = 32;          // receivers that confirm; the others only ask
  lane_offer reads;                          // by which receivers can read from this host's memory; none: all is sent by UDP
  bool reads_required = false;               // who can not is refused
  std::uint32_t grant_bytes = 1 << 20;       // of segments in one grant
  std::uint32_t grants_max = 32, grants_each = 4;   // open at one time, in all and to one receiver
  std::uint32_t read_bytes_least = 16 << 10; // less is sent by UDP: a grant and a read are two round trips
  std::uint64_t read_after = 1 << 20;        // bytes that a receiver is sent alone before its lane is tried …
  std::uint64_t read_after_tcp = 64 << 20;   // … and by TCP, which saves little, and for which both sides load a large library
  duration grant_life = std::chrono::seconds(10);      // one that is not released for so long is taken back
  duration silence = std::chrono::seconds(5);          // a receiver unheard for so long is lost
  std::uint64_t sequence_first = 0;                    // tests start near the wrap of its low 32 bits
  duration no_progress = std::chrono::seconds(60);     // one that gains nothing for so long after the first pass is given up
  duration stall = std::chrono::milliseconds(200);     // one that holds the window alone for so long leaves the rate loop
};

class sender {
 public:
  sender(sender_options options, prng& rng, time_point now);
  sender(const sender&) = delete;
  sender& operator=(const sender&) = delete;

  void handle_datagram(time_point now, path from, std::span<const std::byte> datagram);
  void handle_timeout(time_point now);
  void handle_digests_ready(time_point now, std::uint32_t object);
  /// The answer to plan_session: what the session sends beside whole objects. Deltas become objects of the session, numbered
  /// after the catalogue's, their digest tables known. Every object with a root in the plan has its table known from now on.
  void handle_plan(time_point now, session_plan plan);
  /// The answer to grant_segments: where the segments lie, or why the lane cannot serve them.
  struct granted_memory {
    std::vector<std::byte> fabric;
    std::uint64_t address = 0, key = 0;
  };
  void handle_granted(time_point now, std::uint64_t id, result<granted_memory> r);
  void handle_queue_full(time_point now);             // ENOBUFS: the local queue took no more
  void stop(time_point now, error reason);            // cancelled, or the source changed: receivers are told

  std::optional<sender_action> poll_action(time_point now);
  time_point next_timeout() const;

  // What the shell reports; cheap.
  session_id id() const { return options_.session; }
  bool finished() const { return finished_; }
  session_state state() const { return state_; }
  const layout& segments() const { return layout_; }
  std::uint64_t bulk_segment() const { return bulk_; }
  std::uint32_t active_rails() const { return active_rails_; }
  std::uint32_t served() const { return joined_ - terminal_; }   // receivers that are not through
  std::uint32_t receivers_joined() const { return joined_; }
  std::uint32_t receivers_complete() const { return complete_; }
  std::vector<receiver_report> receivers() const;
  error outcome() const;   // what it comes to with the receivers as they are now
  const std::vector<manifest>& objects() const { return objects_; }   // the catalogue's, then the deltas
  const session_plan& plan() const { return plan_; }

  struct demand {   // what the receivers that are here hold of one object
    struct base {
      version_id version;
      digest root;
      std::uint32_t receivers = 0;   // whose newest it is
      bool current = false;          // as held_version says
    };
    std::vector<base> bases;         // newest first
    std::uint32_t with_nothing = 0;
  };
  /// Whether blocks of an object itself, not of a delta, go to the group unasked.
  bool first_pass_has(std::uint32_t object) const { return layout_.segments() != 0 && first_pass_.intersects(layout_.object(object).first_segment, layout_.object(object).table_segment); }
  /// Of several versions that a receiver holds the newest counts, of those with a `usable` root when it has one.
  demand demand_for(std::uint32_t object, const std::function<bool(const digest& root)>& usable = {}) const;
  std::vector<digest> held_roots(std::uint32_t object) const;   // by anyone, each once
  /// What each receiver has of an object by its own word: what it held when it joined, or the session's version once it said so.
  struct holder {
    std::string receiver;
    std::optional<held_version> holds;
  };
  std::vector<holder> holders(std::uint32_t object) const;

  struct counters {
    std::uint64_t bulk_segments = 0, data_segments = 0, group_packets = 0, multicast_repairs = 0, unicast_repairs = 0;   // packets; data_segments: without digest tables
    std::uint64_t multicast_repair_bytes = 0, unicast_repair_bytes = 0, bulk_bytes = 0;              // payload and ddf header
    std::uint64_t control_packets = 0, control_bytes = 0, nacks = 0, nack_ranges = 0, repair_notices = 0, statuses = 0;
    std::uint64_t grants = 0, grants_failed = 0, read_bytes = 0;   // read_bytes: of segments that receivers have read
    std::map<std::string, std::uint64_t> dropped;   // packets that were not used, by reason
  };
  const counters& count() const { return counters_; }
  struct times {
    time_point opened{}, started = never, flushed = never, ended = never;
  };
  const times& when() const { return times_; }
  duration group_round_trip() const { return grtt_; }
  std::uint64_t window() const { return window_.packets(); }

 private:
  enum class member_state : std::uint8_t { active, complete, failed, lost, refused, incomplete };
  struct member {
    path where;
    receiver_id id;
    join_token token;
    std::string host;
    member_state state = member_state::active;
    std::string reason;
    bool ready = false, asks_only = false, deaf = false;
    bool prepared = false;                                  // has everything, and waits for COMMIT
    bool proven = false;                                    // used its token: it receives at the address it claims
    bool may_return = false;                                // it was interrupted: whoever did that may start it again
    refusal refused = refusal::none;
    bool in_loop = false, left_loop = false;
    std::uint32_t rails = 0, buffer_bytes = 0;
    std::uint16_t datagram_bytes = 0;
    std::vector<held_version> held;                         // by its word, when it joined
    time_point last_heard{}, last_gain{}, last_progress{}, joined{}, called{};
    std::uint64_t segments = 0, unicast_heard = 0;          // that it holds, and DATA packets sent to it alone that arrived, by its word
    duration rtt{0};
    std::uint64_t sequence = 0, received = 0;               // as last confirmed
    std::uint64_t epoch_sequence = 0, epoch_received = 0;   // at the start of the window being measured
    double loss = 0;
    duration alone{0};                                      // how long it alone held the window, lately
    range_set direct;                                       // to be sent to it alone
    lane_offer reads;                                       // by its word
    repair_lane lane = repair_lane::udp;                    // by which it is served alone
    bool lane_proven = false;                               // it has read by it, and in time
    double read_pace = 0;                                   // seconds a byte, smoothed; 0: unknown
    lane_set lanes_failed;
    time_point trial_due{};                                 // of the next small read
    time_point lanes_again = never;                         // when those that failed are tried again
    std::uint32_t lane_failures = 0;
    range_set granted;                                      // segments in its open grants
    std::uint32_t grants = 0;                               // open
    answer_log answers;                                     // unicast repairs that may still be on their way
    std::uint64_t unicast_sequence = 0;                     // DATA packets sent to it alone
    std::deque<std::pair<std::uint64_t, time_point>> unanswered;   // unicast_sequence after a repair, when it left; lately
    duration repair_round{0};                               // from a repair to a NACK that knows of it, the least lately; 0: unknown
    std::uint64_t budget = 0;                               // bytes of repair it may still draw
    std::uint64_t nacks = 0, repaired_bytes = 0;
  };

  static constexpr duration grtt_least = std::chrono::microseconds(100);   // below this, timers measure the scheduler
  static constexpr duration grtt_most = std::chrono::seconds(1);
  static constexpr std::uint32_t catalogue_burst = 64;   // chunks at once, and that one NACK may draw: a default socket buffer holds 90 packets

  void on(time_point now, path from, const join& m);
  void on(time_point now, path from, const query& m);
  void on(time_point now, path from, const status& m);
  void on(time_point now, path from, const nack& m);
  void on(time_point now, path from, const done& m);
  void on(time_point now, path from, const release& m);
  void drop(const char* reason) { ++counters_.dropped[reason]; }

  member* by_token(path from, join_token token);
  void answer_description(time_point now, member& m, const nack& n);
  static void charge(member& m, std::uint64_t packets, std::uint64_t packet_bytes);
  void note_unicast(time_point now, member& m, std::uint32_t packets);
  static void measure_repair_round(time_point now, member& m);
  void confirm_progress(time_point now, member& m, std::uint64_t sequence, std::uint64_t received);
  void measure_round_trip(time_point now, std::uint64_t sequence);
  void measure_window(time_point now);
  void welcome_member(const member& m, refusal refused = refusal::none);
  void update_rate_loop(time_point now);
  void check_members(time_point now);
  void end_member(member& m, member_state state, std::string reason);
  void refuse_deaf(member& m);
  void leave_loop(member& m, std::string why);

  void start(time_point now);
  void choose_first_pass();
  void choose_rails_and_segment();
  std::uint64_t window_limit() const;                    // the sequence up to which the group may be sent
  std::uint64_t least_confirmed() const;
  bool table_ready(std::uint32_t object) const;
  bool servable(std::uint64_t segment, time_point now);
  void settle(time_point now);                           // state changes that follow from counters
  void finish(time_point now, error outcome);
  void decide_commit(time_point now);
  bool superseded(const member& m) const;

  announce make_announce(time_point now) const;
  void announce_to_group(time_point now);
  void announce_to(time_point now, path to, bool with_catalogue);
  struct description {   // the catalogue or the plan: how it reaches those that an announcement does not tell
    std::vector<std::byte> bytes;
    digest proof;
    bool plan = false, sent = false;
    range_set wanted;               // chunks that are to be sent to the group
    time_point due = never;
    std::uint64_t chunks() const { return (bytes.size() + catalogue_chunk_bytes - 1) / catalogue_chunk_bytes; }
  };
  void send_chunks(destination to, const description& d, std::uint32_t first_chunk, std::uint32_t last_chunk);
  void send_wanted_chunks(time_point now, description& d);
  void offer(time_point now, description& d);            // to the group, once, when it is too large for an announcement
  void send(destination to, const message& m, std::size_t pad_to = 0);
  destination group() const { return destination{true, active_rails_, {}}; }
  bool use_group() const { return options_.multicast != multicast_use::off; }

  bool next_bulk(time_point now, send_segments& out);
  enum class repairs_for : std::uint8_t { all, loop };    // loop: receivers outside the rate loop have to wait
  bool next_repair(time_point now, send_segments& out, std::uint32_t& whom, repairs_for served);
  bool next_direct(time_point now, send_segments& out, std::uint32_t& whom, repairs_for served);
  bool next_grant(time_point now, grant_segments& out, std::uint32_t& whom, repairs_for served);

  struct open_grant {
    std::uint32_t whom = 0;
    std::vector<range> segments;
    std::uint64_t bytes = 0;
    repair_lane lane = repair_lane::tcp;
    std::uint64_t ahead = 0;               // bytes in grants of that receiver when it was made, with its own
    bool slow = false;                     // overdue: sent by UDP as well
    bool trial = false;                    // of a lane that is not proven: all of it is sent by UDP as well
    std::optional<granted_memory> where;   // nothing: the shell prepares it
    time_point sent{}, expires{};
  };
  void choose_lane(member& m);
  bool has_enough_to_read(const member& m) const;
  bool serves_by_read(const member& m) const { return m.lane_proven && has_enough_to_read(m); }
  void want_direct(member& m, const range& r);           // what is not on its way to it already
  void send_grant(time_point now, std::uint64_t id, open_grant& g);
  void repeat_grants(time_point now, const member& m, const range& asked);
  void close_grant(std::uint64_t id);
  void lane_failed(time_point now, member& m, repair_lane lane, const std::string& why);
  void check_grants(time_point now);
  void account(time_point now, const send_segments& batch, bool repair);
  duration pace(std::uint64_t bytes) const;

  sender_options options_;
  prng& rng_;
  layout layout_;
  std::vector<manifest> objects_;     // the catalogue's, then the deltas
  description catalogue_, planned_;
  session_plan plan_;
  bool planning_ = false, committed_ = false;
  range_set first_pass_;              // segments that are sent to the group once, unasked
  session_state state_ = session_state::gathering;
  bool finished_ = false, closing_ = false, waited_ = false, deadline_passed_ = false;
  times times_;
  std::uint64_t total_bytes_ = 0;

  std::vector<member> members_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_, by_token_;
  std::uint32_t joined_ = 0, complete_ = 0, terminal_ = 0, in_loop_ = 0;
  std::uint32_t all_rails_ = 1, active_rails_ = 1;

  std::uint64_t sequence_ = 0;        // packets sent to the group
  std::uint64_t bulk_ = 0;            // next segment of the first pass
  std::uint64_t segments_ = 0;        // of the session
  window_control window_;
  std::uint64_t confirm_every_ = 64, next_confirm_ = 0, epoch_end_ = 0;
  std::deque<std::pair<std::uint64_t, time_point>> confirm_sent_;   // sequence after a confirm packet, when it left
  duration grtt_ = std::chrono::milliseconds(1);
  bool grtt_measured_ = false;
  duration round_trip_peak_{0};       // the longest of the window that is being measured
  bool window_shut_ = false, paced_ = false;
  time_point blocked_since_ = never;

  repair_queue repairs_;
  time_point repair_due_ = never;
  std::int64_t repair_credit_ = 0;                        // repairs are at most as many packets as the bulk while it lasts
  answer_log group_answers_;
  std::vector<bool> table_known_, table_asked_;
  std::uint32_t next_direct_ = 0;
  std::map<std::uint64_t, open_grant> grants_;
  std::uint64_t last_grant_ = 0;
  std::uint64_t direct_segments_ = 0;                     // waiting in all members' `direct`
  mutable std::optional<std::uint64_t> least_confirmed_;
  std::vector<range> notice_;                             // to be announced as about to be repaired

  std::uint32_t announce_counter_ = 0;
  time_point announce_due_{};
  duration announce_interval_ = std::chrono::milliseconds(2);
  time_point housekeeping_due_{};
  time_point pace_until_{};
  time_point linger_until_ = never;
  std::deque<sender_action> out_;
  counters counters_;
  error outcome_;
};

}  // namespace ddf
