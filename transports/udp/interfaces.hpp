// The host's network interfaces, and the choice among them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/endpoint.hpp"

namespace ddf {

struct interface_address {
  endpoint address;             // port 0; link-local IPv6 carries its scope
  unsigned prefix_bits = 0;
  bool operator==(const interface_address&) const = default;
};

struct network_interface {
  std::string name;
  unsigned index = 0;
  std::uint32_t mtu = 1500;
  bool up = false, multicast = false, loopback = false;
  std::vector<interface_address> addresses;

  /// The address to send from to `group`: of its family; for IPv6 a global one unless the group is link-local.
  const endpoint* address_for(const endpoint& group) const;
};

/// All interfaces of this network namespace, in the kernel's order. Errors: network. Cost: two system calls and one per interface.
result<std::vector<network_interface>> list_interfaces();

struct interface_choice {
  std::vector<network_interface> rails;
  std::vector<std::string> skipped;   // "eth1 is down": what was passed over, and why
};

/// Why an interface cannot carry `group`: "is down". Empty when it can.
std::string unsuitable(const network_interface& n, const endpoint& group);

/// Which interfaces to use for `group`.
///
/// Input:  `specs`: names, addresses or CIDRs; empty: every interface that is up and can multicast, and the loopback.
///         A scope in `group` counts as a name.
/// Errors: invalid_argument when a spec matches nothing, or nothing is left; the text lists what there is.
result<interface_choice> choose_interfaces(const std::vector<network_interface>& all, const std::vector<std::string>& specs, const endpoint& group);

/// Whether the address is one of this host's.
bool is_local(const std::vector<network_interface>& all, const endpoint& address);

}  // namespace ddf
