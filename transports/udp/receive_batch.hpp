// What one recvmmsg takes: where packets land and what they are handed over as.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>
#include "lib/model/endpoint.hpp"
#include "transports/udp/datagrams.hpp"

namespace ddf {

/// Memory for a batch of packets, used again for every batch. Where the kernel coalesces (GRO) each super-packet lies in one piece.
/// Where it does not, it is told to lay headers and payloads apart, for datagrams as large as the last ones were: so the
/// payloads of those that follow each other adjoin, as if they had been one packet. (Laying super-packets apart as well costs more
/// than it saves.)
class receive_batch {
 public:
  receive_batch();
  ~receive_batch();
  receive_batch(const receive_batch&) = delete;
  receive_batch& operator=(const receive_batch&) = delete;
  bool reserved() const { return memory_ != nullptr; }   // there was memory for it

  /// Takes what waits on `fd`, at most one batch, without blocking. Output: packets taken; 0: none was there; -1: errno tells.
  int take(int fd);
  /// Hands over what take() found. Cost: O(packets).
  void hand_over(const std::function<void(const datagrams&)>& handler);

  std::uint64_t kernel_drops() const { return kernel_drops_; }   // as the kernel said with the packets

 private:
  static constexpr std::size_t head = data_header::wire_size;
  static constexpr std::size_t packet_most = 65536;    // a super-packet is never larger
  static constexpr std::size_t singles_most = 64, supers_most = 8;   // of one batch; eight super-packets are what a core's cache holds until they are written
  struct packet {
    endpoint from;
    unsigned interface = 0;
    std::size_t bytes = 0, datagram_bytes = 0;
    bool truncated = false;
  };
  packet describe(std::size_t i);
  void lay_out();                                   // for what the last batch was
  std::byte* heads(std::size_t i) const;            // of the i-th packet
  std::byte* rests(std::size_t i) const;
  std::byte* super(std::size_t i) const;
  std::byte* overflow(std::size_t i) const;
  std::byte* joined(std::size_t i) const;
  datagrams join(std::size_t i, const packet& p);   // a packet that is larger than what was laid out for

  std::byte* memory_ = nullptr;
  std::array<mmsghdr, singles_most> messages_{};
  std::array<iovec, 3 * singles_most> pieces_{};
  std::array<sockaddr_storage, singles_most> addresses_{};
  struct control {
    alignas(cmsghdr) std::array<char, 128> bytes;
  };
  std::array<control, singles_most> controls_{};
  int taken_ = 0;
  bool supers_ = true;                              // how the kernel delivers
  std::size_t size_ = 1472;                         // of a single datagram
  std::size_t laid_out_size_ = packet_most;         // of the pieces; 0: for super-packets
  std::vector<std::byte> scratch_;
  std::uint64_t kernel_drops_ = 0;
};

}  // namespace ddf
