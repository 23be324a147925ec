#include <algorithm>
#include <array>
#include <charconv>

#include "lib/runtime/host_facts.hpp"

namespace ddf {
namespace {

constexpr std::size_t devices_max = 64, ports_max = 8, gids_max = 256, gids_kept = 64;
constexpr std::size_t gid_places_max = 4096;   // files read, on all devices together

/// "4: ACTIVE" -> "ACTIVE".
std::string behind_colon(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// What is left of a packet for RoCE's payload, rounded down as InfiniBand counts.
std::uint32_t roce_mtu(std::uint32_t interface_mtu) {
  constexpr std::uint32_t headers = 40 + 8 + 12 + 4 + 28 + 4;   // GRH, UDP, BTH, XRC, atomic, ICRC: what Linux sets aside
  for (const std::uint32_t mtu : {4096u, 2048u, 1024u, 512u, 256u})
    if (interface_mtu >= mtu + headers) return mtu;
  return 0;
}

unsigned to_number(const std::string& text) {
  unsigned n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  return ec == std::errc{} && end == text.data() + text.size() ? n : 0;
}

rdma_port gather_port(const host_access& host, const std::string& folder, const std::string& number, const std::vector<host_interface>& interfaces, std::size_t& places) {
  rdma_port port;
  port.number = to_number(number);
  port.state = behind_colon(host.text(folder + "/state", 64));
  port.physical_state = behind_colon(host.text(folder + "/phys_state", 64));
  port.link_layer = host.text(folder + "/link_layer", 64);
  port.rate = host.text(folder + "/rate", 64);
  for (std::size_t i = 0; i < gids_max && port.gids.size() < gids_kept && places > 0; ++i, --places) {
    const std::string index = std::to_string(i);
    rdma_gid gid;
    gid.gid = host.text(folder + "/gids/" + index, 64);
    if (gid.gid.empty()) break;   // the table ends
    if (gid.gid.find_first_not_of("0:") == std::string::npos) continue;
    gid.index = static_cast<unsigned>(i);
    gid.type = host.text(folder + "/gid_attrs/types/" + index, 64);
    gid.interface = host.text(folder + "/gid_attrs/ndevs/" + index, 64);
    const auto owner = std::ranges::find(interfaces, gid.interface, &host_interface::name);
    if (port.link_layer == "Ethernet" && owner != interfaces.end()) port.active_mtu = roce_mtu(owner->mtu);
    port.gids.push_back(std::move(gid));
  }
  return port;
}

}  // namespace

std::vector<rdma_device> gather_rdma(const host_access& host, const std::vector<host_interface>& interfaces) {
  std::vector<rdma_device> devices;
  std::size_t places = gid_places_max;
  const std::string top = "/sys/class/infiniband";
  for (const std::string& name : host.names(top, devices_max)) {
    rdma_device& device = devices.emplace_back();
    device.name = name;
    for (const std::string& number : host.names(top + "/" + name + "/ports", ports_max))
      device.ports.push_back(gather_port(host, top + "/" + name + "/ports/" + number, number, interfaces, places));
  }
  if (devices.empty()) return devices;
  for (const std::string& file : host.names("/sys/class/infiniband_verbs", 2 * devices_max)) {
    const auto device = std::ranges::find(devices, host.text("/sys/class/infiniband_verbs/" + file + "/ibdev", 64), &rdma_device::name);
    if (device == devices.end() || !host.exists("/dev/infiniband/" + file)) continue;
    device->file = "/dev/infiniband/" + file;
    device->usable = host.usable(device->file);
  }
  return devices;
}

}  // namespace ddf
