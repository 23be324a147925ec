#include "lib/runtime/host_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace ddf {
namespace {

constexpr std::size_t interfaces_max = 256;
constexpr unsigned cap_net_admin = 12, cap_ipc_lock = 14;

std::optional<unsigned> setting(const host_access& host, const std::string& path) {
  const auto value = host.number(path);
  return value && *value < 1000 ? std::optional<unsigned>(static_cast<unsigned>(*value)) : std::nullopt;
}

/// Of a setting that stands for all interfaces and for each, the larger one is in force.
std::optional<unsigned> larger(std::optional<unsigned> a, std::optional<unsigned> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

/// What kind of interface this is. /sys may show another network namespace than ours: it counts where the index agrees.
std::string kind_of(const host_access& host, const network_interface& n, const std::string& driver) {
  if (n.loopback) return "loopback";
  const std::string folder = "/sys/class/net/" + n.name;
  const bool ours = host.number(folder + "/ifindex") == n.index;
  const std::string type = ours ? host.text(folder + "/type", 32) : std::string();
  if (type == "32") return "infiniband";
  if (ours) {
    const std::string events = host.text(folder + "/uevent");   // lines as in "DEVTYPE=wlan"
    const auto at = events.find("DEVTYPE=");
    if (at != std::string::npos && (at == 0 || events[at - 1] == '\n')) return events.substr(at + 8, events.find('\n', at) - at - 8);
  }
  static constexpr std::array<std::array<std::string_view, 2>, 10> drivers{{{"veth", "veth"}, {"bridge", "bridge"}, {"bonding", "bond"}, {"802.1Q VLAN Support", "vlan"}, {"macvlan", "macvlan"},
                                                                           {"ipvlan", "ipvlan"}, {"vxlan", "vxlan"}, {"tun", "tun"}, {"dummy", "dummy"}, {"ifb", "ifb"}}};
  for (const auto& [theirs, ours_word] : drivers)
    if (driver == theirs) return std::string(ours_word);
  return type == "1" ? "ethernet" : "";
}

/// The versions of IGMP in the lines "4  eth0  :  1  V3" of /proc/net/igmp, by index. 0: none is said.
unsigned querier_version(const std::string& igmp, unsigned index) {
  std::istringstream lines(igmp);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    unsigned number = 0;
    std::string name, colon, count, version;
    if (!line.empty() && line[0] != '\t' && words >> number >> name >> colon >> count >> version && number == index && version.size() == 2 && version[0] == 'V' && version[1] >= '1' && version[1] <= '3')
      return static_cast<unsigned>(version[1] - '0');
  }
  return 0;
}

/// A counter of /proc/net/snmp and its kin: a line of names and a line of numbers, both behind "Udp:".
std::uint64_t counter(const std::string& text, const std::string& group, const std::string& name) {
  std::istringstream lines(text);
  std::string names, numbers;
  while (std::getline(lines, names)) {
    if (!names.starts_with(group + ": ") || !std::getline(lines, numbers)) continue;
    std::istringstream keys(names), values(numbers);
    std::string key, value;
    while (keys >> key && values >> value) {
      std::uint64_t n = 0;
      if (key == name && std::from_chars(value.data(), value.data() + value.size(), n).ec == std::errc{}) return n;
    }
  }
  return 0;
}

/// The second column of /proc/net/softnet_stat, in hexadecimal, over all processors.
std::uint64_t backlog_drops(const std::string& text) {
  std::istringstream lines(text);
  std::string line, first, second;
  std::uint64_t sum = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::uint64_t n = 0;
    if (words >> first >> second && std::from_chars(second.data(), second.data() + second.size(), n, 16).ec == std::errc{}) sum += n;
  }
  return sum;
}

bool capable(const std::string& status, unsigned capability) {
  const std::string mask = field(status, "CapEff");
  std::uint64_t bits = 0;
  return std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16).ec == std::errc{} && (bits >> capability & 1) != 0;
}

std::uint64_t leading_number(const std::string& text) {
  std::uint64_t n = 0;
  return std::from_chars(text.data(), text.data() + text.size(), n).ec == std::errc{} ? n : 0;
}

std::string container_of(const host_access& host) {
  if (host.exists("/run/secrets/kubernetes.io")) return "kubernetes";
  if (host.exists("/.dockerenv")) return "docker";
  if (host.exists("/run/.containerenv")) return "podman";
  return host.text("/run/systemd/container", 32);
}

std::string cloud_of(const host_access& host) {
  const std::string dmi = "/sys/class/dmi/id/";
  if (host.text(dmi + "sys_vendor", 128) == "Amazon EC2") return "Amazon EC2";
  if (host.text(dmi + "product_name", 128) == "Google Compute Engine") return "Google Compute Engine";
  if (host.text(dmi + "chassis_asset_tag", 128) == "7783-7084-3265-9085-8269-3286-77") return "Microsoft Azure";
  return {};
}

}  // namespace

static host_interface describe_interface(host_access& host, const network_interface& n, const endpoint& group, const std::string& igmp) {
  host_interface out;
  out.name = n.name;
  out.index = n.index;
  for (const interface_address& a : n.addresses) out.addresses.push_back(address_text(a.address) + "/" + std::to_string(a.prefix_bits));
  out.up = n.up;
  out.multicast = n.multicast;
  out.loopback = n.loopback;
  out.mtu = n.mtu;
  const card_facts card = host.card(n.name);
  out.driver = card.driver;
  out.bits_per_s = card.bits_per_s;
  out.receive_ring = card.receive_ring;
  out.receive_ring_max = card.receive_ring_max;
  out.kind = kind_of(host, n, card.driver);
  static constexpr std::array<std::string_view, 4> for_virtual_functions{"iavf", "i40evf", "ixgbevf", "igbvf"};
  const std::string folder = "/sys/class/net/" + n.name;
  out.virtual_function = std::ranges::find(for_virtual_functions, card.driver) != for_virtual_functions.end() ||
                         (host.number(folder + "/ifindex") == n.index && !host.link(folder + "/device/physfn").empty());
  const std::string settings = group.v6 ? "/proc/sys/net/ipv6/conf/" : "/proc/sys/net/ipv4/conf/", forced = group.v6 ? "/force_mld_version" : "/force_igmp_version";
  if (!group.v6) {
    out.rp_filter = larger(setting(host, settings + "all/rp_filter"), setting(host, settings + n.name + "/rp_filter"));
    out.querier_version = querier_version(igmp, n.index);
  }
  // For versions the setting of all wins when there is one, whichever is larger.
  out.forced_version = setting(host, settings + "all" + forced);
  if (!out.forced_version || *out.forced_version == 0) out.forced_version = setting(host, settings + n.name + forced);
  return out;
}

static void choose(host_facts& facts, const result<network_plan>& plan, const std::vector<network_interface>& all, const endpoint& group, std::uint32_t mtu_option) {
  for (std::size_t i = 0; i < facts.interfaces.size(); ++i) {
    host_interface& n = facts.interfaces[i];
    const network_interface* rail = nullptr;
    if (plan)
      for (const network_interface& r : plan->interfaces.rails)
        if (r.index == n.index && r.name == n.name) rail = &r;
    if (rail != nullptr) {
      n.chosen = true;
      if (const endpoint* address = rail->address_for(group); address != nullptr) n.address = address_text(*address);
      n.datagram_bytes = datagram_bytes(all[i], group.v6, mtu_option);
    } else {
      n.passed_over = unsuitable(all[i], group);
      if (n.passed_over.empty()) n.passed_over = !plan ? "is not used, because nothing is" : plan->interfaces_named ? "is not among those named" : "is beyond the 16 that are used";
    }
  }
}

static void ask_sockets(host_access& host, const network_options& options, const result<network_plan>& plan, const std::vector<network_interface>& all, host_facts& facts) {
  const socket_facts sockets = host.sockets(facts.v6, options.socket_buffer);
  facts.receive_buffer = sockets.receive_buffer;
  facts.send_buffer = sockets.send_buffer;
  facts.gso = sockets.gso;
  facts.gro = sockets.gro;
  std::string local;
  if (plan) {
    if (const auto opened = host.open_group(plan->group); !opened) facts.group_port_taken = describe(opened.error());
    if (const auto opened = host.open_group(plan->query); !opened) facts.query_port_taken = describe(opened.error());
    if (const auto from = host.route(plan->group))
      for (const network_interface& n : all)
        for (const interface_address& a : n.addresses)
          if (a.address.address == from->address && a.address.v6 == from->v6) facts.route = n.name;
    for (const network_interface& n : plan->interfaces.rails)
      if (const endpoint* address = n.address_for(plan->group); address != nullptr && (local.empty() || !n.loopback)) {
        local = address_text(*address);
        if (!n.loopback) break;
      }
  }
  for (const repair_lane lane : {repair_lane::udp, repair_lane::tcp, repair_lane::shm, repair_lane::verbs}) {
    const auto usable = host.lane(lane, local);
    facts.lanes.push_back({lane, usable.has_value(), usable ? *usable : describe(usable.error())});
  }
}

host_facts gather_host_facts(host_access& host, const network_options& options, host_role role) {
  host_facts facts;
  auto all = host.interfaces();
  if (!all) facts.unusable = all.error();
  if (!all) all = std::vector<network_interface>();
  if (all->size() > interfaces_max) all->resize(interfaces_max);
  const auto plan = role == host_role::sender ? plan_sending(options, *all) : plan_network(options, *all);
  if (!plan && facts.unusable.code == errc::ok) facts.unusable = plan.error();

  const endpoint group = plan ? plan->group : parse_endpoint(options.group, 7700).value_or(endpoint{});
  facts.v6 = group.v6;
  facts.group = plan ? to_string(plan->group) : options.group;
  if (plan) facts.query = to_string(plan->query);
  const std::string igmp = host.text("/proc/net/igmp", 1 << 18);
  for (const network_interface& n : *all) facts.interfaces.push_back(describe_interface(host, n, group, igmp));
  choose(facts, plan, *all, group, options.mtu);
  ask_sockets(host, options, plan, *all, facts);

  facts.rmem_max = host.number("/proc/sys/net/core/rmem_max");
  facts.wmem_max = host.number("/proc/sys/net/core/wmem_max");
  facts.memberships_max = host.number("/proc/sys/net/ipv4/igmp_max_memberships");
  facts.source_filters_max = host.number(facts.v6 ? "/proc/sys/net/ipv6/mld_max_msf" : "/proc/sys/net/ipv4/igmp_max_msf");
  const std::string status = host.text("/proc/self/status"), memory = host.text("/proc/meminfo");
  facts.net_admin = capable(status, cap_net_admin);
  facts.ipc_lock = capable(status, cap_ipc_lock);
  facts.memlock_bytes = host.memlock_bytes();
  facts.hugepages_free = leading_number(field(memory, "HugePages_Free"));
  facts.hugepage_bytes = leading_number(field(memory, "Hugepagesize")) * 1024;
  facts.receive_buffer_errors = counter(host.text("/proc/net/snmp", 1 << 16), "Udp", "RcvbufErrors");
  facts.rp_filter_drops = counter(host.text("/proc/net/netstat", 1 << 16), "TcpExt", "IPReversePathFilter");
  facts.backlog_drops = backlog_drops(host.text("/proc/net/softnet_stat", 1 << 18));

  facts.rdma = gather_rdma(host, facts.interfaces);
  facts.firewall = host.firewall();
  facts.container = container_of(host);
  const std::string own = host.link("/proc/self/ns/net"), first = host.link("/proc/1/ns/net");
  if (!own.empty() && !first.empty()) facts.own_network = own != first;
  facts.cloud = cloud_of(host);
  return facts;
}

}  // namespace ddf
