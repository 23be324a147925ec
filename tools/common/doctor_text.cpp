#include "tools/common/doctor_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <ddf/ddf.hpp>

#include "lib/model/object_name.hpp"
#include "lib/plan/host_findings.hpp"
#include "tools/common/output.hpp"
#include "tools/common/text_table.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : printable(text); }

std::string limit_text(const std::optional<std::uint64_t>& value) { return value ? bytes_text(*value) : "unknown"; }

std::string speed_text(const host_interface& n) {
  return n.bits_per_s == 0 ? "-" : rate_text(static_cast<double>(n.bits_per_s) / 8);
}

std::string kind_text(const host_interface& n) {
  if (n.kind.empty()) return n.driver.empty() ? "-" : printable(n.driver);
  return printable(n.kind) + (n.driver.empty() || n.driver == n.kind ? "" : " (" + printable(n.driver) + ")");
}

std::string chosen_text(const host_report& r) {
  const auto& c = r.choice;
  std::string out = fmt::format("chosen ({})\n", r.role == host_role::sender ? "as a sender" : "as a receiver");
  std::vector<row> rows{{"group", printable(r.facts.group)}};
  if (c.problem.code != errc::ok) rows.push_back({"", "cannot be opened: " + printable(describe(c.problem))});
  const auto add = [&](const std::string& what, const std::string& value, const std::string& why) {
    if (!value.empty()) rows.push_back({what, printable(value) + (why.empty() ? "" : ": " + printable(why))});
  };
  add("interfaces", joined(c.interfaces, ", "), c.interfaces_why);
  if (c.datagram_bytes > 0) add("datagrams", fmt::format("{} bytes", c.datagram_bytes), c.datagram_why);
  add("bulk", c.bulk, c.bulk_why);
  add("repair", c.repair, c.repair_why);
  return out + table(rows, 0, "  ");
}

std::string interfaces_text(const host_facts& f) {
  std::vector<row> rows{{"name", "MTU", "speed", "kind", "addresses", ""}};
  for (const auto& n : f.interfaces)
    rows.push_back({printable(n.name), std::to_string(n.mtu), speed_text(n), kind_text(n),
                    n.addresses.empty() ? "-" : joined(n.addresses, " "),
                    n.chosen ? "chosen" : printable(n.passed_over)});
  return "interfaces\n" + table(rows, 2, "  ") +
         fmt::format("  the system's route to the group: {}\n", f.route.empty() ? "none" : printable(f.route));
}

std::string limits_text(const host_facts& f) {
  std::vector<row> rows;
  rows.push_back({"receive buffer", fmt::format("{} granted (net.core.rmem_max {})",
                                                bytes_text(f.receive_buffer / 2), limit_text(f.rmem_max))});
  rows.push_back({"send buffer", fmt::format("{} granted (net.core.wmem_max {})", bytes_text(f.send_buffer / 2),
                                             limit_text(f.wmem_max))});
  rows.push_back({"many packets in one call",
                  f.gso && f.gro ? "GSO and GRO" : f.gso ? "GSO, no GRO" : f.gro ? "GRO, no GSO" : "neither GSO nor GRO"});
  if (f.memberships_max) rows.push_back({"groups of one socket", std::to_string(*f.memberships_max)});
  if (f.source_filters_max) rows.push_back({"sources of one membership", std::to_string(*f.source_filters_max)});
  rows.push_back({"locked memory", f.ipc_lock || f.memlock_bytes == host_facts::no_limit ? "no limit" : bytes_text(f.memlock_bytes)});
  if (f.hugepages_free > 0)
    rows.push_back({"huge pages", fmt::format("{} free of {}", f.hugepages_free, bytes_text(f.hugepage_bytes))});
  if (!f.container.empty()) rows.push_back({"container", printable(f.container)});
  if (!f.cloud.empty()) rows.push_back({"machine", printable(f.cloud)});
  return "buffers and limits\n" + table(rows, 0, "  ");
}

std::string rdma_text(const host_facts& f) {
  std::vector<row> rows;
  for (const auto& d : f.rdma) {
    rows.push_back({printable(d.name), d.file.empty() ? "no file in /dev/infiniband" : d.file + (d.usable ? "" : " (may not be opened)")});
    for (const auto& p : d.ports) {
      rows.push_back({fmt::format("  port {}", p.number),
                      fmt::format("{}, {}, {}{}", or_unknown(p.state), or_unknown(p.link_layer), or_unknown(p.rate),
                                  p.active_mtu > 0 ? fmt::format(", MTU {}", p.active_mtu) : std::string())});
      for (const auto& g : p.gids)
        rows.push_back({fmt::format("    GID {}", g.index), printable(g.gid) + (g.type.empty() ? "" : " " + printable(g.type)) +
                                                               (g.interface.empty() ? "" : " " + printable(g.interface))});
    }
  }
  if (rows.empty()) rows.push_back({"no device in /sys/class/infiniband"});
  auto out = "RDMA\n" + table(rows, 0, "  ") + "repair lanes\n";
  rows.clear();
  for (const auto& lane : f.lanes)
    rows.push_back({std::string(name_of(lane.lane)), lane.usable ? "usable" : "no", printable(lane.what)});
  return out + table(rows, 0, "  ");
}

std::string finding_text(const host_finding& f) {
  auto out = fmt::format("  {:<8} {}: {}\n", name(f.level), f.id, printable(f.what));
  if (!f.why.empty()) out += fmt::format("           {}\n", printable(f.why));
  for (std::size_t at = 0; at < f.cure.size();) {  // a cure has a line for each command
    const auto end = std::min(f.cure.find('\n', at), f.cure.size());
    out += fmt::format("           {} {}\n", at == 0 ? "mend:" : "     ", printable(f.cure.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::string total_text(const host_report& r) {
  const auto count = [&](severity s) { return std::ranges::count(r.findings, s, &host_finding::level); };
  const auto plural = [](auto n, std::string_view word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); };
  return fmt::format("{}, {}, {}; {} checked and good\n", plural(count(severity::problem), "problem"),
                     plural(count(severity::warning), "warning"), plural(count(severity::note), "note"),
                     count(severity::ok));
}

json count_or_null(const std::optional<std::uint64_t>& value) { return value ? json(*value) : json(nullptr); }
json count_or_null(const std::optional<unsigned>& value) { return value ? json(*value) : json(nullptr); }

json interface_json(const host_interface& n) {
  return {{"name", n.name},
          {"index", n.index},
          {"addresses", n.addresses},
          {"up", n.up},
          {"multicast", n.multicast},
          {"loopback", n.loopback},
          {"virtual_function", n.virtual_function},
          {"mtu", n.mtu},
          {"kind", n.kind},
          {"driver", n.driver},
          {"bits_per_s", n.bits_per_s},
          {"receive_ring", n.receive_ring},
          {"receive_ring_max", n.receive_ring_max},
          {"rp_filter", count_or_null(n.rp_filter)},
          {"forced_version", count_or_null(n.forced_version)},
          {"querier_version", n.querier_version},
          {"chosen", n.chosen},
          {"address", n.address},
          {"passed_over", n.passed_over},
          {"datagram_bytes", n.datagram_bytes}};
}

json rdma_json(const rdma_device& d) {
  json ports = json::array();
  for (const auto& p : d.ports) {
    json gids = json::array();
    for (const auto& g : p.gids)
      gids.push_back({{"index", g.index}, {"gid", g.gid}, {"type", g.type}, {"interface", g.interface}});
    ports.push_back({{"number", p.number},
                     {"state", p.state},
                     {"physical_state", p.physical_state},
                     {"link_layer", p.link_layer},
                     {"rate", p.rate},
                     {"active_mtu", p.active_mtu},
                     {"gids", std::move(gids)}});
  }
  return {{"name", d.name}, {"file", d.file}, {"usable", d.usable}, {"ports", std::move(ports)}};
}

json facts_json(const host_facts& f) {
  json interfaces = json::array(), rdma = json::array(), lanes = json::array();
  for (const auto& n : f.interfaces) interfaces.push_back(interface_json(n));
  for (const auto& d : f.rdma) rdma.push_back(rdma_json(d));
  for (const auto& l : f.lanes) lanes.push_back({{"lane", name_of(l.lane)}, {"usable", l.usable}, {"what", l.what}});
  return {{"interfaces", std::move(interfaces)},
          {"route", f.route},
          {"receive_buffer", f.receive_buffer},
          {"send_buffer", f.send_buffer},
          {"rmem_max", count_or_null(f.rmem_max)},
          {"wmem_max", count_or_null(f.wmem_max)},
          {"memberships_max", count_or_null(f.memberships_max)},
          {"source_filters_max", count_or_null(f.source_filters_max)},
          {"gso", f.gso},
          {"gro", f.gro},
          {"net_admin", f.net_admin},
          {"ipc_lock", f.ipc_lock},
          {"memlock_bytes", f.memlock_bytes == host_facts::no_limit ? json(nullptr) : json(f.memlock_bytes)},
          {"hugepage_bytes", f.hugepage_bytes},
          {"hugepages_free", f.hugepages_free},
          {"receive_buffer_errors", f.receive_buffer_errors},
          {"backlog_drops", f.backlog_drops},
          {"rp_filter_drops", f.rp_filter_drops},
          {"rdma", std::move(rdma)},
          {"lanes", std::move(lanes)},
          {"firewall",
           {{"known", f.firewall.known},
            {"chains", f.firewall.chains},
            {"drops_input", f.firewall.drops_input},
            {"drops_output", f.firewall.drops_output}}},
          {"container", f.container},
          {"own_network", f.own_network ? json(*f.own_network) : json(nullptr)},
          {"cloud", f.cloud}};
}

}  // namespace

std::string faults_text(const host_report& r) {
  std::string out;
  for (const auto& f : r.findings)
    if (f.level >= severity::warning) out += finding_text(f);
  return out;
}

std::string doctor_text(const host_report& r) {
  auto out = chosen_text(r) + "\n" + interfaces_text(r.facts) + "\n" + limits_text(r.facts) + "\n" + rdma_text(r.facts) +
             "\nfindings\n";
  for (const auto& f : r.findings) out += finding_text(f);
  return out + "\n" + total_text(r);
}

json doctor_json(const host_report& r, exit_code exit) {
  json findings = json::array();
  for (const auto& f : r.findings)
    findings.push_back(
        {{"severity", name(f.level)}, {"id", f.id}, {"what", f.what}, {"why", f.why}, {"cure", f.cure}});
  const auto& c = r.choice;
  return {{"event", "doctor"},
          {"role", r.role == host_role::sender ? "sender" : "receiver"},
          {"version", ddf::version()},
          {"ok", exit == exit_complete},
          {"exit", static_cast<int>(exit)},
          {"worst", name(r.worst())},
          {"chosen",
           {{"problem",
             {{"code", name(c.problem.code)}, {"message", c.problem.code == errc::ok ? "" : describe(c.problem)}}},
            {"group", r.facts.group},
            {"query", r.facts.query},
            {"interfaces", c.interfaces},
            {"interfaces_why", c.interfaces_why},
            {"datagram_bytes", c.datagram_bytes},
            {"datagram_why", c.datagram_why},
            {"bulk", c.bulk},
            {"bulk_why", c.bulk_why},
            {"repair", c.repair},
            {"repair_why", c.repair_why}}},
          {"facts", facts_json(r.facts)},
          {"findings", std::move(findings)}};
}

exit_code tell_host(const host_report& r, const std::string& program, const console_options& options) {
  const auto exit = r.worst() == severity::problem ? exit_failed : exit_complete;
  write_output(options.json ? json_line(doctor_json(r, exit)) : options.quiet ? faults_text(r) : doctor_text(r));
  return finish_output(program) ? exit : exit_failed;
}

}  // namespace ddf::tools
