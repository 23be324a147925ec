// What one recvmmsg takes: where packets land and what they are handed over as.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include "lib/model/endpoint.hpp"
#include "transports/udp/datagrams.hpp"

namespace ddf {

/// Memory for a batch of packets, used again for every batch. Where the kernel coalesces (GRO) each super-packet has a place of
/// its own. Where it does not, packets land one behind the other, so that equal ones from one sender are handed over together.
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
  static constexpr std::size_t packet_most = 65536;     // a super-packet is never larger
  static constexpr std::size_t packets_most = 64;
  static constexpr std::size_t super_packets = 8;       // of one batch: what a core's cache holds until they are written
  static constexpr std::size_t slot_most = 16384;       // larger datagrams each have a place of their own

  struct packet {
    endpoint from;
    unsigned interface = 0;
    std::size_t bytes = 0, datagram_bytes = 0;
    bool super = false, truncated = false;
  };
  packet describe(std::size_t i);
  std::byte* place(std::size_t i) const { return memory_ + packets_most * slot_most + i * packet_most; }
  std::byte* whole(std::size_t i, std::size_t bytes);

  std::byte* memory_ = nullptr;
  std::array<mmsghdr, packets_most> messages_{};
  std::array<iovec, 2 * packets_most> vectors_{};
  std::array<sockaddr_storage, packets_most> addresses_{};
  struct control {
    alignas(cmsghdr) std::array<char, 128> bytes;
  };
  std::array<control, packets_most> controls_{};
  int taken_ = 0;
  bool supers_ = true;          // how the kernel delivers
  std::size_t slot_ = 0;        // bytes of a slot in the batch that was taken; 0: each packet in its place
  std::size_t seen_ = 0;        // size of its largest datagram: the next one's slot
  std::uint64_t kernel_drops_ = 0;
};

}  // namespace ddf
