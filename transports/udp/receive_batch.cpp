#include "transports/udp/receive_batch.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "transports/udp/socket_address.hpp"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace ddf {

receive_batch::receive_batch() {
  void* m = ::mmap(nullptr, packets_most * (slot_most + packet_most), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m != MAP_FAILED) memory_ = static_cast<std::byte*>(m);   // pages come when first touched
}

receive_batch::~receive_batch() {
  if (memory_ != nullptr) ::munmap(memory_, packets_most * (slot_most + packet_most));
}

int receive_batch::take(int fd) {
  slot_ = supers_ || seen_ > slot_most ? 0 : seen_;
  const std::size_t wanted = supers_ ? super_packets : packets_most;
  for (std::size_t i = 0; i < wanted; ++i) {
    iovec* v = &vectors_[2 * i];
    if (slot_ != 0) *v++ = {memory_ + i * slot_, slot_};
    *v = {place(i), packet_most - slot_};   // all of it, or what is longer than a slot
    msghdr& m = messages_[i].msg_hdr;
    m.msg_name = &addresses_[i];
    m.msg_namelen = sizeof addresses_[i];
    m.msg_iov = &vectors_[2 * i];
    m.msg_iovlen = slot_ != 0 ? 2 : 1;
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
  p.super = p.datagram_bytes < p.bytes;
  return p;
}

// Where all of a packet lies in one piece: what is longer than its slot is joined in front of its place.
std::byte* receive_batch::whole(std::size_t i, std::size_t bytes) {
  if (slot_ == 0) return place(i);
  std::byte* slot = memory_ + i * slot_;
  if (bytes <= slot_) return slot;
  std::memmove(place(i) + slot_, place(i), bytes - slot_);
  std::memcpy(place(i), slot, slot_);
  return place(i);
}

void receive_batch::hand_over(const std::function<void(const datagrams&)>& handler) {
  supers_ = false;
  std::size_t largest = 0;
  datagrams run;   // packets of one size from one sender, slot behind slot; a shorter one ends it
  const auto end_run = [&] {
    if (!run.bytes.empty()) handler(run);
    run.bytes = {};
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(taken_); ++i) {
    const packet p = describe(i);
    supers_ = supers_ || p.super;
    if (p.truncated || p.bytes == 0) {
      end_run();
      continue;
    }
    largest = std::max(largest, p.datagram_bytes);
    std::byte* at = whole(i, p.bytes);
    const bool fits = slot_ != 0 && !p.super && p.bytes <= slot_;
    const bool follows = fits && !run.bytes.empty() && run.bytes.data() + run.bytes.size() == at && p.from == run.from && p.interface == run.interface;
    if (follows) {
      run.bytes = {run.bytes.data(), run.bytes.size() + p.bytes};
    } else {
      end_run();
      run = {p.from, p.interface, {at, p.bytes}, fits ? slot_ : p.datagram_bytes};
    }
    if (!fits || p.bytes < slot_) end_run();
  }
  end_run();
  if (largest != 0) seen_ = largest;
}

}  // namespace ddf
