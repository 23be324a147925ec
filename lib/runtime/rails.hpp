// The interfaces a publisher or a subscriber uses, checked and kept up to date.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include <ddf/options.hpp>
#include "lib/model/endpoint.hpp"
#include "transports/udp/interfaces.hpp"
#include "transports/verbs/device_selector.hpp"

namespace ddf {

struct network_plan {   // network_options, read and checked
  endpoint group;
  endpoint query;                     // where receivers ask for senders: the group, on the next port
  std::optional<endpoint> source;     // port: the group's
  interface_choice interfaces;
  bool interfaces_named = false;
  int ttl = 1;
  bool verbs = false;                 // DATA goes to the group by RDMA devices
  device_selector devices;
};

/// Errors: invalid_argument naming the option and the cure; network.
result<network_plan> plan_network(const network_options& o);
/// The same, of the interfaces that are given.
result<network_plan> plan_network(const network_options& o, const std::vector<network_interface>& all);
/// The same for one who sends: from the address of `source`, when there is one.
result<network_plan> plan_sending(const network_options& o, const std::vector<network_interface>& all);

/// The UDP payload that an interface carries whole, and the headers in front of it.
std::uint32_t datagram_bytes(const network_interface& n, bool v6, std::uint32_t mtu_option);
constexpr std::uint32_t header_bytes(bool v6) { return v6 ? 48 : 28; }

/// "eth0 (10.0.0.1), eth1 (10.1.0.1)"
std::string describe(const std::vector<network_interface>& rails, const endpoint& group);

}  // namespace ddf
