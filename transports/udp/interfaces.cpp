#include "transports/udp/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace ddf {

static bool link_local(const endpoint& e) { return e.v6 && e.address[0] == 0xfe && (e.address[1] & 0xc0) == 0x80; }
static bool link_local_group(const endpoint& e) { return e.v6 && e.address[0] == 0xff && (e.address[1] & 0x0f) <= 2; }

const endpoint* network_interface::address_for(const endpoint& group) const {
  const endpoint* found = nullptr;
  for (const interface_address& a : addresses) {
    if (a.address.v6 != group.v6) continue;
    if (found == nullptr) found = &a.address;
    if (group.v6 && link_local(*found) != link_local_group(group) && link_local(a.address) == link_local_group(group)) found = &a.address;
  }
  return found;
}

static unsigned prefix_of(const sockaddr* mask, bool v6) {
  unsigned bits = 0;
  if (mask == nullptr) return v6 ? 128 : 32;
  if (v6) {
    for (const std::uint8_t b : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) bits += static_cast<unsigned>(std::popcount(b));
  } else {
    bits = static_cast<unsigned>(std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr));
  }
  return bits;
}

result<std::vector<network_interface>> list_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail(errc::network, "listing the network interfaces", errno);
  std::vector<network_interface> out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    auto it = std::ranges::find(out, std::string_view(i->ifa_name), &network_interface::name);
    if (it == out.end()) {
      network_interface n;
      n.name = i->ifa_name;
      n.index = ::if_nametoindex(i->ifa_name);
      n.up = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0;
      n.multicast = (i->ifa_flags & IFF_MULTICAST) != 0;
      n.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
      it = out.insert(out.end(), std::move(n));
    }
    if (i->ifa_addr == nullptr) continue;
    interface_address a;
    if (i->ifa_addr->sa_family == AF_INET) {
      std::memcpy(a.address.address.data(), &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, 4);
      a.prefix_bits = prefix_of(i->ifa_netmask, false);
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      a.address.v6 = true;
      std::memcpy(a.address.address.data(), &reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr, 16);
      if (link_local(a.address)) a.address.scope = it->index;
      a.prefix_bits = prefix_of(i->ifa_netmask, true);
    } else {
      continue;
    }
    it->addresses.push_back(a);
  }
  ::freeifaddrs(list);
  const int s = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (s >= 0) {
    for (network_interface& n : out) {
      ifreq request{};
      std::strncpy(request.ifr_name, n.name.c_str(), IFNAMSIZ - 1);
      if (::ioctl(s, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0) n.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
    }
    ::close(s);
  }
  return out;
}

bool is_local(const std::vector<network_interface>& all, const endpoint& address) {
  for (const network_interface& n : all)
    for (const interface_address& a : n.addresses)
      if (a.address.v6 == address.v6 && a.address.address == address.address) return true;
  return !address.v6 && address.address[0] == 127;
}

static bool in_network(const endpoint& address, const endpoint& network, unsigned bits) {
  if (address.v6 != network.v6) return false;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned shift = 7 - i % 8;
    if ((address.address[i / 8] >> shift & 1) != (network.address[i / 8] >> shift & 1)) return false;
  }
  return true;
}

// Whether an interface is meant by a name, an address or a CIDR.
static result<bool> matches(const network_interface& n, const std::string& spec) {
  if (n.name == spec) return true;
  const auto slash = spec.find('/');
  auto network = parse_endpoint(spec.substr(0, slash), 1);
  if (!network) return false;   // a name, of another interface
  unsigned bits = network->v6 ? 128 : 32;
  if (slash != std::string::npos) {
    const char* first = spec.data() + slash + 1;
    const auto [end, ec] = std::from_chars(first, spec.data() + spec.size(), bits);
    if (ec != std::errc{} || end != spec.data() + spec.size() || bits > (network->v6 ? 128u : 32u))
      return fail(errc::invalid_argument, "interface '" + spec + "': the prefix length is not a number from 0 to " + (network->v6 ? "128" : "32"));
  }
  return std::ranges::any_of(n.addresses, [&](const interface_address& a) { return in_network(a.address, *network, bits); });
}

static std::string describe_all(const std::vector<network_interface>& all) {
  std::string text;
  for (const network_interface& n : all) {
    text += (text.empty() ? "" : ", ") + n.name;
    for (const interface_address& a : n.addresses) text += " " + address_text(a.address);
    if (!n.up) text += " (down)";
    if (!n.multicast && !n.loopback) text += " (no multicast)";
  }
  return text.empty() ? "none" : text;
}

std::string unsuitable(const network_interface& n, const endpoint& group) {
  if (!n.up) return "is down";
  if (n.address_for(group) == nullptr) return std::string("has no ") + (group.v6 ? "IPv6" : "IPv4") + " address";
  if (!n.multicast && !n.loopback) return "cannot multicast";
  return {};
}

result<interface_choice> choose_interfaces(const std::vector<network_interface>& all, const std::vector<std::string>& specs, const endpoint& group) {
  interface_choice choice;
  std::vector<bool> spec_used(specs.size(), false);
  for (const network_interface& n : all) {
    bool named = group.scope != 0 && group.scope == n.index;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto m = matches(n, specs[i]);
      if (!m) return tl::unexpected(m.error());
      if (*m) named = spec_used[i] = true;
    }
    if (group.scope != 0 && group.scope != n.index) continue;
    if (!specs.empty() && !named) continue;
    if (const std::string why = unsuitable(n, group); !why.empty()) choice.skipped.push_back(n.name + " " + why);
    else choice.rails.push_back(n);
  }
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!spec_used[i]) return fail(errc::invalid_argument, "interface '" + specs[i] + "' matches none of: " + describe_all(all));
  if (choice.rails.empty()) {
    std::string why;
    for (const std::string& s : choice.skipped) why += (why.empty() ? "" : "; ") + s;
    return fail(errc::network, "no interface can carry multicast to " + address_text(group) + (why.empty() ? "" : " (" + why + ")") + "; there are: " + describe_all(all));
  }
  if (choice.rails.size() > 16) choice.rails.resize(16);   // one socket joins 20 groups by default
  return choice;
}

}  // namespace ddf
