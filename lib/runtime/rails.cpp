#include "lib/runtime/rails.hpp"

#include <algorithm>

#include "lib/wire/data_header.hpp"
#include "lib/model/manifest.hpp"

namespace ddf {

result<network_plan> plan_network(const network_options& o) {
  const auto all = list_interfaces();
  if (!all) return tl::unexpected(all.error());
  return plan_network(o, *all);
}

result<network_plan> plan_sending(const network_options& given, const std::vector<network_interface>& all) {
  network_options o = given;
  if (!o.source.empty()) {   // what receivers joined for: we send from that address
    const auto source = parse_endpoint(o.source, 1);
    if (!source) return fail(errc::invalid_argument, "source: " + source.error().what);
    if (o.interfaces.empty()) {
      const auto has = [&](const network_interface& n) { return std::ranges::any_of(n.addresses, [&](const interface_address& a) { return a.address.address == source->address; }); };
      if (std::ranges::none_of(all, has)) return fail(errc::invalid_argument, "source: no interface of this host has the address " + o.source + " (see: ip address)");
      o.interfaces = {address_text(*source)};
    }
  }
  auto plan = plan_network(o, all);
  if (plan && plan->source)
    for (network_interface& n : plan->interfaces.rails)
      std::erase_if(n.addresses, [&](const interface_address& a) { return a.address.address != plan->source->address; });
  return plan;
}

static result<void> plan_transport(const network_options& o, network_plan& plan) {
  if (o.transport != "udp" && o.transport != "verbs") return fail(errc::invalid_argument, "transport: '" + o.transport + "' is not known; it is udp or verbs");
  plan.verbs = o.transport == "verbs";
  if (!plan.verbs && (!o.device.empty() || o.traffic_class != -1 || o.service_level != -1))
    return fail(errc::invalid_argument, "device, traffic_class and service_level are for the transport verbs");
  if (o.traffic_class < -1 || o.traffic_class > 255) return fail(errc::invalid_argument, "traffic_class: " + std::to_string(o.traffic_class) + " is not a number from 0 to 255");
  if (o.service_level < -1 || o.service_level > 15) return fail(errc::invalid_argument, "service_level: " + std::to_string(o.service_level) + " is not a number from 0 to 15");
  auto devices = device_selector::parse(o.device);
  if (!devices) return tl::unexpected(devices.error());
  plan.devices = std::move(*devices);
  if (plan.verbs && o.multicast == multicast_use::off) return fail(errc::invalid_argument, "transport: verbs carries what goes to the group, and multicast is off: use the transport udp");
  return {};
}

result<network_plan> plan_network(const network_options& o, const std::vector<network_interface>& all) {
  network_plan plan;
  auto group = parse_endpoint(o.group, 7700);
  if (!group) return fail(errc::invalid_argument, "group: " + group.error().what);
  if (!is_multicast(*group)) return fail(errc::invalid_argument, "group: " + address_text(*group) + " is not a multicast address (224.0.0.0 to 239.255.255.255, or ff00::/8); for example 239.77.7.7:7700");
  plan.group = *group;
  plan.query = *group;
  plan.query.port = group->port == 65535 ? std::uint16_t(65534) : static_cast<std::uint16_t>(group->port + 1);
  if (!o.source.empty()) {
    auto source = parse_endpoint(o.source, group->port);
    if (!source) return fail(errc::invalid_argument, "source: " + source.error().what);
    if (is_multicast(*source) || is_unspecified(*source)) return fail(errc::invalid_argument, "source: " + o.source + " is not a host's address");
    if (source->v6 != group->v6) return fail(errc::invalid_argument, "source: " + o.source + " is not of the group's address family");
    plan.source = *source;
  }
  if (o.ttl < 0 || o.ttl > 255) return fail(errc::invalid_argument, "ttl: " + std::to_string(o.ttl) + " is not a number from 0 to 255");
  plan.ttl = o.ttl;
  if (auto ok = plan_transport(o, plan); !ok) return tl::unexpected(ok.error());
  const std::uint32_t least = limits::segment_bytes_min + data_header::wire_size + header_bytes(group->v6);
  if (o.mtu != 0 && (o.mtu < std::max(least, 1280u) || o.mtu > 65535)) return fail(errc::invalid_argument, "mtu: " + std::to_string(o.mtu) + " is not a number from 1280 to 65535");
  auto choice = choose_interfaces(all, o.interfaces, plan.group);
  if (!choice) return tl::unexpected(choice.error());
  plan.interfaces = std::move(*choice);
  plan.interfaces_named = !o.interfaces.empty() || group->scope != 0;
  if (plan.group.v6 && plan.group.scope == 0 && (plan.group.address[1] & 0x0f) <= 2 && plan.interfaces.rails.size() != 1)
    return fail(errc::invalid_argument, "group: the link-local group " + address_text(plan.group) + " needs an interface: [" + address_text(plan.group) + "%eth0]:" + std::to_string(plan.group.port) + " or --interface");
  // A link-local address means nothing to the system without its link.
  if (plan.group.v6 && plan.group.scope == 0 && (plan.group.address[1] & 0x0f) <= 2) plan.group.scope = plan.query.scope = plan.interfaces.rails.front().index;
  return plan;
}

std::uint32_t datagram_bytes(const network_interface& n, bool v6, std::uint32_t mtu_option) {
  // Beyond 9,000 (the loopback has 65,536) a super-packet of small segments is charged to sockets far less than large datagrams are.
  std::uint32_t mtu = std::min(n.mtu, 9000u);
  if (mtu_option != 0) mtu = std::min(n.mtu, mtu_option);
  const std::uint32_t most = limits::segment_bytes_max + static_cast<std::uint32_t>(data_header::wire_size);
  const std::uint32_t least = limits::segment_bytes_min + static_cast<std::uint32_t>(data_header::wire_size);
  return std::clamp(mtu - std::min(mtu, header_bytes(v6)), least, most);
}

std::string describe(const std::vector<network_interface>& rails, const endpoint& group) {
  std::string text;
  for (const network_interface& n : rails) {
    const endpoint* a = n.address_for(group);
    text += (text.empty() ? "" : ", ") + n.name + (a != nullptr ? " (" + address_text(*a) + ")" : "");
  }
  return text;
}

}  // namespace ddf
