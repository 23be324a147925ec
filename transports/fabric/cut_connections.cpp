#include "transports/fabric/cut_connections.hpp"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

namespace ddf {

namespace {

struct socket_end {
  std::vector<std::byte> ip;
  std::uint16_t port = 0;
  bool operator==(const socket_end&) const = default;
};

std::optional<socket_end> read_end(std::span<const std::byte> address) {
  sa_family_t family = AF_UNSPEC;
  if (address.size() < sizeof(sockaddr)) return std::nullopt;
  std::memcpy(&family, address.data() + offsetof(sockaddr, sa_family), sizeof family);
  const auto take = [&]<class A>(A a, auto ip, auto port) -> std::optional<socket_end> {
    if (address.size() < sizeof a) return std::nullopt;
    std::memcpy(&a, address.data(), sizeof a);
    const auto* first = reinterpret_cast<const std::byte*>(&(a.*ip));
    return socket_end{{first, first + sizeof(a.*ip)}, ntohs(a.*port)};
  };
  if (family == AF_INET) return take(sockaddr_in{}, &sockaddr_in::sin_addr, &sockaddr_in::sin_port);
  if (family == AF_INET6) return take(sockaddr_in6{}, &sockaddr_in6::sin6_addr, &sockaddr_in6::sin6_port);
  return std::nullopt;
}

using name_call = int (*)(int, sockaddr*, socklen_t*);
std::optional<socket_end> end_of(int socket, name_call call) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (call(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return std::nullopt;
  return read_end(std::as_bytes(std::span(&storage, 1)).first(bytes));
}

}  // namespace

std::size_t cut_connections(std::span<const std::byte> local, std::span<const std::byte> peer) {
  const auto here = read_end(local), there = read_end(peer);
  if (!here || !there) return 0;
  std::vector<int> opened, accepted;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);   // "." and "..": 0, which is looked at like any other
    int type = 0;
    socklen_t bytes = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM) continue;
    const auto mine = end_of(fd, ::getsockname), its = end_of(fd, ::getpeername);
    if (!mine || !its || mine->ip != here->ip) continue;
    if (*its == *there) opened.push_back(fd);
    else if (*mine == *here && its->ip == there->ip) accepted.push_back(fd);
  }
  ::closedir(folder);
  const std::vector<int>& chosen = opened.empty() ? accepted : opened;
  return static_cast<std::size_t>(std::ranges::count_if(chosen, [](int fd) { return ::shutdown(fd, SHUT_RDWR) == 0; }));
}

}  // namespace ddf
