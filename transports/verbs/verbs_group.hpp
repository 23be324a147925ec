// One queue pair for datagrams that is a member of one multicast group, on the device that has a given address.
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include "lib/model/endpoint.hpp"
#include "transports/verbs/device_selector.hpp"
#include "transports/verbs/verbs_calls.hpp"
#include "transports/verbs/verbs_error.hpp"

namespace ddf {

struct verbs_options {
  endpoint local;                           // of the interface: finds the device
  endpoint group;
  device_selector devices;                  // a device that it does not match is refused
  int ttl = 1;                              // hops
  int traffic_class = -1, service_level = -1;   // -1: what the join gives
  std::uint32_t buffer_bytes = 16 << 20;    // a receiver's ring
  std::uint32_t send_packets = 1024;        // a sender's
  std::chrono::milliseconds patience{5000}; // with the fabric, for each step
};

/// Memory for packets, page by page as it is first touched.
class packet_memory {
 public:
  packet_memory() = default;
  ~packet_memory();
  packet_memory(const packet_memory&) = delete;
  packet_memory& operator=(const packet_memory&) = delete;
  bool reserve(std::size_t bytes);
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

class verbs_group {
 public:
  /// Finds the device. Errors: unsupported, refused, network, each with what is missing and the cure. May take as long as `patience`.
  static result<std::unique_ptr<verbs_group>> open(verbs_calls& calls, const verbs_options& o);
  ~verbs_group();
  verbs_group(const verbs_group&) = delete;
  verbs_group& operator=(const verbs_group&) = delete;

  // What follows is called once each, in this order. Errors: as above; too_large (memory that may be locked).
  result<void> open_queue(std::uint32_t sends, std::uint32_t receives);
  result<void> register_memory(std::span<std::byte> memory);
  result<void> join(bool sends_only);

  const verbs_device& device() const { return device_; }
  const std::string& name() const { return name_; }   // "mlx5_0:1"
  int fd() const { return fd_; }

  int post(std::span<const verbs_send> sends, std::size_t& posted) { return calls_.post(id_, to_, address_, memory_, sends, posted); }
  int post(std::span<const verbs_receive> receives, std::size_t& posted) { return calls_.post(id_, memory_, receives, posted); }
  /// What ended, up to the room in `out`. When nothing has: from now on the descriptor tells, and it was looked for once more.
  /// Output: how many; an errno, negative.
  int poll(std::span<verbs_completion> out);
  /// What the fabric has told since: the group or the device may be gone. 0: nothing.
  int look();

 private:
  verbs_group(verbs_calls& calls, const verbs_options& o) : calls_(calls), options_(o) {}
  int wait_for(verbs_event::kind what, verbs_event& out);

  verbs_calls& calls_;
  const verbs_options options_;
  verbs_device device_;
  std::string name_;
  group_address address_;
  int fd_ = -1;
  bool armed_ = false, queue_ = false, joined_ = false;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* memory_ = nullptr;
  ibv_ah* to_ = nullptr;
};

}  // namespace ddf
