// One publisher and many receivers on one network: what most tests need.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>
#include "transports/sim/network.hpp"
#include "transports/sim/receiver_process.hpp"
#include "transports/sim/sender_process.hpp"

namespace ddf::sim {

struct scenario_options {
  std::uint64_t seed = 1;
  std::uint32_t receivers = 1;
  std::vector<object_spec> objects = {{}};
  node_options network;                        // of every host
  sender_process::options sender;              // `node` is taken from `network`
  receiver_process::options receiver;          // `node` is taken from `network`
  std::function<void(std::uint32_t, receiver_process::options&)> each;   // changes the options of the nth receiver
  std::uint32_t subtrees = 0;                  // receivers hang on so many switches in turn; 0: on the sender's
  bool start_receivers = true;
};

class scenario {
 public:
  explicit scenario(scenario_options o);

  network& net() { return net_; }
  sender_process& sender() { return *sender_; }
  bool has_sender() const { return sender_ != nullptr; }
  receiver_process& receiver(std::uint32_t n) { return *receivers_.at(n); }
  bool runs(std::uint32_t n) const { return receivers_.at(n) != nullptr; }
  disk& storage(std::uint32_t n) { return *disks_.at(n); }
  std::uint32_t receivers() const { return static_cast<std::uint32_t>(receivers_.size()); }

  void start_receiver(std::uint32_t n);                   // late, or again after a crash
  void kill_receiver(std::uint32_t n) { receivers_[n].reset(); }
  void start_sender();                                    // again: a new session of the same objects
  void start_sender(std::shared_ptr<const content> what); // of others
  void set_group_commit(bool on) { options_.sender.engine.group_commit = on; }   // of senders started from now on
  void set_expect(std::uint32_t receivers) { options_.sender.engine.expect = receivers, options_.sender.engine.wait = std::chrono::seconds(60); }   // likewise
  void kill_sender() { sender_.reset(); }
  /// A publisher beside the first, on its own host.
  sender_process& add_sender(const std::vector<object_spec>& objects, sender_process::options o);
  std::shared_ptr<const content> published() const { return content_; }
  std::shared_ptr<const content> make(const std::vector<object_spec>& objects) { return std::make_shared<content>(objects, net_.random().next()); }

  /// Whether the nth receiver has every object of the scenario visible.
  bool has_all(std::uint32_t n) const;
  std::uint32_t complete() const;
  bool all_complete() const { return complete() == receivers(); }
  bool all_ended() const;   // the sender and every receiver have said how it went
  bool run_until_complete(duration limit) { return net_.run_until([this] { return all_complete(); }, limit); }
  bool run_until_ended(duration limit) { return net_.run_until([this] { return all_ended(); }, limit); }

  /// What the sender says about the nth receiver (the one that runs now, or ran last).
  receiver_report report(std::uint32_t n) const;

  // Sums and figures.
  std::uint64_t nacks_sent() const;
  double egress_ratio() const;             // bytes the sender put on its wires, headers included, over the objects' bytes
  std::string summary() const;             // one line for a failing test

 private:
  scenario_options options_;
  network net_;
  library library_;
  std::shared_ptr<const content> content_;
  std::vector<std::unique_ptr<disk>> disks_;
  std::unique_ptr<sender_process> sender_;
  std::vector<std::unique_ptr<sender_process>> others_;
  std::vector<std::unique_ptr<receiver_process>> receivers_;
  std::vector<endpoint> addresses_;   // of the receivers, also of those that were killed
  std::uint32_t sender_hosts_ = 0;
};

/// No packet is lost, late or reordered; the wire is as fast as 10 Gbit/s.
node_options clean_network();
/// Loss, duplication and reordering drawn from the seed: some runs are mild, some are bad.
node_options rough_network(std::uint64_t seed);

}  // namespace ddf::sim
