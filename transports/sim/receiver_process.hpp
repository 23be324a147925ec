// A receiving process: finds sessions, drives a ddf::receiver for each as the runtime does, and writes to a simulated disk.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "lib/session/receiver.hpp"
#include "transports/sim/content.hpp"
#include "transports/sim/disk.hpp"
#include "transports/sim/network.hpp"

namespace ddf::sim {

/// Everything that is published in a run: where sinks find the bytes that should arrive.
class library {
 public:
  void add(session_id s, std::shared_ptr<const content> c) { by_session_[s] = std::move(c); }
  std::shared_ptr<const content> find(session_id s) const {
    const auto it = by_session_.find(s);
    return it == by_session_.end() ? nullptr : it->second;
  }

 private:
  std::map<session_id, std::shared_ptr<const content>> by_session_;
};

class receiver_process final : public process {
 public:
  struct options {
    receiver_options engine;             // id, host and buffer are filled in
    node_options node;
    duration open_delay{0}, digest_delay = 20us, commit_delay = 1ms, apply_delay = 2ms, read_deadline = 4s;
    std::optional<endpoint> known_sender;   // asked directly, when no announcement is heard
    duration query_interval = 250ms;
  };
  receiver_process(network& net, const library& l, disk& d, options o);
  ~receiver_process() override;            // as if killed: engines end where they are, the disk keeps what it has
  receiver_process(const receiver_process&) = delete;
  receiver_process& operator=(const receiver_process&) = delete;

  void receive(time_point now, path from, bool to_group, std::span<const std::byte> bytes) override;
  void wake(time_point now) override;
  void stop(error reason);

  network::node_id node() const { return node_; }
  std::size_t sessions() const { return sessions_.size(); }
  const receiver* engine(session_id s) const;
  const receiver* engine() const { return sessions_.empty() ? nullptr : sessions_.begin()->second.engine.get(); }
  const std::optional<error>& outcome(session_id s) const;
  /// Of the session that was heard first.
  const std::optional<error>& outcome() const;
  bool succeeded() const { return outcome() && outcome()->code == errc::ok; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::uint64_t foreign() const { return foreign_; }   // packets of no session that is known here
  std::uint64_t rejoins() const { return rejoins_; }
  void set_on_end(std::function<void(const receiver_process&)> f) { on_end_ = std::move(f); }

 private:
  struct session_entry {
    std::unique_ptr<receiver> engine;
    std::shared_ptr<const content> truth;
    std::map<std::uint32_t, std::string> keys;   // object -> what the disk calls it
    std::optional<error> outcome;
  };
  session_entry* find(std::span<const std::byte> bytes);
  void drain(time_point now, session_entry& s);
  void later(duration d, session_id id, std::function<void(time_point, session_entry&)> what);
  void end(session_entry& s, const error& outcome);
  void update_timer();
  void query(time_point now);

  network& net_;
  const library& library_;
  disk& disk_;
  options options_;
  network::node_id node_;
  prng random_;
  std::map<session_id, session_entry> sessions_;
  std::vector<session_id> order_;
  time_point query_due_;
  std::vector<std::string> notes_;
  std::uint64_t foreign_ = 0, rejoins_ = 0;
  std::function<void(const receiver_process&)> on_end_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);   // for events that outlive the process
};

}  // namespace ddf::sim
