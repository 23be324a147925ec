// What goes wrong with an RDMA device, as our errors: what was attempted, the likely cause, and what to do about it.
#pragma once
#include <string>
#include <string_view>
#include <ddf/error.hpp>

namespace ddf {

enum class verbs_step : std::uint8_t {
  manager,    // rdma_create_event_channel, rdma_create_id
  find,       // rdma_bind_addr, rdma_resolve_addr: the device of an address
  open,       // protection domain, completion channel and queue, queue pair
  reg,        // ibv_reg_mr
  join,       // rdma_join_multicast and what came of it
  address,    // ibv_create_ah
  send,       // ibv_post_send
  receive,    // ibv_post_recv
  poll,       // ibv_poll_cq, ibv_req_notify_cq
};

/// Input:  `of`: what it was attempted with ("mlx5_0:1", or the address when no device is known yet); `code`: an errno, positive.
error verbs_error(std::string_view of, verbs_step step, int code);
/// How a posted send or receive ended badly. Input: `status`: enum ibv_wc_status.
error verbs_completion_error(std::string_view of, bool sending, int status);

}  // namespace ddf
