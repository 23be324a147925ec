#include "lib/plan/host_findings.hpp"

#include <algorithm>
#include <array>

#include "lib/model/endpoint.hpp"

namespace ddf {

std::string_view name(severity s) {
  static constexpr std::array<std::string_view, 4> names{"ok", "note", "warning", "problem"};
  const auto i = static_cast<std::size_t>(s);
  return i < names.size() ? names[i] : "unknown";
}

namespace {

constexpr std::uint64_t receive_buffer_least = 1 << 20;   // granted; the subscriber warns below it, too
constexpr std::uint64_t rmem_suggested = 32 << 20, wmem_suggested = 4 << 20;
constexpr std::uint64_t send_buffer_least = 4 << 20;      // what is asked for; the kernel counts twice that
constexpr std::uint64_t memlock_least = 256 << 20;        // registered memory of one transfer, with room
constexpr std::uint64_t gbit = 1'000'000'000;

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes) + " bytes";
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? std::string() : std::string(between)) + part;
  return text;
}

class judge {
 public:
  judge(host_facts facts, const network_options& options, host_role role) : options_(options) {
    report_.role = role;
    report_.facts = std::move(facts);
  }

  host_report judged() {
    choose();
    interfaces();
    for (const host_interface& n : report_.facts.interfaces)
      if (n.chosen && !n.loopback) interface(n);
    group();
    routes();
    ports();
    buffers();
    memberships();
    segmentation();
    counters();
    firewall();
    surroundings();
    repair();
    transport();
    rdma();
    std::ranges::stable_sort(report_.findings, [](severity a, severity b) { return a > b; }, &host_finding::level);
    return std::move(report_);
  }

 private:
  void add(severity level, std::string id, std::string what, std::string why = {}, std::string cure = {}) {
    report_.findings.push_back({level, std::move(id), std::move(what), std::move(why), std::move(cure)});
  }
  const host_facts& facts() const { return report_.facts; }
  bool sends() const { return report_.role == host_role::sender; }
  bool named() const { return !interfaces_why().empty(); }
  /// By which option the interfaces were named; empty: by none.
  std::string interfaces_why() const {
    if (!options_.interfaces.empty()) return "named by --interface";
    if (options_.group.find('%') != std::string::npos) return "named in --group";
    return sends() && !options_.source.empty() ? "the one with the address of --source" : "";
  }
  bool uses_group() const { return options_.multicast != multicast_use::off; }
  std::string other_networks_too() const { return sends() ? "it announces on each" : "it joins on each"; }

  std::vector<const host_interface*> chosen(bool loopback_too = false) const {
    std::vector<const host_interface*> out;
    for (const host_interface& n : facts().interfaces)
      if (n.chosen && (loopback_too || !n.loopback)) out.push_back(&n);
    return out;
  }

  // --- the choice -----------------------------------------------------------------------------------------------------

  void choose() {
    host_choice& c = report_.choice;
    c.problem = facts().unusable;
    const host_interface* smallest = nullptr;
    for (const host_interface* n : chosen(true)) {
      c.interfaces.push_back(n->name + (n->address.empty() ? "" : " (" + n->address + ")"));
      if (smallest == nullptr || n->datagram_bytes < smallest->datagram_bytes) smallest = n;
    }
    if (smallest == nullptr) return;
    c.interfaces_why = named() ? interfaces_why() : "every one that is up, can multicast and has an " + family() + " address";
    c.datagram_bytes = smallest->datagram_bytes;
    const std::string headers = facts().v6 ? " less 48 bytes of IPv6 and UDP headers" : " less 28 bytes of IPv4 and UDP headers";
    if (options_.mtu != 0 && options_.mtu <= smallest->mtu) c.datagram_why = "--mtu " + std::to_string(options_.mtu) + headers;
    else if (smallest->mtu > 9000) c.datagram_why = "9000, the most that is used of the MTU of " + smallest->name + "," + headers;
    else c.datagram_why = "the MTU of " + smallest->name + ", " + std::to_string(smallest->mtu) + "," + headers;
    if (options_.multicast == multicast_use::off) {
      c.bulk = "udp unicast";
      c.bulk_why = "--multicast off";
    } else {
      c.bulk = "udp multicast";
      c.bulk_why = options_.multicast == multicast_use::require ? "--multicast require: a receiver that hears no multicast fails"
                                                                : "receivers that hear no multicast are served by unicast";
    }
    choose_lane();
  }

  const lane_facts* lane(repair_lane wanted) const {
    const auto found = std::ranges::find(facts().lanes, wanted, &lane_facts::lane);
    return found == facts().lanes.end() ? nullptr : &*found;
  }

  void choose_lane() {
    host_choice& c = report_.choice;
    const bool automatic = options_.repair == repair_lane::automatic;
    const auto usable = [this](repair_lane l) { const lane_facts* f = lane(l); return f != nullptr && f->usable ? f : nullptr; };
    const lane_facts* found = automatic ? usable(repair_lane::verbs) : usable(options_.repair);
    if (automatic && found == nullptr) found = usable(repair_lane::tcp);
    if (automatic && found == nullptr) found = usable(repair_lane::udp);
    if (found == nullptr) return;
    c.repair = name_of(found->lane);
    c.repair_why = automatic ? "what auto takes with a host that has it too, for who misses much; within a host it is shared memory, else UDP: " + found->what : "--repair " + c.repair + ": " + found->what;
  }

  // --- interfaces -----------------------------------------------------------------------------------------------------

  std::string family() const { return facts().v6 ? "IPv6" : "IPv4"; }

  void interfaces() {
    if (facts().unusable.code != errc::ok) {
      add(severity::problem, "interfaces", describe(facts().unusable), "nothing can be opened with these options",
          facts().unusable.code == errc::network ? "ip -brief address" : "");
      return;
    }
    const auto used = chosen();
    if (used.empty()) {
      add(severity::warning, "interfaces", "only the loopback would be used", "no other host is reached", "ip -brief link");
    } else if (used.size() > 1 && !named()) {
      add(severity::note, "interfaces", std::to_string(used.size()) + " interfaces would be used: " + other_networks_too(),
          "name one on hosts with several networks, so that management and container networks carry nothing", "--interface " + used.front()->name);
    } else {
      add(severity::ok, "interfaces", joined(report_.choice.interfaces, ", "));
    }
    for (const host_interface& n : facts().interfaces) passed_over(n);
  }

  // An interface that was meant, or that looks as if it were.
  void passed_over(const host_interface& n) {
    const bool meant = !options_.interfaces.empty() && std::ranges::find(options_.interfaces, n.name) != options_.interfaces.end();
    if (n.chosen || n.loopback || n.passed_over.empty()) return;
    if (!meant && !(n.up && !n.addresses.empty() && !n.multicast)) return;
    const std::string cure = !n.up ? "ip link set dev " + n.name + " up" : !n.multicast ? "ip link set dev " + n.name + " multicast on" : "";
    add(meant ? severity::warning : severity::note, "interface_passed_over", n.name + " " + n.passed_over, meant ? "it was named, and cannot be used" : "it cannot carry the group", cure);
  }

  void interface(const host_interface& n) {
    reverse_path(n);
    packet_size(n);
    if (uses_group()) {
      membership_protocol(n);
      kind(n);
    }
    if (n.receive_ring != 0 && n.receive_ring < n.receive_ring_max && n.bits_per_s >= 10 * gbit)
      add(severity::note, "receive_ring", n.name + ": its receive ring holds " + std::to_string(n.receive_ring) + " of " + std::to_string(n.receive_ring_max) + " packets",
          "a burst that the ring cannot hold is lost before the socket sees it", "ethtool -G " + n.name + " rx " + std::to_string(n.receive_ring_max));
    if (n.bits_per_s != 0 && n.bits_per_s < gbit)
      add(severity::note, "speed", n.name + ": its link is of " + std::to_string(n.bits_per_s / 1'000'000) + " Mbit/s", "the slowest receiver sets the pace of the group", "ethtool " + n.name);
  }

  void reverse_path(const host_interface& n) {
    if (facts().v6 || !n.rp_filter || *n.rp_filter != 1) return;
    const bool bites = facts().rp_filter_drops != 0;
    if (chosen().size() < 2 && !bites) return;   // with one network every source is reached by it
    add(severity::warning, "rp_filter", n.name + ": rp_filter is 1 (strict)" + (bites ? "; " + std::to_string(facts().rp_filter_drops) + " packets were dropped by it since the start" : ""),
        "packets whose source is not reached by the interface they came in by are dropped, although tcpdump shows them",
        "sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf." + n.name + ".rp_filter=2");
  }

  void membership_protocol(const host_interface& n) {
    const std::string protocol = facts().v6 ? "MLD" : "IGMP";
    const unsigned full = facts().v6 ? 2 : 3;
    const bool by_source = !options_.source.empty();
    const severity level = by_source ? severity::warning : severity::note;
    const std::string why = by_source ? "--source is of no use to the switches: they learn the group and not the source" : "switches learn of no sources; without --source that is no matter";
    if (n.forced_version && *n.forced_version != 0 && *n.forced_version < full) {
      const std::string key = std::string(facts().v6 ? "net.ipv6.conf." : "net.ipv4.conf.") , leaf = facts().v6 ? ".force_mld_version=0" : ".force_igmp_version=0";
      add(level, "membership_version", n.name + ": " + protocol + " is forced to version " + std::to_string(*n.forced_version), why, "sysctl -w " + key + "all" + leaf + " " + key + n.name + leaf);
    } else if (n.querier_version != 0 && n.querier_version < full) {
      add(level, "membership_version", n.name + ": the querier of this network speaks " + protocol + " version " + std::to_string(n.querier_version), why,
          "# on the switch or router: version " + std::to_string(full) + " of " + protocol);
    }
  }

  void packet_size(const host_interface& n) {
    if (options_.mtu > n.mtu)
      add(severity::note, "mtu", n.name + ": its MTU is " + std::to_string(n.mtu) + ", less than --mtu " + std::to_string(options_.mtu), "packets are as large as the interface takes", "ip link set dev " + n.name + " mtu " + std::to_string(options_.mtu));
    else if (options_.mtu == 0 && n.mtu <= 1500 && n.bits_per_s >= 25 * gbit)
      add(severity::note, "mtu", n.name + ": its MTU is " + std::to_string(n.mtu), "at this speed larger packets save processor time; every port of the network must take them", "ip link set dev " + n.name + " mtu 9000");
  }

  void kind(const host_interface& n) {
    if (n.kind == "wlan")
      add(severity::warning, "wireless", n.name + " is wireless", "multicast goes at its lowest rate, and what is lost is not sent again by the link", "# a cable, or --multicast off for few receivers");
    if (n.kind == "macvlan" || n.kind == "macvtap")
      add(severity::note, "macvlan", n.name + " is a " + n.kind, "it and the host it is on do not hear each other; other hosts and its siblings do");
    if (n.kind == "bridge" && !named())
      add(severity::note, "bridge", n.name + " is a bridge of this host", "with IGMP snooping and no querier it forgets members, or floods; bridges of containers lead nowhere",
          "ip -details link show " + n.name + "\n--interface with the name of another");
    if (!facts().container.empty() && n.kind == "veth")
      add(severity::warning, "container_network", n.name + ": a network of " + facts().container + " behind a bridge", "such networks carry no multicast to and from other hosts",
          "# run with the network of the host (--network host; hostNetwork: true), or with a macvlan of the real interface");
    if (n.virtual_function)
      add(severity::note, "virtual_function", n.name + " is a virtual function of a card", "some pass only the groups that the host allows them: a receiver is deaf until something, as tcpdump, makes the interface promiscuous",
          "ip link set dev " + n.name + " allmulticast on   # on the host: ip link set dev PARENT vf N trust on");
  }

  // --- the group ------------------------------------------------------------------------------------------------------

  void group() {
    const auto parsed = parse_endpoint(options_.group, 7700);
    if (!parsed || !is_multicast(*parsed) || !uses_group()) return;   // that it is no group, `unusable` says
    const auto& a = parsed->address;
    if (!parsed->v6 && (a[1] & 0x7f) == 0 && a[2] == 0)
      add(severity::note, "group_address", address_text(*parsed) + " has the same hardware address as 224.0.0." + std::to_string(a[3]), "many switches flood it to every port", "--group 239.77.7.7:7700");
    const bool for_sources = parsed->v6 ? (a[1] & 0xf0) == 0x30 && a[2] == 0 && a[3] == 0 : a[0] == 232;
    if (for_sources && options_.source.empty())
      add(severity::warning, "group_source", address_text(*parsed) + " is of the range for source-specific multicast", "routers pass it on only to those who name the sender", "--source with the address of the sender");
    if (options_.ttl == 0) add(severity::warning, "ttl", "--ttl 0 keeps packets on this host", "no other host is reached", "--ttl 1");
  }

  void routes() {
    if (facts().unusable.code != errc::ok || chosen().empty() || !uses_group()) return;
    const host_interface* by = nullptr;
    for (const host_interface* n : chosen(true))
      if (n->name == facts().route) by = n;
    const std::string network = facts().v6 ? "ff00::/8" : "239.0.0.0/8", ip = facts().v6 ? "ip -6 route" : "ip route";
    if (facts().route.empty())
      add(severity::note, "route", "no route leads to the group", "ddf names the interface itself; other programs, and a test with ping, fail", ip + " add " + (facts().v6 ? "multicast " : "") + network + " dev " + chosen().front()->name);
    else if (by == nullptr)
      add(severity::note, "route", "by its routes the system would send to the group by " + facts().route, "ddf names the interface itself; a test with another program takes the other network", ip + " get " + network.substr(0, network.find('/')));
    else
      add(severity::ok, "route", "by " + facts().route);
  }

  void ports() {
    if (!uses_group()) return;
    if (!facts().group_port_taken.empty())
      add(sends() ? severity::note : severity::problem, "group_port", facts().group_port_taken, sends() ? "receivers on this host hear nothing" : "nothing that is sent to the group would arrive here", cure_of_port(facts().group));
    else add(severity::ok, "group_port", facts().group + " can be opened");
    if (sends() && !facts().query_port_taken.empty())
      add(severity::warning, "query_port", facts().query_port_taken, "receivers that hear no multicast cannot ask for this sender", cure_of_port(facts().query));
  }

  static std::string cure_of_port(const std::string& at) { return "ss -ulpn 'sport = :" + at.substr(at.rfind(':') + 1) + "'"; }

  // --- limits ---------------------------------------------------------------------------------------------------------

  static std::string sysctl(const std::string& key, std::uint64_t value) {
    const std::string text = key + "=" + std::to_string(value);
    return "sysctl -w " + text + "\necho " + text + " >> /etc/sysctl.d/60-ddf.conf";
  }

  void buffers() {
    const std::uint64_t granted = facts().receive_buffer, asked = options_.socket_buffer;
    if (granted == 0) {
      add(severity::problem, "receive_buffer", "no UDP socket could be opened", "nothing can be sent or received", facts().v6 ? "sysctl net.ipv6.conf.all.disable_ipv6" : "");
      return;
    }
    std::string what = bytes_text(granted / 2) + " of receive buffer were granted, of " + bytes_text(asked);   // the kernel counts twice what is asked for
    if (facts().rmem_max && *facts().rmem_max < asked) what += "; net.core.rmem_max is " + std::to_string(*facts().rmem_max);
    const std::string cure = sysctl("net.core.rmem_max", std::max(rmem_suggested, asked));
    if (granted < receive_buffer_least && 2 * asked >= receive_buffer_least && !sends())
      add(severity::warning, "receive_buffer", what, "bursts are lost, and the sender holds back for this host: the group goes at its pace", cure);
    else if (granted < 2 * asked)
      add(severity::note, "receive_buffer", what, sends() ? "answers of many receivers at once may be lost" : "longer pauses of this host lose packets", cure);
    else
      add(severity::ok, "receive_buffer", facts().net_admin && facts().rmem_max && *facts().rmem_max < asked ? what + ", which a user without CAP_NET_ADMIN is held to" : what);
    if (sends() && facts().send_buffer < 2 * std::min(send_buffer_least, asked))
      add(severity::note, "send_buffer", bytes_text(facts().send_buffer / 2) + " of send buffer were granted, of " + bytes_text(std::min(send_buffer_least, asked)), "more wake-ups and a lower rate; no loss", sysctl("net.core.wmem_max", wmem_suggested));
  }

  void memberships() {
    if (!uses_group()) return;
    if (facts().memberships_max && !facts().v6) {
      const auto needed = chosen(true).size();
      const std::string what = "one socket may join " + std::to_string(*facts().memberships_max) + " groups, and ddf joins " + std::to_string(needed);
      if (*facts().memberships_max < needed) add(severity::problem, "memberships", what, "it hears nothing by the others", sysctl("net.ipv4.igmp_max_memberships", 20));
      else add(severity::ok, "memberships", what);
    }
    if (facts().source_filters_max && *facts().source_filters_max == 0 && !options_.source.empty())
      add(severity::problem, "source_filters", "a membership may name no source", "joining for --source fails", sysctl(facts().v6 ? "net.ipv6.mld_max_msf" : "net.ipv4.igmp_max_msf", facts().v6 ? 64 : 10));
  }

  void segmentation() {
    if (facts().receive_buffer == 0) return;
    if (facts().gso && facts().gro) {
      add(severity::ok, "segmentation", "UDP GSO and GRO are there: many packets in one call");
      return;
    }
    const std::string missing = !facts().gso && !facts().gro ? "UDP GSO and GRO are" : !facts().gso ? "UDP GSO is" : "UDP GRO is";
    add(severity::note, "segmentation", missing + " missing", "each packet is a call of its own, which costs processor time", "uname -r   # Linux 4.18 has GSO, 5.0 GRO");
  }

  void counters() {
    if (facts().receive_buffer_errors != 0)
      add(severity::note, "receive_buffer_errors", std::to_string(facts().receive_buffer_errors) + " UDP packets found a full receive buffer since the start", "of any program; whether it grows during a transfer tells", "nstat -az UdpRcvbufErrors");
    if (facts().backlog_drops != 0)
      add(severity::note, "backlog_drops", std::to_string(facts().backlog_drops) + " packets were dropped between driver and protocol since the start", "whether it grows during a transfer tells", sysctl("net.core.netdev_max_backlog", 5000));
  }

  // --- what is around it ----------------------------------------------------------------------------------------------

  void firewall() {
    const firewall_facts& f = facts().firewall;
    const std::string port = facts().group.substr(facts().group.rfind(':') + 1);
    if (!f.known) {
      add(severity::note, "firewall", "whether there are packet filters is unknown: this user may not ask", "a filter that drops UDP to the group, or IGMP, makes a host deaf", "sudo nft list ruleset");
    } else if (f.drops_input || f.drops_output) {
      const std::string direction = f.drops_input && f.drops_output ? "input and output" : f.drops_input ? "input" : "output";
      add(severity::warning, "firewall", "the policy for " + direction + " is drop (" + joined(f.chains, ", ") + ")", "unless rules accept them, the group's packets" + std::string(facts().v6 ? " and MLD" : " and IGMP") + " do not pass; single rules are not read here",
          "nft list ruleset   # must accept UDP port " + port + (facts().v6 ? " and ICMPv6 130 to 132 and 143" : " and protocol igmp"));
    } else if (!f.chains.empty()) {
      add(severity::note, "firewall", "there are packet filters (" + joined(f.chains, ", ") + ")", "single rules are not read here", "nft list ruleset");
    } else {
      add(severity::ok, "firewall", "no packet filter sees this host's packets");
    }
  }

  void surroundings() {
    if (facts().own_network.value_or(false) && facts().container.empty())
      add(severity::note, "network_namespace", "this process is in a network namespace of its own", "its interfaces, limits and filters are not those of the host");
    if (!facts().cloud.empty() && !chosen().empty() && uses_group())
      add(severity::warning, "cloud", "this is a machine of " + facts().cloud, "its networks carry no multicast, unless one was set up for it; receivers are then served by unicast, one copy each", "--multicast off");
  }

  // --- repair, RDMA ---------------------------------------------------------------------------------------------------

  void repair() {
    if (options_.repair != repair_lane::automatic) {
      const lane_facts* found = lane(options_.repair);
      const std::string wanted(name_of(options_.repair));
      if (found == nullptr || !found->usable) {
        add(severity::problem, "repair_lane", "--repair " + wanted + ": " + (found == nullptr || found->what.empty() ? "not usable here" : found->what), "losses cannot be repaired in this way", "--repair auto");
        if (report_.choice.problem.code == errc::ok) report_.choice.problem = {errc::unsupported, 0, "--repair " + wanted + " is not usable here"};
        return;
      }
    }
    if (!report_.choice.repair.empty()) add(severity::ok, "repair_lane", report_.choice.repair + ": " + report_.choice.repair_why);
  }

  bool multicasts_by_rdma() const { return options_.transport == "verbs"; }

  /// Which of the chosen interfaces could carry DATA by RDMA. Which network interface is an InfiniBand port's is not in the facts.
  void transport() {
    if (!multicasts_by_rdma() || facts().rdma.empty()) return;
    std::vector<std::string> found;
    for (const rdma_device& d : facts().rdma)
      for (const rdma_port& p : d.ports) {
        if (p.state != "ACTIVE") continue;
        const auto of_port = [&](const host_interface& n) { return n.chosen && std::ranges::find(p.gids, n.name, &rdma_gid::interface) != p.gids.end(); };
        const auto n = std::ranges::find_if(facts().interfaces, of_port);
        const std::string who = d.name + ":" + std::to_string(p.number);
        if (n != facts().interfaces.end()) found.push_back(who + " on " + n->name);
        else if (p.link_layer != "Ethernet") found.push_back(who);
      }
    if (!found.empty()) return add(severity::ok, "transport", "verbs: " + joined(found, ", "));
    add(severity::problem, "transport", "--transport verbs: no interface that would be used is an RDMA device's with an active port", "nothing can be multicast in this way", "rdma link   # --interface of one of these, or --transport udp");
    if (report_.choice.problem.code == errc::ok) report_.choice.problem = {errc::unsupported, 0, "--transport verbs: no interface that would be used is an RDMA device's"};
  }

  void rdma() {
    const bool wanted = options_.repair == repair_lane::verbs || multicasts_by_rdma();
    const severity level = wanted ? severity::warning : severity::note;
    if (facts().rdma.empty()) {
      if (wanted) add(severity::problem, "rdma_device", "there is no RDMA device", multicasts_by_rdma() ? "--transport verbs needs one" : "--repair verbs needs one", "lspci | grep -i -e infiniband -e ethernet   # is its driver loaded?");
      return;
    }
    for (const rdma_device& d : facts().rdma) {
      if (d.file.empty())
        add(level, "rdma_access", d.name + ": it has no file in /dev/infiniband", "programs cannot use it", "modprobe ib_uverbs rdma_ucm   # in a container: --device=/dev/infiniband");
      else if (!d.usable)
        add(level, "rdma_access", d.name + ": this user may not open " + d.file, "programs cannot use it", "chmod a+rw " + d.file + "   # or a udev rule");
      for (const rdma_port& p : d.ports) port(d, p, level);
    }
    if (!facts().ipc_lock && facts().memlock_bytes < memlock_least)
      add(wanted ? severity::warning : severity::note, "memlock", "this process may lock " + bytes_text(facts().memlock_bytes) + " of memory", "RDMA registers the memory that it moves, and registered memory is locked",
          "ulimit -l unlimited   # a service: LimitMEMLOCK=infinity");
  }

  void port(const rdma_device& d, const rdma_port& p, severity level) {
    const std::string who = d.name + " port " + std::to_string(p.number);
    if (p.state != "ACTIVE") {
      add(level, "rdma_port", who + ": it is " + (p.state.empty() ? "in an unknown state" : p.state) + (p.physical_state.empty() ? "" : ", its link " + p.physical_state),
          "only an ACTIVE port carries packets", p.link_layer == "InfiniBand" ? "# a subnet manager must run in the fabric: sminfo; a cable: ibstat " + d.name : "rdma link   # is its network interface up?");
      return;
    }
    if (p.link_layer != "Ethernet") return;
    const auto routable = [](const rdma_gid& g) { return g.type == "RoCE v2" && g.gid.starts_with("0000:0000:0000:0000:0000:ffff:"); };
    if (std::ranges::none_of(p.gids, routable))
      add(level, "rdma_gid", who + ": it has no RoCE v2 GID of an IPv4 address", "RoCE v2 between hosts, and RDMA multicast, go by it", "ip address show   # its network interface needs an IPv4 address");
  }

  const network_options& options_;
  host_report report_;
};

}  // namespace

host_report judge_host(host_facts facts, const network_options& options, host_role role) { return judge(std::move(facts), options, role).judged(); }

}  // namespace ddf
