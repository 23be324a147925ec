#include "tools/common/report_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/model/object_name.hpp"
#include "tools/common/plan_text.hpp"
#include "tools/common/text_table.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

constexpr std::size_t rows_max = 20;  // of objects, and of receivers

std::vector<std::pair<std::string_view, double>> stage_list(const stage_times& s) {
  return {{"discover", s.discover}, {"prepare", s.prepare}, {"plan", s.plan},   {"wire", s.wire},
          {"repair", s.repair},     {"verify", s.verify},   {"apply", s.apply}, {"commit", s.commit}};
}

/// How an object travelled, and what that saved.
std::string encoding_text(const report& r, const object_report& o) {
  if (o.encoding == "none") return "was there already";
  if (o.encoding == "whole") return "whole";
  const auto way = o.encoding == "delta" ? std::string("delta") : std::string("delta and whole");
  if (o.bytes == 0) return way;
  // A receiver counts what came by session, so with several objects there is no share of one.
  if (!r.sender && r.objects.size() > 1) return way;
  const auto bytes = r.sender ? planned_bytes(r.plan, o.name, o.bytes)
                              : r.bulk.bytes + r.repair.multicast_bytes + r.repair.unicast_bytes;
  return fmt::format("{}, {} {} ({})", way, bytes_text(bytes), r.sender ? "to the group" : "received",
                     share_text(static_cast<double>(bytes) / static_cast<double>(o.bytes)));
}

std::string objects_text(const report& r) {
  std::vector<const object_report*> order;
  for (const auto& o : r.objects) order.push_back(&o);
  std::stable_partition(order.begin(), order.end(), [](const object_report* o) { return o->problem.code != errc::ok; });

  std::vector<row> rows{{"object", "version", "size", "seconds", "goodput", ""}};
  for (const auto* o : order) {
    if (rows.size() > rows_max) break;
    const auto note = o->problem.code != errc::ok ? "FAILED: " + printable(describe(o->problem)) : encoding_text(r, *o);
    const bool moved = o->seconds > 0 && o->encoding != "none" && o->problem.code == errc::ok;
    rows.push_back({short_name(o->name), std::to_string(o->version), bytes_text(o->bytes),
                    fmt::format("{:.3f}", o->seconds),
                    moved ? rate_text(static_cast<double>(o->bytes) / o->seconds) : "-", note});
  }
  auto out = table(rows, 4);
  if (order.size() + 1 > rows.size()) out += fmt::format("... and {} more\n", order.size() + 1 - rows.size());
  return out;
}

std::string receivers_text(const report& r) {
  std::vector<const receiver_report*> order;
  for (const auto& one : r.receivers) order.push_back(&one);
  const auto complete = [](const receiver_report* one) { return one->state == "complete"; };
  std::stable_partition(order.begin(), order.end(), [&](const receiver_report* one) { return !complete(one); });

  std::vector<row> rows;
  std::size_t complete_count = 0;
  for (const auto* one : order) {
    complete_count += complete(one) ? 1 : 0;
    // Those that are not complete are all named; there is no other place to learn which they are.
    if (complete(one) && rows.size() >= rows_max) continue;
    std::vector<std::string> notes;
    if (!one->reason.empty()) notes.push_back(printable(one->reason));
    if (one->deaf) notes.emplace_back("heard no multicast, served by unicast");
    if (one->left_rate_loop) notes.emplace_back("too slow for the group, finished by unicast");
    if (one->nacks > 0)
      notes.push_back(fmt::format("{} NACKs, {} repaired", one->nacks, bytes_text(one->repaired_bytes)));
    rows.push_back({"  " + printable(one->id), one->state, joined(notes, "; ")});
  }
  auto out = fmt::format("receivers   {} of {} complete\n", complete_count, r.receivers.size()) + table(rows, 0);
  if (rows.size() < order.size()) out += fmt::format("  ... and {} more, complete\n", order.size() - rows.size());
  return out;
}

json holds_json(const receiver_report& one) {
  json out = json::object();
  for (const auto& [object, version] : one.holds) out[object] = version;
  return out;
}

json object_json(const object_report& o) {
  json out = {
      {"name", o.name}, {"version", o.version}, {"bytes", o.bytes}, {"encoding", o.encoding}, {"seconds", o.seconds}};
  if (!o.path.empty()) out["path"] = o.path;
  out["ok"] = o.problem.code == errc::ok;
  if (o.problem.code != errc::ok) out["problem"] = {{"code", name(o.problem.code)}, {"message", describe(o.problem)}};
  return out;
}

}  // namespace

std::string summary_text(const report& r) {
  std::uint64_t bytes = 0;
  std::size_t complete = 0;
  for (const auto& o : r.objects) {
    if (o.problem.code != errc::ok) continue;
    ++complete;
    bytes += o.bytes;
  }
  std::string out;
  if (!r.objects.empty()) out += objects_text(r) + "\n";

  out += fmt::format("total       {} object{}, {} in {}", complete, complete == 1 ? "" : "s", bytes_text(bytes),
                     seconds_text(r.seconds));
  if (r.goodput_bytes_per_s > 0)
    out += fmt::format(", goodput {} ({}/s)", rate_text(r.goodput_bytes_per_s),
                       bytes_text(static_cast<std::uint64_t>(r.goodput_bytes_per_s)));
  out += "\n";
  out += fmt::format("{}{} segments, {} over {}", r.sender ? "sent        " : "received    ", r.bulk.segments,
                     bytes_text(r.bulk.bytes), r.bulk.transport);
  if (r.sender && r.egress_ratio > 0)
    out += fmt::format("; egress {:.3f} x the objects, headers included", r.egress_ratio);
  if (!r.sender && r.delta_bytes > 0) out += fmt::format(" for {} of objects", bytes_text(bytes));
  out += "\n";
  out += fmt::format("repairs     {} NACK{}; {} by multicast, {} by unicast", r.repair.nacks,
                     r.repair.nacks == 1 ? "" : "s", bytes_text(r.repair.multicast_bytes),
                     bytes_text(r.repair.unicast_bytes));
  if (r.repair.read_bytes > 0) out += fmt::format(" ({} of it read from memory)", bytes_text(r.repair.read_bytes));
  if (r.repair.peer_bytes > 0) out += fmt::format(", {} from peers", bytes_text(r.repair.peer_bytes));
  if (r.bad_blocks > 0) out += fmt::format("; {} bad blocks", r.bad_blocks);
  out += "\n";
  if (r.resumed_bytes > 0) out += fmt::format("resumed     {} were there already\n", bytes_text(r.resumed_bytes));

  std::vector<std::string> parts;
  for (const auto& [stage, seconds] : stage_list(r.stages))
    if (seconds > 0) parts.push_back(fmt::format("{} {}", stage, seconds_text(seconds)));
  if (!parts.empty()) out += fmt::format("stages      {}  (they overlap)\n", joined(parts, ", "));
  if (!r.interfaces.empty()) out += fmt::format("interfaces  {}\n", printable(joined(r.interfaces, ", ")));
  if (!r.dropped.empty()) {
    parts.clear();
    for (const auto& [reason, count] : r.dropped) parts.push_back(fmt::format("{} {}", count, reason));
    out += fmt::format("dropped     {} (packets)\n", joined(parts, ", "));
  }
  if (r.sender) out += receivers_text(r);
  return out;
}

json object_event(const object_report& o) {
  json out = {{"event", "object"}};
  out.update(object_json(o));
  return out;
}

json summary_json(const report& r, exit_code exit) {
  json objects = json::array(), receivers = json::array(), stages = json::object(), dropped = json::object();
  for (const auto& o : r.objects) objects.push_back(object_json(o));
  for (const auto& one : r.receivers)
    receivers.push_back({{"id", one.id},
                         {"lane", one.lane},
                         {"state", one.state},
                         {"reason", one.reason},
                         {"holds", holds_json(one)},
                         {"deaf", one.deaf},
                         {"left_rate_loop", one.left_rate_loop},
                         {"nacks", one.nacks},
                         {"repaired_bytes", one.repaired_bytes}});
  for (const auto& [stage, seconds] : stage_list(r.stages)) stages[std::string(stage)] = seconds;
  for (const auto& [reason, count] : r.dropped) dropped[reason] = count;
  json out = {
      {"event", "summary"},
      {"role", r.sender ? "sender" : "receiver"},
      {"ok", exit == exit_complete},
      {"exit", static_cast<int>(exit)},
      {"outcome", {{"code", name(r.outcome.code)}, {"message", r.outcome.code == errc::ok ? "" : describe(r.outcome)}}},
      {"objects", objects},
      {"seconds", r.seconds},
      {"goodput_bytes_per_s", r.goodput_bytes_per_s},
      {"stages", stages},
      {"bulk", {{"transport", r.bulk.transport}, {"segments", r.bulk.segments}, {"bytes", r.bulk.bytes}}},
      {"repair",
       {{"multicast_bytes", r.repair.multicast_bytes},
        {"unicast_bytes", r.repair.unicast_bytes},
        {"read_bytes", r.repair.read_bytes},
        {"peer_bytes", r.repair.peer_bytes},
        {"nacks", r.repair.nacks}}},
      {"egress_ratio", r.egress_ratio},
      {"resumed_bytes", r.resumed_bytes},
      {"delta_bytes", r.delta_bytes},
      {"bad_blocks", r.bad_blocks},
      {"receivers", receivers},
      {"interfaces", r.interfaces},
      {"dropped", dropped},
      {"warnings", r.warnings}};
  if (r.sender) {
    out["plan"] = plan_json(r.plan);
    out["plan"]["measured"] = {{"group_bytes", r.bulk.bytes}, {"seconds", r.seconds}};
  }
  return out;
}

}  // namespace ddf::tools
