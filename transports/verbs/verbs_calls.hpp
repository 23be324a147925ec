// The calls below the verbs transport that can fail, as one interface: so that a test can make the nth of a kind fail, or be the
// device. No type of libibverbs or librdmacm but as a handle: only verbs_calls.cpp includes their headers.
//
// Both libraries are loaded when they are first used, not linked: a host without RDMA needs none of it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <ddf/error.hpp>
#include "lib/model/endpoint.hpp"

struct ibv_ah;
struct ibv_comp_channel;
struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct rdma_cm_id;
struct rdma_event_channel;

namespace ddf {

struct verbs_device {   // and the port that the address is on
  std::string name;     // "mlx5_0"
  unsigned port = 1;
  std::uint32_t mtu = 0;            // bytes of a datagram
  bool ethernet = false;            // RoCE; else InfiniBand
  bool active = false;              // the port
  std::uint32_t requests_max = 0;   // posted to one queue
  std::uint32_t completions_max = 0;
};

struct group_address {   // where packets to a group go; of the join
  std::uint32_t queue_pair = 0, key = 0;
  std::array<std::byte, 16> gid{};
  std::uint32_t flow_label = 0;
  std::uint16_t lid = 0;
  std::uint8_t gid_index = 0, hop_limit = 0, traffic_class = 0, service_level = 0, rate = 0, port = 0, path_bits = 0;
  bool global = false;
};

struct verbs_event {
  enum class kind : std::uint8_t { resolved, joined, failed, ended, other } what = kind::other;   // ended: of the group or the device
  int status = 0;         // errno of what failed
  group_address joined;
};

struct verbs_completion {
  std::uint64_t id = 0;
  int status = 0;         // 0: well; enum ibv_wc_status
  std::uint32_t bytes = 0;
};

struct verbs_send {
  std::uint64_t id = 0;
  const std::byte* at = nullptr;
  std::uint32_t bytes = 0;
  bool told = false;      // when it ends there is a completion
};

struct verbs_receive {
  struct piece {
    std::byte* at = nullptr;
    std::uint32_t bytes = 0;
  };
  std::uint64_t id = 0;
  std::array<piece, 2> pieces;
};

/// All return 0 or an errno, positive, unless said otherwise.
class verbs_calls {
 public:
  virtual ~verbs_calls() = default;

  /// Loads the libraries. Errors: unsupported, when one is not installed. Thread-safe.
  virtual result<void> load();

  // The connection manager: finds the device of an address, joins groups.
  virtual int open(rdma_event_channel** out);
  virtual int open(rdma_event_channel* channel, rdma_cm_id** out);
  virtual int bind(rdma_cm_id* id, const endpoint& local);
  virtual int resolve(rdma_cm_id* id, const endpoint& local, const endpoint& group, int timeout_ms);
  /// The next event. EAGAIN: none within the time.
  virtual int next_event(rdma_event_channel* channel, int timeout_ms, verbs_event& out);
  virtual int device(rdma_cm_id* id, verbs_device& out);
  /// A member that `sends_only` hears nothing of the group, nor itself. An event tells when it is one.
  virtual int join(rdma_cm_id* id, const endpoint& group, bool sends_only);
  virtual void leave(rdma_cm_id* id, const endpoint& group);

  // The device.
  virtual int open(rdma_cm_id* id, ibv_pd** out);
  /// `fd`: readable, never blocking, when something ended since it was armed.
  virtual int open(rdma_cm_id* id, ibv_comp_channel** out, int& fd);
  virtual int open(rdma_cm_id* id, std::uint32_t entries, ibv_comp_channel* channel, ibv_cq** out);
  /// A queue pair for datagrams, ready to send and to receive.
  virtual int open(rdma_cm_id* id, ibv_pd* pd, ibv_cq* cq, std::uint32_t sends, std::uint32_t receives);
  virtual int open(ibv_pd* pd, std::span<std::byte> memory, ibv_mr** out);
  virtual int open(ibv_pd* pd, const group_address& to, ibv_ah** out);
  /// `posted`: how many were taken, from the first on.
  virtual int post(rdma_cm_id* id, ibv_ah* to, const group_address& group, ibv_mr* memory, std::span<const verbs_send> sends, std::size_t& posted);
  virtual int post(rdma_cm_id* id, ibv_mr* memory, std::span<const verbs_receive> receives, std::size_t& posted);
  /// How many ended, in `out`; an errno, negative.
  virtual int poll(ibv_cq* cq, std::span<verbs_completion> out);
  /// From now on the next completion makes the channel's descriptor readable, once.
  virtual int arm(ibv_cq* cq);
  /// Takes what made the descriptor readable. Output: whether there was something.
  virtual bool take_event(ibv_comp_channel* channel);

  virtual void close(ibv_ah* ah);
  virtual void close(ibv_mr* mr);
  virtual void close_queue_pair(rdma_cm_id* id);
  virtual void close(ibv_cq* cq);
  virtual void close(ibv_comp_channel* channel);
  virtual void close(ibv_pd* pd);
  virtual void close(rdma_cm_id* id);
  virtual void close(rdma_event_channel* channel);
};

/// The libraries themselves.
verbs_calls& rdma_libraries();

}  // namespace ddf
