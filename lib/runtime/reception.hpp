// One session being received: a receiver engine bound to sinks and the clock.
#pragma once
#include <asio.hpp>

#include <functional>
#include <map>
#include <memory>
#include <vector>
#include <ddf/subscriber.hpp>
#include "lib/runtime/memory_reader.hpp"
#include "lib/runtime/received_object.hpp"
#include "lib/runtime/timer.hpp"
#include "lib/session/receiver.hpp"
#include "lib/store/delta_apply.hpp"
#include "lib/store/sink.hpp"
#include "transports/udp/udp_socket.hpp"

namespace ddf {

/// What receptions of one subscriber share. Used from the loop's thread, but for `commits`.
struct subscriber_shell {
  asio::io_context& io;
  subscriber_options options;
  asio::thread_pool& commits;   // fsync and rename happen there, one at a time
  memory_versions& memory;      // what is held when there is no tree
  output_tree* tree = nullptr;  // null: objects stay in memory
  std::function<bool(const manifest&)> wanted;
  std::function<void(const std::shared_ptr<const object>&)> deliver;   // from the commit thread
  std::function<void(const send_message&)> send;
  std::function<void()> rejoin;
  memory_reader& reader;
  std::function<std::string(std::uint32_t rail)> local_address;   // of an interface

  void log(log_level level, const std::string& text) const {
    if (options.log) options.log(level, text);
  }
};

class reception : public std::enable_shared_from_this<reception> {
 public:
  reception(subscriber_shell& shell, session_id session, path sender, receiver_options options);
  ~reception();

  void begin(std::function<void(reception&)> on_end);
  void handle_datagram(time_point t, path from, bool to_group, std::span<const std::byte> bytes) { engine_.handle_datagram(t, from, to_group, bytes); }
  void handle_run(time_point t, path from, bool to_group, const data_run& run) { engine_.handle_run(t, from, to_group, run); }
  /// Which of the sender's addresses announces on a rail: what comes there by RDMA says only which session it is of.
  void announced_by(const path& from) { announcers_[from.rail] = from.peer; }
  path sender_on(std::uint32_t rail) const {
    const auto known = announcers_.find(rail);
    return {known != announcers_.end() ? known->second : engine_.sender_path().peer, rail};
  }
  void drain(time_point t);    // after each run of datagrams: perform what the engine asks for
  void flush();                // before the datagrams' memory is used again; drain once more after it
  void arm();                  // when all is drained: set the timer
  void stop(error reason);

  bool ended() const { return ended_; }
  const receiver& engine() const { return engine_; }
  /// Adds this session's figures. After the end.
  void add_to(report& r) const;
  const error& outcome() const { return outcome_; }
  progress snapshot() const;

 private:
  struct slot {
    std::shared_ptr<object_sink> sink;
    std::unique_ptr<delta_applier> applier;   // of a delta
    std::string path;
    bool failed = false;
  };

  void perform(time_point t, receiver_action& a);
  void open(time_point t, std::uint32_t object);
  void place(const place_segments& p);
  void digest_rest(time_point t, digest_block& d);
  void commit(std::uint32_t object);
  std::vector<held_version> held(const manifest& m) const;
  void begin_apply(std::uint32_t delta);
  void read(const read_segments& r);
  std::shared_ptr<const object> present(const manifest& m, const std::string& path) const;
  void checkpoint(time_point t);
  void end(const error& outcome);

  subscriber_shell& shell_;
  prng rng_;
  receiver engine_;
  std::map<std::uint32_t, endpoint> announcers_;   // by rail
  std::vector<slot> slots_;
  lazy_timer timer_;
  std::function<void(reception&)> on_end_;
  bool ended_ = false, begun_ = false;
  error outcome_;
  std::vector<std::string> warnings_;

  // Placements that follow each other, written in one piece.
  std::vector<iovec> gathered_;
  std::uint32_t gathered_object_ = 0, gathered_part_ = 0;
  std::uint64_t gathered_offset_ = 0, gathered_end_ = 0;

  std::vector<std::byte> block_buffer_;
  double apply_seconds_ = 0, verify_seconds_ = 0, commit_seconds_ = 0;
  time_point checkpoint_due_{}, created_{};
  std::uint64_t checkpointed_ = 0;
};

}  // namespace ddf
