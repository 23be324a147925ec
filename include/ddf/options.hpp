// How a publisher or a subscriber uses the network, and what both report.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>
#include <ddf/error.hpp>

namespace ddf {

using namespace std::chrono_literals;

enum class multicast_use : std::uint8_t { attempt, require, off };
enum class repair_lane : std::uint8_t { automatic, udp, tcp, shm, verbs };

enum class log_level : std::uint8_t { debug, info, warning, error };
/// Called from the library's own thread, never per packet; must not block.
using log_sink = std::function<void(log_level, const std::string& message)>;

struct network_options {
  std::string group = "239.77.7.7:7700";   // ADDR:PORT or [ADDR6%IF]:PORT
  std::vector<std::string> interfaces;     // names, addresses or CIDRs; empty: all that are up and can multicast
  std::string source;                      // sender's address: source-specific multicast, and whom to ask when no multicast arrives
  int ttl = 1;                             // hops, 0 to 255, on every packet
  multicast_use multicast = multicast_use::attempt;
  repair_lane repair = repair_lane::automatic;
  std::string transport = "udp";           // what carries DATA to the group: "udp"; "verbs": multicast of InfiniBand or RoCE
  std::string device;                      // verbs: which RDMA devices may be used, as in NCCL_IB_HCA; empty: any
  int traffic_class = -1, service_level = -1;   // verbs: of packets to the group, 0 to 255 and 0 to 15; -1: as the join gives
  std::uint32_t mtu = 0;                   // bytes of an IP packet; 0: the interface's
  std::uint32_t socket_buffer = 16 << 20;  // bytes asked for; what was granted is reported
  log_sink log;
};

/// Seconds spent in each stage. Stages overlap, so they need not add up to the total.
struct stage_times {
  double discover = 0, prepare = 0, plan = 0, wire = 0, repair = 0, verify = 0, apply = 0, commit = 0;
};

/// What was decided for the receivers that hold the same of an object, and what either way would cost.
struct plan_choice {
  std::string object;
  std::uint32_t receivers = 0;
  std::string holds;    // "version 41", "nothing", "this version"
  std::string takes;    // "delta", "whole", "nothing"
  std::uint64_t delta_bytes = 0, whole_bytes = 0;   // 0: there is no such way
  double delta_seconds = 0, whole_seconds = 0;      // estimated, until these receivers have the version
  std::string reason;
};

/// How the blocks are made that a delta changes.
struct plan_operation {
  std::string object, base;   // "version 41"
  std::string operation;      // "keep", "sparse", "dense" …
  std::uint64_t records = 0, target_bytes = 0, payload_bytes = 0;
};

struct planned_object {
  std::string object;
  std::uint64_t group_bytes = 0;   // payload that will go to the group once, in whatever form
};

struct plan_report {
  std::vector<planned_object> objects;      // those that somebody joined for
  std::vector<plan_choice> choices;
  std::vector<plan_operation> operations;
  double prepare_seconds = 0;            // comparing and encoding took
  std::uint64_t group_bytes = 0;         // payload that will go to the group once
  double seconds = 0;                    // estimated, from the first byte until the last receiver has it
};

struct object_report {
  std::string name;
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;
  std::string encoding = "whole";   // "whole", "delta", at a sender also "delta+whole"; "none" when the version was held already
  double seconds = 0;
  std::string path;                 // receiver: where it is
  error problem;                    // code ok when complete and verified
};

struct receiver_report {
  std::string id;       // host name and address
  std::map<std::string, std::uint64_t> holds;   // object -> version that it has, by its own word
  std::string state;    // "complete", "failed", "lost", "refused", "incomplete"
  std::string reason;   // a sentence; empty when complete
  bool deaf = false;    // heard no multicast and was served by unicast
  bool left_rate_loop = false;
  std::string lane = "udp";   // by which it was repaired alone, last: "tcp", "shm", "verbs"
  std::uint64_t nacks = 0, repaired_bytes = 0;
};

struct report {
  bool sender = false;
  error outcome;   // code ok: everything complete and verified, at every receiver that counts
  std::vector<object_report> objects;
  double seconds = 0;
  double goodput_bytes_per_s = 0;
  stage_times stages;
  struct {
    std::string transport = "udp";
    std::uint64_t segments = 0, bytes = 0;   // bytes: payload and ddf headers
  } bulk;
  struct {
    std::uint64_t multicast_bytes = 0, unicast_bytes = 0, peer_bytes = 0, nacks = 0;
    std::uint64_t read_bytes = 0;   // that receivers read from the sender's memory; some may have come by UDP meanwhile as well
  } repair;
  plan_report plan;     // sender only
  std::uint64_t delta_bytes = 0;     // receiver: of object bytes, those that a delta made
  double egress_ratio = 0;   // bytes sent with IP and UDP headers, over object bytes; sender only
  std::uint64_t resumed_bytes = 0;   // receiver: already there and proven, not fetched
  std::uint64_t bad_blocks = 0;
  std::vector<receiver_report> receivers;         // sender only
  std::vector<std::string> interfaces;            // those in use
  std::map<std::string, std::uint64_t> dropped;   // reason -> packets
  std::vector<std::string> warnings;
};

/// A snapshot for a progress display. Cost: a lock and a copy.
struct progress {
  enum class phase : std::uint8_t { discovering, sending, receiving, repairing, committing, lingering, finished } phase = phase::discovering;
  std::uint64_t bytes_done = 0, bytes_total = 0;
  double bytes_per_s = 0;
  std::uint32_t receivers_joined = 0, receivers_complete = 0;
  std::uint32_t receivers_active = 0;   // sender: joined, and neither complete nor given up
  std::uint64_t nacks = 0, repaired_bytes = 0;
  std::string current;   // object name
};

}  // namespace ddf
