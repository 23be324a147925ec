// What is found wrong with a host, and what is not: each finding appears where it should, and only there.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/plan/host_findings.hpp"

using namespace ddf;

namespace {

host_interface ethernet(const std::string& name, unsigned index, const std::string& address) {
  host_interface n;
  n.name = name;
  n.index = index;
  n.addresses = {address + "/24"};
  n.address = address;
  n.up = n.multicast = n.chosen = true;
  n.mtu = 1500;
  n.kind = "ethernet";
  n.driver = "mlx5_core";
  n.bits_per_s = 10'000'000'000;
  n.receive_ring = n.receive_ring_max = 8192;
  n.rp_filter = 0;
  n.forced_version = 0;
  n.querier_version = 3;
  n.datagram_bytes = 1472;
  return n;
}

host_interface loopback() {
  host_interface n = ethernet("lo", 1, "127.0.0.1");
  n.loopback = true;
  n.multicast = false;
  n.mtu = 65536;
  n.datagram_bytes = 8972;
  return n;
}

/// A host with one network, on which nothing is wrong.
host_facts healthy() {
  host_facts f;
  f.group = "239.77.7.7:7700";
  f.query = "239.77.7.7:7701";
  f.interfaces = {loopback(), ethernet("eth0", 2, "10.0.0.5")};
  f.route = "eth0";
  f.receive_buffer = 32 << 20;
  f.send_buffer = 8 << 20;
  f.rmem_max = 32 << 20;
  f.wmem_max = 4 << 20;
  f.memberships_max = 20;
  f.source_filters_max = 10;
  f.gso = f.gro = true;
  f.memlock_bytes = host_facts::no_limit;
  f.lanes = {{repair_lane::udp, true, "NACKs"}, {repair_lane::tcp, false, "this build repairs over UDP only"}, {repair_lane::shm, false, ""}, {repair_lane::verbs, false, "no device"}};
  f.firewall.known = true;
  f.own_network = false;
  return f;
}

rdma_device roce() {
  rdma_device d;
  d.name = "mlx5_0";
  d.file = "/dev/infiniband/uverbs0";
  d.usable = true;
  rdma_port p;
  p.number = 1;
  p.state = "ACTIVE";
  p.physical_state = "LinkUp";
  p.link_layer = "Ethernet";
  p.rate = "100 Gb/sec (4X EDR)";
  p.active_mtu = 1024;
  p.gids = {{3, "0000:0000:0000:0000:0000:ffff:0a00:0005", "RoCE v2", "eth0"}};
  d.ports = {p};
  return d;
}

struct setting_of_a_case {
  host_facts facts = healthy();
  network_options options;
  host_role role = host_role::receiver;

  host_report judged() const { return judge_host(facts, options, role); }
};

const host_finding* find(const host_report& r, const std::string& id) {
  const auto found = std::ranges::find(r.findings, id, &host_finding::id);
  return found == r.findings.end() ? nullptr : &*found;
}

/// Whether the host as it is has the fault, which it must not have, and whether `spoil` brings it.
struct fault {
  std::string id;
  severity level;
  std::string says;    // a part of what, why or cure
  std::function<void(setting_of_a_case&)> spoil;
  std::function<void(setting_of_a_case&)> near = {};   // as like it as can be without being one; nothing: the healthy host
};

host_interface& eth0(setting_of_a_case& c) { return c.facts.interfaces[1]; }
void second_network(setting_of_a_case& c) { c.facts.interfaces.push_back(ethernet("eth1", 3, "10.1.0.5")); }
void as_sender(setting_of_a_case& c) { c.role = host_role::sender; }
void by_source(setting_of_a_case& c) { c.options.source = "10.0.0.9"; }
void by_verbs(setting_of_a_case& c) {
  c.options.repair = repair_lane::verbs;
  c.facts.lanes[3] = {repair_lane::verbs, true, "mlx5_0"};
}

const std::vector<fault>& faults() {
  using s = severity;
  using c = setting_of_a_case;
  static const std::vector<fault> all{
      {"interfaces", s::problem, "matches none", [](c& x) { x.facts.unusable = {errc::invalid_argument, 0, "interface 'eth7' matches none of: lo, eth0"}; for (auto& n : x.facts.interfaces) n.chosen = false; }},
      {"interfaces", s::warning, "only the loopback", [](c& x) { eth0(x).chosen = false; eth0(x).passed_over = "is down"; }},
      {"interfaces", s::note, "2 interfaces", second_network, [](c& x) { second_network(x); x.options.interfaces = {"eth0", "eth1"}; }},
      {"interfaces", s::note, "joins on each", [](c& x) { second_network(x); by_source(x); }, [](c& x) { second_network(x); x.options.group = "[ff15::77:7%eth0]:7700"; }},
      {"interface_passed_over", s::warning, "ip link set dev eth1 up", [](c& x) { second_network(x); x.options.interfaces = {"eth0", "eth1"}; auto& n = x.facts.interfaces[2]; n.chosen = n.up = false; n.passed_over = "is down"; },
       [](c& x) { second_network(x); auto& n = x.facts.interfaces[2]; n.chosen = n.up = false; n.passed_over = "is down"; }},
      {"interface_passed_over", s::note, "multicast on", [](c& x) { second_network(x); auto& n = x.facts.interfaces[2]; n.chosen = n.multicast = false; n.passed_over = "cannot multicast"; },
       [](c& x) { second_network(x); auto& n = x.facts.interfaces[2]; n.chosen = false; n.passed_over = "is not among those named"; }},
      {"rp_filter", s::warning, "rp_filter=2 net.ipv4.conf.eth0.rp_filter=2", [](c& x) { second_network(x); eth0(x).rp_filter = 1; }, [](c& x) { second_network(x); eth0(x).rp_filter = 2; }},
      {"rp_filter", s::warning, "7 packets", [](c& x) { x.facts.rp_filter_drops = 7; eth0(x).rp_filter = 1; }, [](c& x) { eth0(x).rp_filter = 1; }},
      {"membership_version", s::note, "forced to version 2", [](c& x) { eth0(x).forced_version = 2; }, [](c& x) { eth0(x).forced_version = 3; }},
      {"membership_version", s::warning, "net.ipv4.conf.all.force_igmp_version=0", [](c& x) { by_source(x); eth0(x).forced_version = 2; }, by_source},
      {"membership_version", s::warning, "querier", [](c& x) { by_source(x); eth0(x).querier_version = 2; }, [](c& x) { by_source(x); eth0(x).querier_version = 0; }},
      {"mtu", s::note, "less than --mtu 9000", [](c& x) { x.options.mtu = 9000; }, [](c& x) { x.options.mtu = 1500; }},
      {"mtu", s::note, "mtu 9000", [](c& x) { eth0(x).bits_per_s = 100'000'000'000; }, [](c& x) { eth0(x).bits_per_s = 100'000'000'000; eth0(x).mtu = 9000; }},
      {"receive_ring", s::note, "ethtool -G eth0 rx 8192", [](c& x) { eth0(x).receive_ring = 512; }, [](c& x) { eth0(x).receive_ring = 512; eth0(x).bits_per_s = 1'000'000'000; }},
      {"speed", s::note, "100 Mbit/s", [](c& x) { eth0(x).bits_per_s = 100'000'000; }, [](c& x) { eth0(x).bits_per_s = 0; }},
      {"wireless", s::warning, "eth0", [](c& x) { eth0(x).kind = "wlan"; }},
      {"macvlan", s::note, "eth0", [](c& x) { eth0(x).kind = "macvlan"; }},
      {"bridge", s::note, "eth0", [](c& x) { eth0(x).kind = "bridge"; }, [](c& x) { eth0(x).kind = "bridge"; x.options.interfaces = {"eth0"}; }},
      {"container_network", s::warning, "docker", [](c& x) { eth0(x).kind = "veth"; x.facts.container = "docker"; }, [](c& x) { eth0(x).kind = "veth"; }},
      {"virtual_function", s::note, "allmulticast on", [](c& x) { eth0(x).virtual_function = true; }, [](c& x) { eth0(x).virtual_function = true; x.options.multicast = multicast_use::off; }},
      {"group_address", s::note, "224.0.0.7", [](c& x) { x.options.group = "239.128.0.7:7700"; }, [](c& x) { x.options.group = "239.128.1.7:7700"; }},
      {"group_source", s::warning, "--source", [](c& x) { x.options.group = "232.1.1.1:7700"; }, [](c& x) { by_source(x); x.options.group = "232.1.1.1:7700"; }},
      {"group_source", s::warning, "--source", [](c& x) { x.options.group = "[ff35::1:1]:7700"; }, [](c& x) { x.options.group = "[ff15::1:1]:7700"; }},
      {"ttl", s::warning, "--ttl 1", [](c& x) { x.options.ttl = 0; }},
      {"route", s::note, "no route", [](c& x) { x.facts.route.clear(); }},
      {"route", s::note, "by wlan0", [](c& x) { x.facts.route = "wlan0"; }},
      {"group_port", s::problem, "ss -ulpn 'sport = :7700'", [](c& x) { x.facts.group_port_taken = "another program holds it"; }, [](c& x) { x.facts.group_port_taken = "another program holds it"; x.options.multicast = multicast_use::off; }},
      {"group_port", s::note, "7700", [](c& x) { as_sender(x); x.facts.group_port_taken = "another program holds it"; }, as_sender},
      {"query_port", s::warning, "'sport = :7701'", [](c& x) { as_sender(x); x.facts.query_port_taken = "another program holds it"; }, [](c& x) { x.facts.query_port_taken = "another program holds it"; }},
      {"receive_buffer", s::problem, "no UDP socket", [](c& x) { x.facts.receive_buffer = 0; }},
      {"receive_buffer", s::warning, "net.core.rmem_max=33554432", [](c& x) { x.facts.receive_buffer = 425'984; x.facts.rmem_max = 212'992; }},
      {"receive_buffer", s::note, "4 MiB of receive buffer were granted, of 16 MiB; net.core.rmem_max is 4194304", [](c& x) { x.facts.receive_buffer = 8 << 20; x.facts.rmem_max = 4 << 20; }, [](c& x) { x.facts.receive_buffer = 8 << 20; x.options.socket_buffer = 4 << 20; }},
      {"receive_buffer", s::note, "answers", [](c& x) { as_sender(x); x.facts.receive_buffer = 425'984; }, as_sender},
      {"receive_buffer", s::note, "=67108864", [](c& x) { x.options.socket_buffer = 64 << 20; }},
      {"send_buffer", s::note, "net.core.wmem_max=4194304", [](c& x) { as_sender(x); x.facts.send_buffer = 425'984; }, [](c& x) { x.facts.send_buffer = 425'984; }},
      {"memberships", s::problem, "igmp_max_memberships=20", [](c& x) { x.facts.memberships_max = 1; }, [](c& x) { x.facts.memberships_max = 2; }},
      {"source_filters", s::problem, "igmp_max_msf", [](c& x) { by_source(x); x.facts.source_filters_max = 0; }, [](c& x) { x.facts.source_filters_max = 0; }},
      {"segmentation", s::note, "UDP GSO is missing", [](c& x) { x.facts.gso = false; }},
      {"segmentation", s::note, "UDP GRO is missing", [](c& x) { x.facts.gro = false; }},
      {"receive_buffer_errors", s::note, "12 UDP packets", [](c& x) { x.facts.receive_buffer_errors = 12; }},
      {"backlog_drops", s::note, "netdev_max_backlog", [](c& x) { x.facts.backlog_drops = 12; }},
      {"firewall", s::note, "unknown", [](c& x) { x.facts.firewall.known = false; }},
      {"firewall", s::note, "inet filter input", [](c& x) { x.facts.firewall.chains = {"inet filter input"}; }},
      {"firewall", s::warning, "policy for input is drop", [](c& x) { x.facts.firewall.chains = {"inet filter input"}; x.facts.firewall.drops_input = true; }},
      {"network_namespace", s::note, "namespace", [](c& x) { x.facts.own_network = true; }, [](c& x) { x.facts.own_network = true; x.facts.container = "docker"; }},
      {"network_namespace", s::note, "namespace", [](c& x) { x.facts.own_network = true; }, [](c& x) { x.facts.own_network.reset(); }},
      {"cloud", s::warning, "Amazon EC2", [](c& x) { x.facts.cloud = "Amazon EC2"; }, [](c& x) { x.facts.cloud = "Amazon EC2"; x.options.multicast = multicast_use::off; }},
      {"repair_lane", s::problem, "--repair tcp: this build repairs over UDP only", [](c& x) { x.options.repair = repair_lane::tcp; }},
      {"repair_lane", s::problem, "not usable here", [](c& x) { x.options.repair = repair_lane::shm; }, [](c& x) { x.options.repair = repair_lane::shm; x.facts.lanes[2].usable = true; }},
      {"rdma_device", s::problem, "no RDMA device", [](c& x) { x.options.repair = repair_lane::verbs; }, [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; }},
      {"rdma_device", s::problem, "--transport verbs needs one", [](c& x) { x.options.transport = "verbs"; }, [](c& x) { x.options.transport = "verbs"; x.facts.rdma = {roce()}; }},
      {"transport", s::problem, "rdma link", [](c& x) { x.options.transport = "verbs"; x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].gids[0].interface = "eth7"; }, [](c& x) { x.options.transport = "verbs"; x.facts.rdma = {roce()}; }},
      {"transport", s::problem, "active port", [](c& x) { x.options.transport = "verbs"; x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].state = "DOWN"; }, [](c& x) { x.options.transport = "verbs"; x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].gids.clear(); x.facts.rdma[0].ports[0].link_layer = "InfiniBand"; }},
      {"rdma_access", s::note, "modprobe ib_uverbs", [](c& x) { x.facts.rdma = {roce()}; x.facts.rdma[0].file.clear(); }, [](c& x) { x.facts.rdma = {roce()}; }},
      {"rdma_access", s::warning, "chmod a+rw /dev/infiniband/uverbs0", [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; x.facts.rdma[0].usable = false; }, [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; }},
      {"rdma_port", s::note, "it is DOWN", [](c& x) { x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].state = "DOWN"; }, [](c& x) { x.facts.rdma = {roce()}; }},
      {"rdma_port", s::warning, "sminfo", [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].state = "INIT"; x.facts.rdma[0].ports[0].link_layer = "InfiniBand"; }, [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; }},
      {"rdma_gid", s::note, "RoCE v2 GID", [](c& x) { x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].gids[0].type = "IB/RoCE v1"; }, [](c& x) { x.facts.rdma = {roce()}; x.facts.rdma[0].ports[0].gids.clear(); x.facts.rdma[0].ports[0].link_layer = "InfiniBand"; }},
      {"memlock", s::note, "8 MiB", [](c& x) { x.facts.rdma = {roce()}; x.facts.memlock_bytes = 8 << 20; }, [](c& x) { x.facts.memlock_bytes = 8 << 20; }},
      {"memlock", s::warning, "LimitMEMLOCK", [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; x.facts.memlock_bytes = 8 << 20; }, [](c& x) { by_verbs(x); x.facts.rdma = {roce()}; x.facts.memlock_bytes = 8 << 20; x.facts.ipc_lock = true; }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_findings)

BOOST_AUTO_TEST_CASE(nothing_is_wrong_with_a_healthy_host) {
  for (const host_role role : {host_role::sender, host_role::receiver}) {
    const host_report r = judge_host(healthy(), {}, role);
    BOOST_TEST((r.worst() == severity::ok));
    for (const host_finding& f : r.findings) BOOST_TEST((f.level == severity::ok), f.id);
    BOOST_TEST(r.findings.size() >= 8);
  }
}

BOOST_AUTO_TEST_CASE(each_finding_appears_where_it_should_and_not_beside_it) {
  for (const fault& wrong : faults()) {
    BOOST_TEST_CONTEXT(wrong.id << ": " << wrong.says) {
      setting_of_a_case spoilt, sound;
      wrong.spoil(spoilt);
      if (wrong.near) wrong.near(sound);
      const host_report with = spoilt.judged(), without = sound.judged();
      const host_finding* found = find(with, wrong.id);
      BOOST_REQUIRE(found != nullptr);
      BOOST_TEST((found->level == wrong.level), name(found->level));
      BOOST_TEST((found->what + "\n" + found->why + "\n" + found->cure).find(wrong.says) != std::string::npos, found->what + "\n" + found->why + "\n" + found->cure);
      BOOST_TEST(!found->why.empty());
      const host_finding* other = find(without, wrong.id);
      BOOST_TEST((other == nullptr || other->level == severity::ok));
      BOOST_TEST((with.worst() >= wrong.level));
    }
  }
}

BOOST_AUTO_TEST_CASE(no_case_brings_a_finding_that_no_case_is_about) {
  std::set<std::string> ids;
  for (const fault& wrong : faults()) ids.insert(wrong.id);
  for (const fault& wrong : faults()) {
    setting_of_a_case spoilt;
    wrong.spoil(spoilt);
    for (const host_finding& f : spoilt.judged().findings) BOOST_TEST(ids.contains(f.id), f.id);
  }
}

BOOST_AUTO_TEST_CASE(the_worst_comes_first) {
  setting_of_a_case x;
  x.facts.backlog_drops = 1;
  x.facts.cloud = "Amazon EC2";
  x.facts.memberships_max = 1;
  const host_report r = x.judged();
  BOOST_TEST(std::ranges::is_sorted(r.findings, [](severity a, severity b) { return a > b; }, &host_finding::level));
  BOOST_TEST(r.findings.front().id == "memberships");
  BOOST_TEST((r.worst() == severity::problem));
}

BOOST_AUTO_TEST_CASE(what_would_be_used_is_told_with_the_reason) {
  const host_choice c = judge_host(healthy(), {}, host_role::receiver).choice;
  BOOST_TEST((c.problem.code == errc::ok));
  BOOST_TEST(c.interfaces == (std::vector<std::string>{"lo (127.0.0.1)", "eth0 (10.0.0.5)"}), boost::test_tools::per_element());
  BOOST_TEST(c.datagram_bytes == 1472);
  BOOST_TEST(c.datagram_why == "the MTU of eth0, 1500, less 28 bytes of IPv4 and UDP headers");
  BOOST_TEST(c.bulk == "udp multicast");
  BOOST_TEST(c.repair == "udp");

  setting_of_a_case named;
  named.options.interfaces = {"eth0"};
  named.options.mtu = 1400;
  named.options.multicast = multicast_use::off;
  named.facts.interfaces[0].chosen = false;
  named.facts.interfaces[1].datagram_bytes = 1372;
  const host_choice other = named.judged().choice;
  BOOST_TEST(other.interfaces_why == "named by --interface");
  BOOST_TEST(other.datagram_why.starts_with("--mtu 1400"));
  BOOST_TEST(other.bulk == "udp unicast");
}

BOOST_AUTO_TEST_CASE(of_the_loopback_alone_not_the_whole_mtu_is_used) {
  setting_of_a_case x;
  x.facts.interfaces.resize(1);
  const host_choice c = x.judged().choice;
  BOOST_TEST(c.datagram_bytes == 8972);
  BOOST_TEST(c.datagram_why.starts_with("9000, the most"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_opened_is_said_and_nothing_is_chosen) {
  setting_of_a_case x;
  x.facts.unusable = {errc::network, 0, "no interface can carry multicast"};
  for (host_interface& n : x.facts.interfaces) n.chosen = false;
  const host_report r = x.judged();
  BOOST_TEST((r.choice.problem.code == errc::network));
  BOOST_TEST(r.choice.interfaces.empty());
  BOOST_TEST(r.choice.bulk.empty());
  x = {};
  x.options.repair = repair_lane::tcp;
  BOOST_TEST((x.judged().choice.problem.code == errc::unsupported));
  BOOST_TEST(x.judged().choice.repair.empty());
}

BOOST_AUTO_TEST_CASE(facts_of_which_nothing_is_known_are_judged_all_the_same) {
  const host_report r = judge_host({}, {}, host_role::sender);
  BOOST_TEST((r.worst() == severity::problem));
  network_options nonsense;
  nonsense.group = "no address";
  BOOST_TEST((judge_host({}, nonsense, host_role::receiver).worst() == severity::problem));
}

BOOST_AUTO_TEST_CASE(an_ipv6_group_is_told_of_mld_and_not_of_igmp) {
  setting_of_a_case x;
  x.options.group = "[ff15::77:7]:7700";
  x.facts.v6 = true;
  x.facts.group = x.options.group;
  x.facts.memberships_max = 0;
  x.facts.interfaces[1].forced_version = 1;
  x.facts.interfaces[1].rp_filter = 1;
  second_network(x);
  const host_report r = x.judged();
  BOOST_TEST((find(r, "memberships") == nullptr));
  BOOST_TEST((find(r, "rp_filter") == nullptr));
  BOOST_REQUIRE((find(r, "membership_version") != nullptr));
  BOOST_TEST(find(r, "membership_version")->cure.find("net.ipv6.conf.eth0.force_mld_version=0") != std::string::npos);
  BOOST_TEST(r.choice.datagram_why.find("48 bytes of IPv6") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
