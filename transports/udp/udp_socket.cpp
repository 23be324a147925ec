#include "transports/udp/udp_socket.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/udp/socket_address.hpp"
#include "transports/udp/udp_offload.hpp"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

namespace ddf {

template <class T>
static bool set(int fd, int level, int option, const T& value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// --- opening --------------------------------------------------------------------------------------------------------------

static void set_common(int fd, bool v6, const udp_socket::options& o) {
  if (v6) {
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, o.ttl == 0 ? 1 : o.ttl);
    set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, o.ttl);
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);   // never fragment: what is too large is noticed
  } else {
    set(fd, IPPROTO_IP, IP_TTL, o.ttl == 0 ? 1 : o.ttl);
    set(fd, IPPROTO_IP, IP_MULTICAST_TTL, o.ttl);
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  }
  set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  const int bytes = static_cast<int>(std::min<std::uint32_t>(o.buffer_bytes, 1u << 30));
  if (!set(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes)) set(fd, SOL_SOCKET, SO_RCVBUF, bytes);
  const int out = std::min(bytes, 4 << 20);
  if (!set(fd, SOL_SOCKET, SO_SNDBUFFORCE, out)) set(fd, SOL_SOCKET, SO_SNDBUF, out);
}

static result<int> open_fd(bool v6) {
  const int fd = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(errc::network, std::string("opening an ") + (v6 ? "IPv6" : "IPv4") + " UDP socket", errno);
  return fd;
}

result<std::unique_ptr<udp_socket>> udp_socket::open_group(const endpoint& group, const options& o) {
  auto fd = open_fd(group.v6);
  if (!fd) return tl::unexpected(fd.error());
  std::unique_ptr<udp_socket> s(new udp_socket);
  s->fd_ = *fd;
  s->group_ = group;
  // Both flags: other programs on the port may have chosen either, and each excludes the other's users.
  set(s->fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  set(s->fd_, SOL_SOCKET, SO_REUSEPORT, 1);
  set_common(s->fd_, group.v6, o);
  // Only what this socket joined, not whatever else the host is a member of.
  if (group.v6) set(s->fd_, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  else set(s->fd_, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  sockaddr_storage address;
  const socklen_t length = to_sockaddr(group, address);
  if (::bind(s->fd_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    const int e = errno;
    return fail(errc::network, "binding to " + to_string(group) + (e == EADDRINUSE
      ? ": another program holds UDP port " + std::to_string(group.port) + " and does not share it (see: ss -ulpn 'sport = :" + std::to_string(group.port) + "'); stop it or choose another port with --group" : ""), e);
  }
  if (o.gro) s->gro_ = set(s->fd_, SOL_UDP, UDP_GRO, 1);
  s->local_ = group;
  int granted = 0;
  socklen_t size = sizeof granted;
  ::getsockopt(s->fd_, SOL_SOCKET, SO_RCVBUF, &granted, &size);
  s->receive_buffer_ = static_cast<std::uint32_t>(granted);
  if (!s->batch_.reserved()) return fail(errc::io, "reserving receive buffers", ENOMEM);
  return s;
}

result<std::unique_ptr<udp_socket>> udp_socket::open_unicast(const endpoint& local, unsigned multicast_interface, const options& o) {
  auto fd = open_fd(local.v6);
  if (!fd) return tl::unexpected(fd.error());
  std::unique_ptr<udp_socket> s(new udp_socket);
  s->fd_ = *fd;
  set_common(s->fd_, local.v6, o);
  if (multicast_interface != 0) {
    bool ok = false;
    if (local.v6) {
      ok = set(s->fd_, IPPROTO_IPV6, IPV6_MULTICAST_IF, multicast_interface);
    } else {
      ip_mreqn request{};
      request.imr_ifindex = static_cast<int>(multicast_interface);
      ok = set(s->fd_, IPPROTO_IP, IP_MULTICAST_IF, request);
    }
    if (!ok) return fail(errc::network, "sending multicast by the interface of " + address_text(local), errno);
  }
  sockaddr_storage address;
  socklen_t length = to_sockaddr(local, address);
  if (::bind(s->fd_, reinterpret_cast<const sockaddr*>(&address), length) != 0) return fail(errc::network, "binding to " + to_string(local), errno);
  if (::getsockname(s->fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0) s->local_ = from_sockaddr(address);
  s->gso_ = o.gso;
  if (o.gro) s->gro_ = set(s->fd_, SOL_UDP, UDP_GRO, 1);
  int granted = 0;
  socklen_t size = sizeof granted;
  ::getsockopt(s->fd_, SOL_SOCKET, SO_RCVBUF, &granted, &size);
  s->receive_buffer_ = static_cast<std::uint32_t>(granted);
  if (!s->batch_.reserved()) return fail(errc::io, "reserving receive buffers", ENOMEM);
  return s;
}

udp_socket::~udp_socket() {
  if (fd_ >= 0) ::close(fd_);
}

static group_source_req source_request(const endpoint& group, unsigned interface, const endpoint& source) {
  group_source_req r{};
  r.gsr_interface = interface;
  to_sockaddr(group, r.gsr_group);
  to_sockaddr(source, r.gsr_source);
  return r;
}
static group_req plain_request(const endpoint& group, unsigned interface) {
  group_req r{};
  r.gr_interface = interface;
  to_sockaddr(group, r.gr_group);
  return r;
}

result<void> udp_socket::join(unsigned interface, const endpoint* source) {
  const int level = group_.v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const bool ok = source != nullptr ? set(fd_, level, MCAST_JOIN_SOURCE_GROUP, source_request(group_, interface, *source)) : set(fd_, level, MCAST_JOIN_GROUP, plain_request(group_, interface));
  if (ok || errno == EADDRINUSE || errno == EADDRNOTAVAIL) return {};   // a member already
  const int e = errno;
  return fail(errc::network, "joining " + address_text(group_) + (e == ENOBUFS ? ": the system's limit of memberships is reached (sysctl net.ipv4.igmp_max_memberships)" : ""), e);
}

void udp_socket::leave(unsigned interface, const endpoint* source) {
  const int level = group_.v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  if (source != nullptr) set(fd_, level, MCAST_LEAVE_SOURCE_GROUP, source_request(group_, interface, *source));
  else set(fd_, level, MCAST_LEAVE_GROUP, plain_request(group_, interface));
}

void udp_socket::tell_interface() {
  if (local_.v6) set(fd_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  else set(fd_, IPPROTO_IP, IP_PKTINFO, 1);
}

void udp_socket::set_multicast_loop(bool on) {
  if (local_.v6) set(fd_, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, on ? 1 : 0);
  else set(fd_, IPPROTO_IP, IP_MULTICAST_LOOP, on ? 1 : 0);
}

// --- sending --------------------------------------------------------------------------------------------------------------

struct send_control {
  alignas(cmsghdr) std::array<char, 128> bytes{};
  std::size_t used = 0;

  template <class T>
  void add(int level, int type, const T& value) {
    auto* c = reinterpret_cast<cmsghdr*>(bytes.data() + used);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    used += CMSG_SPACE(sizeof value);
  }
  void leave_by(bool v6, unsigned interface) {
    if (interface == 0) return;
    if (v6) {
      in6_pktinfo info{};
      info.ipi6_ifindex = interface;
      add(IPPROTO_IPV6, IPV6_PKTINFO, info);
    } else {
      in_pktinfo info{};
      info.ipi_ifindex = static_cast<int>(interface);
      add(IPPROTO_IP, IP_PKTINFO, info);
    }
  }
};

static udp_socket::sent outcome_of(int e) {
  if (e == EAGAIN) return udp_socket::sent::would_block;
  if (e == ENOBUFS || e == ENOMEM) return udp_socket::sent::queue_full;
  return udp_socket::sent::failed;
}

udp_socket::sent udp_socket::send(const endpoint& to, unsigned interface, std::span<const std::byte> bytes, int* error) {
  sockaddr_storage address;
  msghdr m{};
  m.msg_name = &address;
  m.msg_namelen = to_sockaddr(to, address);
  iovec v{const_cast<std::byte*>(bytes.data()), bytes.size()};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  send_control control;
  control.leave_by(to.v6, interface);
  m.msg_control = control.used != 0 ? control.bytes.data() : nullptr;
  m.msg_controllen = control.used;
  for (int tries = 0; tries < 4; ++tries) {   // an ICMP answer to an earlier packet is reported on the next call: try again
    if (::sendmsg(fd_, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return sent::all;
    if (errno != EINTR && errno != ECONNREFUSED) break;
  }
  if (error != nullptr) *error = errno;
  return outcome_of(errno);
}

std::size_t udp_socket::send_batch(const endpoint& to, unsigned interface, std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error) {
  static constexpr std::size_t runs_max = 64, gso_segments_max = 64, gso_bytes_max = 65507 - 8;
  sockaddr_storage address;
  const socklen_t address_length = to_sockaddr(to, address);
  const std::size_t count = std::min<std::size_t>(headers.size(), runs_max);
  std::array<iovec, 2 * runs_max> vectors;
  std::array<mmsghdr, runs_max> messages;
  std::array<send_control, runs_max> controls;
  std::array<std::size_t, runs_max> run_packets{};
  std::size_t runs = 0;
  for (std::size_t i = 0; i < count;) {
    const std::size_t size = headers[i].iov_len + payloads[i].iov_len;
    std::size_t n = 0, bytes = 0;
    const std::size_t first_vector = 2 * i;
    while (i + n < count) {
      const std::size_t next = headers[i + n].iov_len + payloads[i + n].iov_len;
      if (n != 0 && (!gso_ || next > size || bytes + next > gso_bytes_max || n == gso_segments_max)) break;
      vectors[2 * (i + n)] = headers[i + n];
      vectors[2 * (i + n) + 1] = payloads[i + n];
      bytes += next;
      ++n;
      if (next < size) break;   // a shorter one ends a super-packet
    }
    msghdr& m = messages[runs].msg_hdr;
    m = {};
    m.msg_name = &address;
    m.msg_namelen = address_length;
    m.msg_iov = &vectors[first_vector];
    m.msg_iovlen = 2 * n;
    controls[runs].used = 0;
    controls[runs].leave_by(to.v6, interface);
    if (n > 1) controls[runs].add(SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(size));
    m.msg_control = controls[runs].used != 0 ? controls[runs].bytes.data() : nullptr;
    m.msg_controllen = controls[runs].used;
    messages[runs].msg_len = 0;
    run_packets[runs++] = n;
    i += n;
  }
  std::size_t done_runs = 0, done_packets = 0;
  int tries = 0;
  outcome = sent::all;
  while (done_runs < runs) {
    const int r = ::sendmmsg(fd_, messages.data() + done_runs, static_cast<unsigned>(runs - done_runs), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (r > 0) {
      for (int k = 0; k < r; ++k) done_packets += run_packets[done_runs++];
      continue;
    }
    const int e = errno;
    if ((e == EINTR || e == ECONNREFUSED) && ++tries < 4) continue;
    if (gso_ && run_packets[done_runs] > 1 && (e == EIO || e == EINVAL || e == EOPNOTSUPP)) {   // this path cannot split: from now on one by one
      gso_ = false;
      sent rest{};
      const std::size_t more = send_batch(to, interface, headers.subspan(done_packets), payloads.subspan(done_packets), rest, error);
      outcome = rest;
      return done_packets + more;
    }
    if (error != nullptr) *error = e;
    outcome = outcome_of(e);
    return done_packets;
  }
  return done_packets;
}

// --- receiving ------------------------------------------------------------------------------------------------------------

std::size_t udp_socket::receive(const std::function<void(const datagrams&)>& handler) {
  const int taken = batch_.take(fd_);
  if (taken <= 0) {
    if (taken < 0 && errno != EAGAIN) ++transient_errors_;   // an ICMP answer, an interrupt: the next call goes on
    return 0;
  }
  batch_.hand_over(handler);
  return static_cast<std::size_t>(taken);
}

}  // namespace ddf
