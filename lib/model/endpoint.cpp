#include "lib/model/endpoint.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>

namespace ddf {

bool is_multicast(const endpoint& e) { return e.v6 ? e.address[0] == 0xff : (e.address[0] & 0xf0) == 0xe0; }

bool is_unspecified(const endpoint& e) {
  return std::ranges::all_of(e.address, [](std::uint8_t b) { return b == 0; });
}

std::string address_text(const endpoint& e) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(e.v6 ? AF_INET6 : AF_INET, e.address.data(), buffer.data(), buffer.size());
  std::string text = buffer.data();
  if (e.v6 && e.scope != 0) text += "%" + std::to_string(e.scope);
  return text;
}

std::string to_string(const endpoint& e) {
  const std::string text = address_text(e);
  return (e.v6 ? "[" + text + "]" : text) + ":" + std::to_string(e.port);
}

static result<std::uint16_t> parse_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || value == 0 || value > 65535)
    return fail(errc::invalid_argument, "port '" + std::string(text) + "' is not a number from 1 to 65535");
  return static_cast<std::uint16_t>(value);
}

result<endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  endpoint e;
  e.port = default_port;
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos)
      return fail(errc::invalid_argument, "address '" + std::string(text) + "' lacks its closing ']'");
    host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':'))
      return fail(errc::invalid_argument, "address '" + std::string(text) + "': after ']' comes ':PORT' or nothing");
    if (!rest.empty()) port = rest.substr(1);
    if (!rest.empty() && port.empty()) return fail(errc::invalid_argument, "address '" + std::string(text) + "': the port is missing");
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
    if (port.empty()) return fail(errc::invalid_argument, "address '" + std::string(text) + "': the port is missing");
  }
  if (!port.empty()) {
    auto value = parse_port(port);
    if (!value) return tl::unexpected(value.error());
    e.port = *value;
  }
  std::string address(host);
  std::string scope;
  if (const auto percent = address.find('%'); percent != std::string::npos) {
    scope = address.substr(percent + 1);
    address.resize(percent);
    if (scope.empty()) return fail(errc::invalid_argument, "address '" + std::string(text) + "': the interface after '%' is missing");
  }
  const bool whole = address.find('\0') == std::string::npos;   // the C functions below would stop there
  if (whole && ::inet_pton(AF_INET, address.c_str(), e.address.data()) == 1 && scope.empty()) return e;
  e.address = {};
  if (!whole || ::inet_pton(AF_INET6, address.c_str(), e.address.data()) != 1)
    return fail(errc::invalid_argument, "'" + std::string(host) + "' is not an IPv4 or IPv6 address (names are not looked up)");
  e.v6 = true;
  if (!scope.empty()) {
    unsigned index = ::if_nametoindex(scope.c_str());
    const char* const end = scope.data() + scope.size();
    if (index == 0 && std::from_chars(scope.data(), end, index).ptr != end) index = 0;
    if (index == 0) return fail(errc::invalid_argument, "there is no interface '" + scope + "' (see: ip link)");
    e.scope = index;
  }
  return e;
}

}  // namespace ddf
