// Facts gathered of hosts that were made up: a tree of files that stands for "/", and a kernel that answers as told.
#include <boost/test/unit_test.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "lib/plan/host_findings.hpp"
#include "lib/runtime/host_facts.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using ddf::test::temporary_folder;
namespace fs = std::filesystem;

namespace {

network_interface interface(const std::string& name, unsigned index, const std::string& address, bool is_loopback = false) {
  network_interface n;
  n.name = name;
  n.index = index;
  n.mtu = is_loopback ? 65536 : 1500;
  n.up = true;
  n.multicast = !is_loopback;
  n.loopback = is_loopback;
  interface_address a;
  a.address = *parse_endpoint(address, 0);
  a.address.port = 0;
  a.prefix_bits = 24;
  n.addresses = {a};
  return n;
}

class made_up_host final : public host_access {
 public:
  explicit made_up_host(const temporary_folder& folder) : host_access(folder.path()), root_(folder.path()) {}

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  std::string real(const std::string& path) const { return root_ + path; }

  result<std::vector<network_interface>> interfaces() override { return all; }
  card_facts card(const std::string& name) override { return name == "lo" ? card_facts{} : asked_card; }
  socket_facts sockets(bool, std::uint32_t bytes) override { return {2 * std::uint64_t{bytes}, 8 << 20, true, true}; }
  result<void> open_group(const endpoint& group) override {
    if (group.port == taken) return fail(errc::network, "port taken", EADDRINUSE);
    return {};
  }
  std::optional<endpoint> route(const endpoint&) override { return routed; }
  std::uint64_t memlock_bytes() override { return 8 << 20; }
  firewall_facts firewall() override { return {true, {}, false, false}; }
  result<std::string> lane(repair_lane lane, const std::string& local) override {
    asked_local = local;
    if (lane == repair_lane::udp) return "NACKs";
    return fail(errc::unsupported, "not here");
  }

  std::vector<network_interface> all{interface("lo", 1, "127.0.0.1", true), interface("eth0", 2, "10.0.0.5")};
  card_facts asked_card{"mlx5_core", 25'000'000'000, 1024, 8192};
  std::optional<endpoint> routed = all[1].addresses[0].address;
  std::uint16_t taken = 0;
  std::string asked_local;

 private:
  std::string root_;
};

struct host_with_files {
  temporary_folder folder;
  made_up_host host{folder};

  host_facts facts(const network_options& options = {}, host_role role = host_role::receiver) { return gather_host_facts(host, options, role); }

  void rdma_port(const std::string& device, const std::string& state, const std::string& link_layer) const {
    const std::string port = "/sys/class/infiniband/" + device + "/ports/1";
    host.write(port + "/state", state + "\n");
    host.write(port + "/phys_state", "5: LinkUp\n");
    host.write(port + "/link_layer", link_layer + "\n");
    host.write(port + "/rate", "100 Gb/sec (4X EDR)\n");
    host.write(port + "/gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
    host.write(port + "/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    host.write(port + "/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0005\n");
    host.write(port + "/gid_attrs/types/2", "RoCE v2\n");
    host.write(port + "/gid_attrs/ndevs/2", "eth0\n");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(gathered_host_facts, host_with_files)

BOOST_AUTO_TEST_CASE(of_an_empty_tree_nothing_is_known_and_the_kernel_is_asked) {
  const host_facts f = facts();
  BOOST_TEST((f.unusable.code == errc::ok));
  BOOST_TEST(f.interfaces.size() == 2);
  BOOST_TEST(f.interfaces[1].chosen);
  BOOST_TEST(f.interfaces[1].address == "10.0.0.5");
  BOOST_TEST(f.interfaces[1].addresses[0] == "10.0.0.5/24");
  BOOST_TEST(f.interfaces[1].datagram_bytes == 1472);
  BOOST_TEST(f.interfaces[1].driver == "mlx5_core");
  BOOST_TEST(!f.interfaces[1].rp_filter.has_value());
  BOOST_TEST(f.route == "eth0");
  BOOST_TEST(host.asked_local == "10.0.0.5");
  BOOST_TEST(!f.rmem_max.has_value());
  BOOST_TEST(!f.own_network.has_value());
  BOOST_TEST(f.rdma.empty());
  BOOST_TEST(f.receive_buffer == 32 << 20);
  BOOST_TEST(f.memlock_bytes == 8 << 20);
  BOOST_TEST(!f.net_admin);
}

BOOST_AUTO_TEST_CASE(files_are_read_as_the_kernel_writes_them) {
  host.write("/proc/sys/net/core/rmem_max", "212992\n");
  host.write("/proc/sys/net/core/wmem_max", "212993\n");
  host.write("/proc/sys/net/ipv4/igmp_max_memberships", "20\n");
  host.write("/proc/sys/net/ipv4/igmp_max_msf", "10\n");
  host.write("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
  host.write("/proc/sys/net/ipv4/conf/eth0/rp_filter", "1\n");
  host.write("/proc/sys/net/ipv4/conf/all/force_igmp_version", "0\n");
  host.write("/proc/sys/net/ipv4/conf/eth0/force_igmp_version", "2\n");
  host.write("/proc/net/igmp", "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n2\teth0      :     2      V2\n\t\t\t\t010000E0     1 0:00000000\t\t0\n");
  host.write("/proc/net/snmp", "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 1 2 3 4 55\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 66\n");
  host.write("/proc/net/netstat", "TcpExt: SyncookiesSent IPReversePathFilter Other\nTcpExt: 9 17 3\n");
  host.write("/proc/net/softnet_stat", "0000aaaa 00000001 00000000\n0000bbbb 00000010 00000000\n");
  host.write("/proc/self/status", "Name:\tx\nCapInh:\t0\nCapEff:\t0000000000005000\n");
  host.write("/proc/meminfo", "MemTotal:       16 kB\nHugePages_Free:        7\nHugepagesize:       2048 kB\n");
  const host_facts f = facts();
  BOOST_TEST(f.rmem_max.value() == 212992);
  BOOST_TEST(f.wmem_max.value() == 212993);
  BOOST_TEST(f.memberships_max.value() == 20);
  BOOST_TEST(f.source_filters_max.value() == 10);
  BOOST_TEST(f.interfaces[1].rp_filter.value() == 1);
  BOOST_TEST(f.interfaces[1].forced_version.value() == 2);
  BOOST_TEST(f.interfaces[0].querier_version == 3);
  BOOST_TEST(f.interfaces[1].querier_version == 2);
  BOOST_TEST(f.receive_buffer_errors == 55);
  BOOST_TEST(f.rp_filter_drops == 17);
  BOOST_TEST(f.backlog_drops == 17);
  BOOST_TEST(f.net_admin);
  BOOST_TEST(f.ipc_lock);
  BOOST_TEST(f.hugepages_free == 7);
  BOOST_TEST(f.hugepage_bytes == 2 << 20);
}

BOOST_AUTO_TEST_CASE(the_kind_of_an_interface_is_believed_only_of_our_own_namespace) {
  host.write("/sys/class/net/eth0/ifindex", "2\n");
  host.write("/sys/class/net/eth0/type", "1\n");
  host.write("/sys/class/net/eth0/uevent", "INTERFACE=eth0\nDEVTYPE=wlan\nIFINDEX=2\n");
  BOOST_TEST(facts().interfaces[1].kind == "wlan");
  BOOST_TEST(facts().interfaces[0].kind == "loopback");
  host.write("/sys/class/net/eth0/uevent", "INTERFACE=eth0\n");
  BOOST_TEST(facts().interfaces[1].kind == "ethernet");
  host.write("/sys/class/net/eth0/type", "32\n");
  BOOST_TEST(facts().interfaces[1].kind == "infiniband");
  host.write("/sys/class/net/eth0/ifindex", "9\n");
  BOOST_TEST(facts().interfaces[1].kind == "");
  BOOST_TEST(!facts().interfaces[1].virtual_function);
  host.write("/sys/class/net/eth0/ifindex", "2\n");
  fs::create_directories(host.real("/sys/class/net/eth0/device"));
  fs::create_symlink("../0000:81:00.0", host.real("/sys/class/net/eth0/device/physfn"));
  BOOST_TEST(facts().interfaces[1].virtual_function);
  host.write("/sys/class/net/eth0/ifindex", "9\n");
  BOOST_TEST(!facts().interfaces[1].virtual_function);
  host.asked_card.driver = "iavf";
  BOOST_TEST(facts().interfaces[1].virtual_function);
  host.asked_card.driver = "veth";
  BOOST_TEST(facts().interfaces[1].kind == "veth");
}

BOOST_AUTO_TEST_CASE(rdma_devices_have_ports_gids_and_a_file) {
  rdma_port("mlx5_0", "4: ACTIVE", "Ethernet");
  rdma_port("mlx5_1", "1: DOWN", "InfiniBand");
  host.write("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  host.write("/sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_1\n");
  host.write("/dev/infiniband/uverbs0", "");
  const host_facts f = facts();
  BOOST_REQUIRE(f.rdma.size() == 2);
  BOOST_TEST(f.rdma[0].file == "/dev/infiniband/uverbs0");
  BOOST_TEST(f.rdma[0].usable);
  BOOST_TEST(f.rdma[1].file == "");
  BOOST_REQUIRE(f.rdma[0].ports.size() == 1);
  const struct rdma_port& p = f.rdma[0].ports[0];
  BOOST_TEST(p.number == 1);
  BOOST_TEST(p.state == "ACTIVE");
  BOOST_TEST(p.physical_state == "LinkUp");
  BOOST_TEST(p.active_mtu == 1024);   // of an interface of 1,500
  BOOST_REQUIRE(p.gids.size() == 2);
  BOOST_TEST(p.gids[1].index == 2);
  BOOST_TEST(p.gids[1].type == "RoCE v2");
  BOOST_TEST(p.gids[1].interface == "eth0");
  BOOST_TEST(f.rdma[1].ports[0].active_mtu == 0);
}

BOOST_AUTO_TEST_CASE(what_passes_for_a_file_and_is_none_is_survived) {
  // Each path that is read becomes, in turn: empty, nonsense, huge, a folder, a pipe nobody writes to, a link to itself.
  const std::vector<std::string> paths{"/proc/sys/net/core/rmem_max", "/proc/sys/net/ipv4/igmp_max_memberships", "/proc/sys/net/ipv4/conf/eth0/rp_filter", "/proc/net/igmp", "/proc/net/snmp", "/proc/net/netstat",
                                       "/proc/net/softnet_stat", "/proc/self/status", "/proc/meminfo", "/sys/class/net/eth0/uevent", "/sys/class/net/eth0/type", "/sys/class/dmi/id/sys_vendor", "/run/systemd/container",
                                       "/sys/class/infiniband/a/ports/1/state", "/sys/class/infiniband/a/ports/1/gids/0", "/sys/class/infiniband/a/ports/1/gid_attrs/types/0", "/sys/class/infiniband_verbs/uverbs0/ibdev"};
  const std::string huge(3 << 20, '9');
  const std::vector<std::string> contents{"", "\n", std::string(1, '\0'), "-1\n", "99999999999999999999999\n", "0x10", "Udp: RcvbufErrors\n", "Udp: RcvbufErrors\nUdp:\n", "2\teth0 : 1 V9\n", "\xff\xfe\x1b[2J\n", huge};
  host.write("/sys/class/net/eth0/ifindex", "2\n");
  for (const std::string& path : paths) {
    BOOST_TEST_CONTEXT(path) {
      for (const std::string& content : contents) {
        host.write(path, content);
        (void)judge_host(facts(), {}, host_role::receiver);
      }
      BOOST_TEST(host.text(path, 100).size() <= 100);
      fs::remove(host.real(path));
      fs::create_directories(host.real(path));
      (void)facts();
      fs::remove(host.real(path));
      BOOST_REQUIRE(::mkfifo(host.real(path).c_str(), 0600) == 0);
      (void)facts();
      fs::remove(host.real(path));
      fs::create_symlink(fs::path(path).filename(), host.real(path));
      (void)facts();
      fs::remove(host.real(path));
    }
  }
  BOOST_TEST(!facts().rmem_max.has_value());
}

BOOST_AUTO_TEST_CASE(numbers_are_whole_and_fit) {
  for (const char* bad : {"", "-1", "1 2", "1x", "18446744073709551616", "+1"}) {
    host.write("/n", bad);
    BOOST_TEST(!host.number("/n").has_value(), bad);
  }
  host.write("/n", "18446744073709551615\n");
  BOOST_TEST(host.number("/n").value() == host_facts::no_limit);
}

BOOST_AUTO_TEST_CASE(folders_without_end_are_cut) {
  for (int i = 0; i < 100; ++i) host.write("/sys/class/infiniband/dev" + std::to_string(i) + "/ports/1/state", "4: ACTIVE\n");
  for (int i = 0; i < 300; ++i) host.write("/sys/class/infiniband/dev0/ports/1/gids/" + std::to_string(i), "fe80::" + std::to_string(i));
  for (int i = 0; i < 20; ++i) host.write("/sys/class/infiniband/dev1/ports/" + std::to_string(i) + "/state", "4: ACTIVE\n");
  const auto devices = gather_rdma(host, {});
  BOOST_TEST(devices.size() == 64);
  for (const rdma_device& d : devices) {
    BOOST_TEST(d.ports.size() <= 8);
    for (const auto& p : d.ports) BOOST_TEST(p.gids.size() <= 64);
  }
  host.all.resize(400, host.all[1]);
  BOOST_TEST(facts().interfaces.size() == 256);
}

BOOST_AUTO_TEST_CASE(what_is_passed_over_says_why) {
  host.all.push_back(interface("eth1", 3, "10.1.0.5"));
  host.all.push_back(interface("eth2", 4, "fd00::5"));
  host.all[2].up = false;
  BOOST_TEST(facts().interfaces[2].passed_over == "is down");
  BOOST_TEST(facts().interfaces[3].passed_over == "has no IPv4 address");
  network_options named;
  named.interfaces = {"lo"};
  BOOST_TEST(facts(named).interfaces[1].passed_over == "is not among those named");
  BOOST_TEST(facts(named).interfaces[0].chosen);
  named.interfaces = {"eth9"};
  const host_facts none = facts(named);
  BOOST_TEST((none.unusable.code == errc::invalid_argument));
  BOOST_TEST(!none.interfaces[1].chosen);
  BOOST_TEST(!none.interfaces[1].passed_over.empty());
}

BOOST_AUTO_TEST_CASE(a_sender_is_chosen_by_its_source_and_a_receiver_is_not) {
  host.all.push_back(interface("eth1", 3, "10.1.0.5"));
  network_options options;
  options.source = "10.1.0.5";
  const host_facts sender = facts(options, host_role::sender), receiver = facts(options);
  BOOST_TEST(!sender.interfaces[1].chosen);
  BOOST_TEST(sender.interfaces[2].chosen);
  BOOST_TEST(receiver.interfaces[1].chosen);
  options.source = "10.9.9.9";
  BOOST_TEST((facts(options, host_role::sender).unusable.code == errc::invalid_argument));
  BOOST_TEST((facts(options).unusable.code == errc::ok));
}

BOOST_AUTO_TEST_CASE(a_port_that_is_taken_and_a_route_elsewhere_are_told) {
  host.taken = 7701;
  host.routed.reset();
  const host_facts f = facts();
  BOOST_TEST(f.group_port_taken == "");
  BOOST_TEST(f.query_port_taken.starts_with("port taken"));
  BOOST_TEST(f.route == "");
}

BOOST_AUTO_TEST_CASE(containers_and_clouds_are_known_by_what_they_leave) {
  BOOST_TEST(facts().container == "");
  host.write("/run/systemd/container", "lxc\n");
  BOOST_TEST(facts().container == "lxc");
  host.write("/.dockerenv", "");
  BOOST_TEST(facts().container == "docker");
  host.write("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
  BOOST_TEST(facts().cloud == "Amazon EC2");
  fs::create_directories(host.real("/proc/self/ns"));
  fs::create_directories(host.real("/proc/1/ns"));
  fs::create_symlink("net:[1]", host.real("/proc/self/ns/net"));
  fs::create_symlink("net:[2]", host.real("/proc/1/ns/net"));
  BOOST_TEST(facts().own_network.value());
}

BOOST_AUTO_TEST_SUITE_END()
