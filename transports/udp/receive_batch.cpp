#include "transports/udp/receive_batch.hpp"

#include <netinet/in.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "transports/udp/socket_address.hpp"
#include "transports/udp/udp_offload.hpp"

namespace ddf {

// The memory, page by page as it is first touched: heads of single datagrams; the rest of each, adjoining, or super-packets; a
// place for what of a single datagram is longer than was laid out for, and one where such a datagram is joined.
static constexpr std::size_t heads_bytes = 4096, packets_bytes = 4 << 20, overflow_bytes = 4 << 20, joined_bytes = 4 << 20;
static constexpr std::size_t memory_bytes = heads_bytes + packets_bytes + overflow_bytes + joined_bytes;

receive_batch::receive_batch() {
  static_assert(singles_most * head <= heads_bytes && singles_most * packet_most <= std::min({packets_bytes, overflow_bytes, joined_bytes}));
  void* m = ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m != MAP_FAILED) memory_ = static_cast<std::byte*>(m);
}

receive_batch::~receive_batch() {
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes);
}

std::byte* receive_batch::heads(std::size_t i) const { return memory_ + i * head; }
std::byte* receive_batch::rests(std::size_t i) const { return memory_ + heads_bytes + i * (laid_out_size_ - head); }
std::byte* receive_batch::super(std::size_t i) const { return memory_ + heads_bytes + i * packet_most; }
std::byte* receive_batch::overflow(std::size_t i) const { return memory_ + heads_bytes + packets_bytes + i * packet_most; }
std::byte* receive_batch::joined(std::size_t i) const { return overflow(i) + overflow_bytes; }

void receive_batch::lay_out() {
  const std::size_t size = supers_ ? 0 : size_;
  if (laid_out_size_ == size) return;
  laid_out_size_ = size;
  for (std::size_t i = 0; i < singles_most; ++i) {
    iovec* const pieces = &pieces_[3 * i];
    msghdr& m = messages_[i].msg_hdr;
    m.msg_iov = pieces;
    m.msg_iovlen = size == 0 ? 1 : 3;
    if (size == 0) {
      pieces[0] = {super(i), packet_most};
    } else {
      pieces[0] = {heads(i), head};
      pieces[1] = {rests(i), size - head};
      pieces[2] = {overflow(i), packet_most - size};
    }
  }
}

int receive_batch::take(int fd) {
  lay_out();
  const std::size_t wanted = supers_ ? supers_most : singles_most;
  for (std::size_t i = 0; i < wanted; ++i) {
    msghdr& m = messages_[i].msg_hdr;
    m.msg_name = &addresses_[i];
    m.msg_namelen = sizeof addresses_[i];
    m.msg_control = controls_[i].bytes.data();
    m.msg_controllen = controls_[i].bytes.size();
    m.msg_flags = 0;
  }
  taken_ = ::recvmmsg(fd, messages_.data(), static_cast<unsigned>(wanted), MSG_DONTWAIT, nullptr);
  return taken_;
}

receive_batch::packet receive_batch::describe(std::size_t i) {
  msghdr& m = messages_[i].msg_hdr;
  packet p;
  p.from = from_sockaddr(addresses_[i]);
  p.bytes = p.datagram_bytes = messages_[i].msg_len;
  p.truncated = (m.msg_flags & MSG_TRUNC) != 0;   // larger than anything we send
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int size = 0;
      std::memcpy(&size, CMSG_DATA(c), sizeof size);
      if (size > 0) p.datagram_bytes = static_cast<std::size_t>(size);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      p.interface = static_cast<unsigned>(info.ipi_ifindex);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      p.interface = info.ipi6_ifindex;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t dropped = 0;
      std::memcpy(&dropped, CMSG_DATA(c), sizeof dropped);
      kernel_drops_ = std::max<std::uint64_t>(kernel_drops_, dropped);
    }
  }
  return p;
}

datagrams receive_batch::join(std::size_t i, const packet& p) {
  std::byte* at = joined(i);   // of its own: what was handed over before is still in use
  for (std::size_t k = 0, left = p.bytes; left != 0; ++k) {
    const iovec& piece = pieces_[3 * i + k];
    const std::size_t n = std::min(left, piece.iov_len);
    at = std::copy_n(static_cast<const std::byte*>(piece.iov_base), n, at);
    left -= n;
  }
  return {{joined(i), p.bytes}, p.datagram_bytes};
}

void receive_batch::hand_over(const std::function<void(const datagrams&)>& handler) {
  supers_ = false;
  std::size_t largest = 0;
  packet first;                      // of single datagrams that follow each other
  std::size_t first_index = 0, count = 0, last = 0;
  const auto give = [&](datagrams d, const packet& p) {
    d.from = p.from;
    d.interface = p.interface;
    handler(d);
  };
  const auto end_row = [&] {
    if (count != 0) give({heads(first_index), rests(first_index), count, laid_out_size_, last, scratch_}, first);
    count = 0;
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(taken_); ++i) {
    const packet p = describe(i);
    if (p.truncated || p.bytes == 0) {   // larger than anything we send, or nothing
      end_row();
      continue;
    }
    largest = std::max(largest, p.datagram_bytes);
    const bool super = p.datagram_bytes < p.bytes;
    supers_ = supers_ || super;
    if (laid_out_size_ == 0) {
      give({{this->super(i), p.bytes}, p.datagram_bytes}, p);
    } else if (super || p.bytes > laid_out_size_) {
      end_row();
      give(join(i, p), p);
    } else {
      if (count != 0 && (last != laid_out_size_ || p.from != first.from || p.interface != first.interface)) end_row();
      if (count == 0) first = p, first_index = i;
      ++count;
      last = p.bytes;
    }
  }
  end_row();
  if (largest > head) size_ = largest;
}

}  // namespace ddf
