// An address and a port, IPv4 or IPv6, as a value that needs no socket headers.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <ddf/error.hpp>

namespace ddf {

struct endpoint {
  std::array<std::uint8_t, 16> address{};   // IPv4 in the first four bytes, the others zero
  std::uint32_t scope = 0;                  // interface index of a link-local IPv6 address; 0 elsewhere
  std::uint16_t port = 0;
  bool v6 = false;

  auto operator<=>(const endpoint&) const = default;
};

bool is_multicast(const endpoint& e);
bool is_unspecified(const endpoint& e);

/// "239.77.7.7:7700", "[ff15::77:7%2]:7700". Cost: O(1).
std::string to_string(const endpoint& e);
/// The address without the port.
std::string address_text(const endpoint& e);

/// Reads "ADDR:PORT", "ADDR", "[ADDR6%IF]:PORT" or "ADDR6%IF"; a scope may be an interface name or an index.
///
/// Input:  `text`; `default_port` stands when the text names none.
/// Errors: invalid_argument, saying which part is wrong. Names are not looked up: no resolver is asked.
result<endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

/// Where packets come from and go to: a peer's address and the local interface (rail) it is reached by.
struct path {
  endpoint peer;
  std::uint32_t rail = 0;   // index into the shell's list of interfaces
  auto operator<=>(const path&) const = default;
};

}  // namespace ddf
