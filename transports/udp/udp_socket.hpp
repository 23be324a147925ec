// One UDP socket: many packets in one call, out (GSO) and in (GRO).
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/endpoint.hpp"
#include "transports/bulk_lane.hpp"
#include "transports/udp/datagrams.hpp"
#include "transports/udp/receive_batch.hpp"

namespace ddf {

class udp_socket final : public bulk_receiver {
 public:
  struct options {
    int ttl = 1;
    std::uint32_t buffer_bytes = 16 << 20;
    bool gso = true, gro = true;
  };

  /// For a group's packets: bound to the group's address and port, deaf to other groups on that port, shared with others on
  /// this host. Joins nothing yet. Errors: network ("address in use" names what to look at).
  static result<std::unique_ptr<udp_socket>> open_group(const endpoint& group, const options& o);
  /// For sending and for what is sent to us alone. `local`: address and port to bind, port 0: any. `multicast_interface`: where
  /// packets to groups leave; 0: unspecified. Errors: network.
  static result<std::unique_ptr<udp_socket>> open_unicast(const endpoint& local, unsigned multicast_interface, const options& o);
  ~udp_socket() override;
  udp_socket(const udp_socket&) = delete;
  udp_socket& operator=(const udp_socket&) = delete;

  /// Joins or leaves the group this socket is bound to; with a source address: only what that sender sends (SSM).
  result<void> join(unsigned interface, const endpoint* source = nullptr);
  void leave(unsigned interface, const endpoint* source = nullptr);
  /// From now on the interface packets come in by is told. Not told by default: the kernel looks up a route for each of them.
  void tell_interface();
  /// Whether packets to a group come back to members on this host.
  void set_multicast_loop(bool on);

  int fd() const override { return fd_; }
  const endpoint& local() const { return local_; }
  std::uint32_t receive_buffer() const { return receive_buffer_; }   // bytes granted, as the kernel counts
  std::uint64_t kernel_drops() const { return batch_.kernel_drops(); }       // packets this socket had no room for
  bool gso() const { return gso_; }

  using sent = ddf::sent;
  /// One datagram. `interface` != 0: leave by that one. Never blocks.
  sent send(const endpoint& to, unsigned interface, std::span<const std::byte> bytes, int* error = nullptr);

  /// Several datagrams to one place, each a header and a payload; equal sizes leave as one super-packet (GSO) where the kernel
  /// can, one by one where not.
  /// Output: how many were taken by the kernel, from the first on; `outcome` tells why not all.
  std::size_t send_batch(const endpoint& to, unsigned interface, std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error = nullptr);

  /// Transient errors (ICMP answers, interrupts) are counted and passed over.
  std::size_t receive(const std::function<void(const datagrams&)>& handler) override;

 private:
  udp_socket() = default;
  int fd_ = -1;
  endpoint local_;
  endpoint group_;
  bool gso_ = true, gro_ = false;
  std::uint32_t receive_buffer_ = 0;
  std::uint64_t transient_errors_ = 0;
  receive_batch batch_;
};

}  // namespace ddf
