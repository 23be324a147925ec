// A publishing process: drives a ddf::sender as the runtime does, with the simulated network for sockets.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "lib/plan/delta_plan.hpp"
#include "lib/session/sender.hpp"
#include "transports/sim/content.hpp"
#include "transports/sim/network.hpp"

namespace ddf::sim {

class sender_process final : public process {
 public:
  struct options {
    sender_options engine;            // session, objects and rails are filled in when they are not given
    node_options node;
    duration digest_delay = 2ms;      // to make a digest table that is asked for before its time
    duration plan_delay = 3ms;        // to make the deltas
    duration grant_delay = 50us;      // to lay segments out for a read
    std::function<std::optional<error>(const grant_segments&)> grant_fails;   // as the provider would
    rates plan_rates;
    duration send_buffer = 200us;     // of packets that may wait for the wire before the process is held up
  };
  sender_process(network& net, std::shared_ptr<const content> what, options o);
  ~sender_process() override { *alive_ = false, net_.detach(node_); }   // as if killed: nothing is said
  sender_process(const sender_process&) = delete;
  sender_process& operator=(const sender_process&) = delete;

  void receive(time_point now, path from, bool to_group, std::span<const std::byte> bytes) override;
  void wake(time_point now) override;
  void stop(error reason);

  const sender& engine() const { return *engine_; }
  network::node_id node() const { return node_; }
  const content& published() const { return *content_; }
  const std::optional<error>& outcome() const { return outcome_; }
  bool succeeded() const { return outcome_ && outcome_->code == errc::ok; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Per object, what was decided.
  const std::vector<object_plan>& plans() const { return plans_; }
  std::uint64_t refused_sends() const { return refused_sends_; }
  /// The memory of every grant is taken away, as when the provider fails; those from now on are served again.
  void lose_grants() { granted_.clear(); }
  std::size_t open_grants() const { return granted_.size(); }
  std::uint64_t data_datagrams() const { return data_datagrams_; }

 private:
  void drain(time_point now);
  void plan();
  void lay_out(time_point now, const grant_segments& g);
  void transmit(time_point now, const send_segments& batch);
  std::span<const std::byte> payload(const segment_extent& e) const;

  network& net_;
  std::shared_ptr<const content> content_;
  options options_;
  network::node_id node_;
  prng random_;
  std::unique_ptr<sender> engine_;
  std::vector<object_plan> plans_;
  std::vector<range_set> read_;        // per object: segments whose bytes have been read, and digested on the way
  std::vector<bool> table_made_;
  std::map<std::uint64_t, std::vector<std::byte>> granted_;   // by id, which is its address
  time_point held_up_until_ = never;
  std::optional<error> outcome_;
  std::vector<std::string> notes_;
  std::uint64_t refused_sends_ = 0, data_datagrams_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);   // for events that outlive the process
};

}  // namespace ddf::sim
