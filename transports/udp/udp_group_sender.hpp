// A rail's socket as what carries DATA to the group.
#pragma once
#include "transports/udp/udp_socket.hpp"

namespace ddf {

class udp_group_sender final : public bulk_sender {
 public:
  /// `group`: with the interface as its scope where it is IPv6.
  udp_group_sender(udp_socket& socket, const endpoint& group) : socket_(socket), group_(group) {}

  std::size_t send_batch(std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error) override {
    return socket_.send_batch(group_, 0, headers, payloads, outcome, error);
  }
  std::uint32_t datagram_bytes() const override { return 65535 - header_bytes(); }   // the interface says less
  std::uint32_t header_bytes() const override { return group_.v6 ? 48 : 28; }

 private:
  udp_socket& socket_;
  const endpoint group_;
};

}  // namespace ddf
