#include "transports/udp/socket_address.hpp"

#include <netinet/in.h>

#include <cstring>

namespace ddf {

socklen_t to_sockaddr(const endpoint& e, sockaddr_storage& out) {
  out = {};
  if (e.v6) {
    auto& a = reinterpret_cast<sockaddr_in6&>(out);
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(e.port);
    a.sin6_scope_id = e.scope;
    std::memcpy(&a.sin6_addr, e.address.data(), 16);
    return sizeof a;
  }
  auto& a = reinterpret_cast<sockaddr_in&>(out);
  a.sin_family = AF_INET;
  a.sin_port = htons(e.port);
  std::memcpy(&a.sin_addr, e.address.data(), 4);
  return sizeof a;
}

endpoint from_sockaddr(const sockaddr_storage& s) {
  endpoint e;
  if (s.ss_family == AF_INET6) {
    const auto& a = reinterpret_cast<const sockaddr_in6&>(s);
    e.v6 = true;
    e.port = ntohs(a.sin6_port);
    e.scope = a.sin6_scope_id;
    std::memcpy(e.address.data(), &a.sin6_addr, 16);
  } else {
    const auto& a = reinterpret_cast<const sockaddr_in&>(s);
    e.port = ntohs(a.sin_port);
    std::memcpy(e.address.data(), &a.sin_addr, 4);
  }
  return e;
}

}  // namespace ddf
