// What this host has for ddf, what ddf would use of it, what is wrong, and how to mend it.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <ddf/options.hpp>

namespace ddf {

enum class host_role : std::uint8_t { sender, receiver };

struct host_interface {
  std::string name;
  unsigned index = 0;
  std::vector<std::string> addresses;       // with their prefix lengths: "10.0.0.5/24"
  bool up = false, multicast = false, loopback = false;
  bool virtual_function = false;            // a part of a card that was given to this machine
  std::uint32_t mtu = 0;                    // bytes
  std::string kind;                         // "ethernet", "infiniband", "loopback", "wlan", "bridge", "bond", "vlan", "macvlan", "veth" …; empty: unknown
  std::string driver;                       // empty: unknown
  std::uint64_t bits_per_s = 0;             // 0: unknown
  std::uint32_t receive_ring = 0, receive_ring_max = 0;   // packets the card holds, and could hold; 0: unknown
  std::optional<unsigned> rp_filter;        // in force: 0 off, 1 strict, 2 loose
  std::optional<unsigned> forced_version;   // of IGMP, or MLD for an IPv6 group; 0: not forced
  unsigned querier_version = 0;             // of IGMP, as the host speaks it to the network; 0: unknown
  bool chosen = false;
  std::string address;                      // that it would send from; empty when not chosen
  std::string passed_over;                  // why it would not be used: "is down"; empty when chosen
  std::uint32_t datagram_bytes = 0;         // UDP payload that it carries whole; 0 when not chosen
};

struct rdma_gid {
  unsigned index = 0;
  std::string gid;         // "0000:0000:0000:0000:0000:ffff:0a00:0005"
  std::string type;        // "RoCE v2", "IB/RoCE v1"; empty: unknown
  std::string interface;   // the network interface it belongs to; empty: none
};

struct rdma_port {
  unsigned number = 0;
  std::string state, physical_state;   // "ACTIVE", "LinkUp"
  std::string link_layer;              // "InfiniBand", "Ethernet"
  std::string rate;                    // "100 Gb/sec (4X EDR)"
  std::uint32_t active_mtu = 0;        // of RoCE, as it follows from the network interface's; 0: unknown
  std::vector<rdma_gid> gids;          // those that are set, the first 64
};

struct rdma_device {
  std::string name;
  std::string file;      // "/dev/infiniband/uverbs0"; empty: there is none
  bool usable = false;   // this user may open the file
  std::vector<rdma_port> ports;
};

/// What can be known of packet filters without reading single rules.
struct firewall_facts {
  bool known = false;              // false: this user may not ask
  std::vector<std::string> chains; // of rules that see packets of this host: "inet filter input"
  bool drops_input = false, drops_output = false;   // a chain drops what no rule accepts
};

struct lane_facts {
  repair_lane lane = repair_lane::udp;
  bool usable = false;
  std::string what;   // what it would use, or why it cannot
};

struct host_facts {
  error unusable;                            // what opening would fail with before any socket; code ok: nothing
  std::string group, query;                  // "239.77.7.7:7700", and where receivers ask for senders
  bool v6 = false;
  std::vector<host_interface> interfaces;    // the first 256
  std::string route;                         // the interface that the system's routes give the group; empty: none
  std::string group_port_taken, query_port_taken;   // why it cannot be opened; empty: it can

  std::uint64_t receive_buffer = 0, send_buffer = 0;   // bytes granted, as the kernel counts; 0: no socket could be opened
  std::optional<std::uint64_t> rmem_max, wmem_max;     // bytes
  std::optional<std::uint64_t> memberships_max;        // groups that one socket may join; IPv4 only
  std::optional<std::uint64_t> source_filters_max;     // sources of one membership
  bool gso = false, gro = false;             // packets leave and arrive many in one call
  bool net_admin = false, ipc_lock = false;  // this process may exceed the limits of buffers, of locked memory
  std::uint64_t memlock_bytes = 0;           // that this process may lock; no_limit: any number
  std::uint64_t hugepage_bytes = 0, hugepages_free = 0;
  std::uint64_t receive_buffer_errors = 0, backlog_drops = 0, rp_filter_drops = 0;   // packets, since the host started

  std::vector<rdma_device> rdma;
  std::vector<lane_facts> lanes;             // ways to repair losses
  firewall_facts firewall;
  std::string container;                     // "docker", "podman", "kubernetes", "lxc" …; empty: none is seen
  std::optional<bool> own_network;           // a network namespace other than that of the host's first process
  std::string cloud;                         // "Amazon EC2" …; empty: none is seen

  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
};

enum class severity : std::uint8_t {
  ok,        // looked at, and good
  note,      // good to know; nothing to do, or a matter of speed
  warning,   // works, and slower or not everywhere
  problem,   // does not work
};
std::string_view name(severity s);

struct host_finding {
  severity level = severity::ok;
  std::string id;     // stable: "receive_buffer"
  std::string what;   // what is so
  std::string why;    // why it matters; empty when ok
  std::string cure;   // a command, or several, one a line; empty: none is needed, or none is known
};

/// What publisher::open() and subscriber::open() would take with the same options.
struct host_choice {
  error problem;                         // code ok: they would open
  std::vector<std::string> interfaces;   // "eth0 (10.0.0.5)"
  std::string interfaces_why;
  std::uint32_t datagram_bytes = 0;      // of the largest datagram that all of them carry whole
  std::string datagram_why;
  std::string bulk, bulk_why;            // "udp multicast", "udp unicast"
  std::string repair, repair_why;        // "udp"
};

struct host_report {
  host_role role = host_role::receiver;
  host_facts facts;
  std::vector<host_finding> findings;    // the worst first
  host_choice choice;

  severity worst() const { return findings.empty() ? severity::ok : findings.front().level; }
};

/// Examines this host for one who would open with `options`.
///
/// Sends no packet and changes nothing: it reads /sys and /proc, opens sockets and closes them, joins no group.
/// Errors: none; what cannot be learned is unknown, and what cannot be used is a finding.
/// Cost:   some milliseconds; every list and file it reads is cut at a stated length.
host_report examine_host(const network_options& options, host_role role = host_role::receiver);

}  // namespace ddf
