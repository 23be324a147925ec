#include "lib/runtime/host_access.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "lib/store/descriptor.hpp"
#include "transports/fabric/fabric_endpoint.hpp"
#include "transports/udp/socket_address.hpp"
#include "transports/udp/udp_offload.hpp"
#include "transports/udp/udp_socket.hpp"

namespace ddf {

// --- files ------------------------------------------------------------------------------------------------------------

std::string host_access::text(const std::string& path, std::size_t bytes_max) const {
  const descriptor file(::open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string out(bytes_max, '\0');
  std::size_t used = 0;
  while (used < out.size()) {   // files of /proc come in pieces
    const auto n = ::read(file.get(), out.data() + used, out.size() - used);
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  out.resize(used);
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ' || out.back() == '\0')) out.pop_back();
  return out;
}

std::optional<std::uint64_t> host_access::number(const std::string& path) const {
  const std::string digits = text(path, 64);
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::vector<std::string> host_access::names(const std::string& path, std::size_t names_max) const {
  std::vector<std::string> out;
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir((root_ + path).c_str()), close);
  if (!folder) return out;
  for (const dirent* entry = ::readdir(folder.get()); entry != nullptr && out.size() < names_max; entry = ::readdir(folder.get()))
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  std::ranges::sort(out);
  return out;
}

std::string host_access::link(const std::string& path) const {
  std::array<char, 512> buffer{};
  const auto n = ::readlink((root_ + path).c_str(), buffer.data(), buffer.size());
  return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : std::string();
}

bool host_access::exists(const std::string& path) const { return ::access((root_ + path).c_str(), F_OK) == 0; }
bool host_access::readable(const std::string& path) const { return ::access((root_ + path).c_str(), R_OK) == 0; }
bool host_access::usable(const std::string& path) const { return ::access((root_ + path).c_str(), R_OK | W_OK) == 0; }

std::string field(const std::string& text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
      const auto first = line.find_first_not_of(" \t", key.size() + 1);
      return first == std::string_view::npos ? std::string() : std::string(line.substr(first));
    }
    at = end + 1;
  }
  return {};
}

// --- the kernel -------------------------------------------------------------------------------------------------------

result<std::vector<network_interface>> host_access::interfaces() { return list_interfaces(); }

static bool ask_card(int socket, const std::string& interface, void* question) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = static_cast<char*>(question);
  return ::ioctl(socket, SIOCETHTOOL, &request) == 0;
}

static bool ask_link(int socket, const std::string& interface, ethtool_link_settings& settings) {
  constexpr std::size_t mode_bytes_max = 3 * 4 * 127;   // three lists that the kernel writes behind the settings
  alignas(ethtool_link_settings) std::array<std::byte, sizeof(ethtool_link_settings) + mode_bytes_max> question{};
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  std::memcpy(question.data(), &settings, sizeof settings);
  const bool answered = ask_card(socket, interface, question.data());
  std::memcpy(&settings, question.data(), sizeof settings);
  return answered;
}

// The kernel first says how long its lists of modes are, and then wants to be asked with room for them.
static std::uint64_t link_bits_per_s(int socket, const std::string& interface) {
  ethtool_link_settings settings{};
  if (!ask_link(socket, interface, settings) || settings.link_mode_masks_nwords >= 0) return 0;
  const int words = -settings.link_mode_masks_nwords;
  if (words > 127) return 0;
  settings = {};
  settings.link_mode_masks_nwords = static_cast<std::int8_t>(words);
  if (!ask_link(socket, interface, settings)) return 0;
  const std::uint32_t mbits = settings.speed;
  return mbits > 10'000'000 ? 0 : mbits * std::uint64_t{1'000'000};   // SPEED_UNKNOWN is the largest number
}

card_facts host_access::card(const std::string& interface) {
  card_facts facts;
  const descriptor s(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!s) return facts;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (ask_card(s.get(), interface, &driver)) facts.driver.assign(driver.driver, ::strnlen(driver.driver, sizeof driver.driver));
  ethtool_ringparam ring{};
  ring.cmd = ETHTOOL_GRINGPARAM;
  if (ask_card(s.get(), interface, &ring)) {
    facts.receive_ring = ring.rx_pending;
    facts.receive_ring_max = ring.rx_max_pending;
  }
  facts.bits_per_s = link_bits_per_s(s.get(), interface);
  return facts;
}

socket_facts host_access::sockets(bool v6, std::uint32_t buffer_bytes) {
  socket_facts facts;
  endpoint any;
  any.v6 = v6;
  udp_socket::options o;
  o.buffer_bytes = buffer_bytes;
  const auto socket = udp_socket::open_unicast(any, 0, o);
  if (!socket) return facts;
  const int fd = (*socket)->fd();
  int value = 0;
  socklen_t size = sizeof value;
  facts.receive_buffer = (*socket)->receive_buffer();
  if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &size) == 0) facts.send_buffer = static_cast<std::uint64_t>(value);
  size = sizeof value;
  facts.gro = ::getsockopt(fd, IPPROTO_UDP, UDP_GRO, &value, &size) == 0 && value != 0;
  const int segment = 1400;
  facts.gso = ::setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0;
  return facts;
}

result<void> host_access::open_group(const endpoint& group) {
  udp_socket::options o;
  o.buffer_bytes = 1 << 16;
  if (const auto socket = udp_socket::open_group(group, o); !socket) return tl::unexpected(socket.error());
  return {};
}

std::optional<endpoint> host_access::route(const endpoint& group) {
  const descriptor s(::socket(group.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  socklen_t length = to_sockaddr(group, address);
  // Connecting a UDP socket looks up the route, and sends nothing.
  if (!s || ::connect(s.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return std::nullopt;
  length = sizeof address;
  if (::getsockname(s.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  endpoint from = from_sockaddr(address);
  from.port = 0;
  return from;
}

std::uint64_t host_access::memlock_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? host_facts::no_limit : limit.rlim_cur;
}

result<std::string> host_access::lane(repair_lane wanted, const std::string& local_address) {
  if (wanted == repair_lane::udp || wanted == repair_lane::automatic) return "NACKs, answered by multicast or unicast";
  return find_fabric(wanted, local_address);
}

}  // namespace ddf
