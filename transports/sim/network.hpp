// A network of hosts in which everything follows from one seed.
//
// Every host has one cable a rail, to a switch of that rail; a switch may stand before a subtree of hosts and lose for all
// of them at once. A datagram passes its sender's cable, the switch of either side, the receiver's cable, and the
// receiver's socket buffer, which is emptied as fast as the host's process works.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "lib/model/endpoint.hpp"
#include "lib/model/prng.hpp"
#include "lib/session/actions.hpp"
#include "transports/sim/event_queue.hpp"
#include "transports/sim/link.hpp"
#include "transports/sim/pcap_writer.hpp"

namespace ddf::sim {

struct datagram {
  explicit datagram(std::vector<std::byte> b);
  std::vector<std::byte> bytes;
  std::uint64_t hash;
};
using datagram_ptr = std::shared_ptr<const datagram>;

class process {   // what runs on a host
 public:
  virtual ~process() = default;
  /// `to_group`: it came to the group's address.
  virtual void receive(time_point now, path from, bool to_group, std::span<const std::byte> bytes) = 0;
  virtual void wake(time_point now) = 0;   // the time given to wake_at() has come
};

struct node_options {
  std::uint32_t host = 0;                  // nodes of one host share its address, each with its own port
  std::uint16_t port = 0;                  // 0: one of its own
  std::uint32_t rails = 1;                 // bit i: has a cable to rail i
  std::uint32_t subtree = 0;               // the switch it hangs on; 0: the first, which loses nothing
  bool in_group = true;
  link_options up, down;
  std::uint32_t buffer_bytes = 4 << 20;    // receive buffer; a datagram is charged as Linux charges it
  duration per_datagram = 500ns;           // time to handle one
  duration timer_slack = 20us;             // timers fire up to so much late
};

struct blocked {   // what does not reach or leave a host; a one-way partition when only one side is set
  bool multicast_in = false, unicast_in = false, out = false;
  bool reads = false;     // it reads from nobody's memory, and nobody from its
  bool data_in = false;   // only bulk and repair DATA, as a filter that knows sizes would
};

class network {
 public:
  explicit network(std::uint64_t seed) : random_(seed) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  using node_id = std::uint32_t;
  node_id attach(process& p, const node_options& o);
  void detach(node_id n);                  // its process is gone: what is on its way to it is lost
  endpoint address(node_id n, std::uint32_t rail = 0) const;
  endpoint group() const;

  enum class sent : std::uint8_t { yes, refused };
  /// Sends from a node to the group (on the rails named, of those it has) or to a peer. `refused`: as EPERM or ENOBUFS would.
  sent send(node_id from, const destination& to, datagram_ptr d);
  /// One-sided reads: what a node lays open, and another node's look at it. The answer comes when the bytes would have crossed
  /// both cables, or `deadline` later when they cannot: the other side is gone, does not lay it open any more, or is cut off.
  using memory = std::function<std::optional<std::vector<std::byte>>(std::uint64_t address, std::uint64_t key, std::uint64_t bytes)>;
  void lay_open(node_id n, memory m) { nodes_[n].open = std::move(m); }
  void read(node_id from, node_id to, std::uint64_t address, std::uint64_t key, std::uint64_t bytes, duration deadline, std::function<void(std::optional<std::vector<std::byte>>)> done);
  /// How long what the node has sent still waits for its wire.
  duration backlog(node_id n) const;
  void wake_at(node_id n, time_point when);
  void at(time_point when, std::function<void()> call);

  time_point now() const { return now_; }
  prng& random() { return random_; }

  // What can be done to a network while it runs.
  link& up(node_id n, std::uint32_t rail = 0) { return nodes_[n].up[rail]; }
  link& down(node_id n, std::uint32_t rail = 0) { return nodes_[n].down[rail]; }
  blocked& block(node_id n) { return nodes_[n].block; }
  void refuse_sends(node_id n, bool on) { nodes_[n].refuses = on; }
  void pause(node_id n, duration d);       // its process is stopped: nothing is handled, no timer fires
  void forget_member(node_id n) { nodes_[n].member = false; }   // the switch forgot that it joined
  void rejoin(node_id n);
  bool rejoin_works = true;                // whether a new join reaches the switch
  void set_subtree_loss(std::uint32_t subtree, double loss) { subtree_loss_[subtree] = loss; }
  void set_drop(std::function<bool(node_id to, bool to_group, std::span<const std::byte>)> f) { drop_ = std::move(f); }
  void heal();                             // every cable, switch and filter works from now on

  /// Runs until `done`, or until `limit` has passed from now. Output: whether `done`. Throws std::runtime_error when
  /// a process keeps the time from passing.
  bool run_until(const std::function<bool()>& done, duration limit);
  void run_for(duration d) { run_until([] { return false; }, d); }

  void write_pcap(const std::string& file) { pcap_ = std::make_unique<pcap_writer>(file); }

  struct counters {
    std::uint64_t sent = 0, delivered = 0, ip_bytes_sent = 0;
    std::uint64_t lost_random = 0, lost_queue = 0, lost_mtu = 0, lost_subtree = 0, lost_buffer = 0, lost_blocked = 0, lost_elsewhere = 0;
  };
  const counters& count() const { return counters_; }
  std::uint64_t ip_bytes_sent(node_id n) const { return nodes_[n].ip_bytes_sent; }   // onto its wires, headers included
  std::uint64_t datagrams_received(node_id n) const { return nodes_[n].received; }
  std::uint64_t overflows(node_id n) const { return nodes_[n].overflows; }

  /// A hash over everything that was delivered and noted, in order: equal for equal seeds.
  std::uint64_t trace() const { return trace_; }
  void note_in_trace(std::uint64_t value);

 private:
  struct packet {   // on its way to one node
    datagram_ptr what;
    path from;
    bool to_group = false;
    std::uint32_t incarnation = 0;
  };
  struct node {
    process* who = nullptr;
    memory open;
    node_options options;
    std::vector<link> up, down;
    blocked block;
    bool member = true, refuses = false;
    std::uint32_t incarnation = 0;
    time_point wakes_at = never;          // of the earliest timer event that is queued
    time_point wanted = never;            // what the process asked for
    std::uint32_t buffered_bytes = 0;
    std::vector<std::uint32_t> queue;     // slots of packets in the socket buffer; first `queue_head` are gone
    std::size_t queue_head = 0;
    time_point busy_until{}, paused_until{};
    std::uint64_t ip_bytes_sent = 0, received = 0, overflows = 0;
  };

  void transmit(node_id from, std::uint32_t rail, node_id to, bool to_group, time_point when, const datagram_ptr& d);
  void schedule_arrival(node_id to, time_point when, packet p);
  void arrive(node_id to, std::uint32_t slot);
  void process_next(node_id to);
  void handle(node_id to, std::uint32_t slot);
  void fire_timer(node_id n);
  std::uint32_t keep(packet p);

  prng random_;
  time_point now_{};
  event_queue events_;
  std::vector<node> nodes_;
  std::map<endpoint, node_id> by_address_;
  std::vector<packet> packets_;
  std::vector<std::uint32_t> free_packets_, free_calls_;
  std::vector<std::function<void()>> calls_;
  std::map<std::uint32_t, double> subtree_loss_;
  std::function<bool(node_id, bool, std::span<const std::byte>)> drop_;
  std::unique_ptr<pcap_writer> pcap_;
  counters counters_;
  std::uint64_t trace_ = 0;
  std::uint16_t next_port_ = 40000;
};

}  // namespace ddf::sim
