#include "tools/common/plan_text.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "tools/common/text_table.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

constexpr std::size_t objects_max = 20;  // that have a block of their own
constexpr std::size_t rows_max = 12;     // of one object's tables

std::string optional_bytes(std::uint64_t bytes) { return bytes == 0 ? "-" : bytes_text(bytes); }
std::string optional_seconds(double seconds, bool there) { return there ? seconds_text(seconds) : "-"; }

struct block {
  std::string object;
  std::vector<const plan_choice*> choices;
  std::vector<const plan_operation*> operations;
  std::uint64_t group_bytes = 0;
};

/// The objects in the order of what they send, the most first.
std::vector<block> blocks_of(const plan_report& p) {
  std::vector<block> out;
  std::map<std::string, std::size_t> place;
  std::map<std::string, std::uint64_t> group_bytes;
  for (const auto& o : p.objects) group_bytes[o.object] = o.group_bytes;
  const auto block_of = [&](const std::string& object) -> block& {
    const auto [at, is_new] = place.emplace(object, out.size());
    if (is_new) out.push_back({object, {}, {}, group_bytes[object]});
    return out[at->second];
  };
  for (const auto& c : p.choices) block_of(c.object).choices.push_back(&c);
  for (const auto& o : p.operations) block_of(o.object).operations.push_back(&o);
  std::stable_sort(out.begin(), out.end(),
                   [](const block& a, const block& b) { return a.group_bytes > b.group_bytes; });
  return out;
}

std::string choices_text(const block& b) {
  std::vector<row> rows{{"receivers", "holds", "takes", "delta", "whole", "by delta", "by whole", "why"}};
  for (const auto* c : b.choices) {
    if (rows.size() > rows_max) break;
    rows.push_back({std::to_string(c->receivers), c->holds, c->takes, optional_bytes(c->delta_bytes),
                    optional_bytes(c->whole_bytes), optional_seconds(c->delta_seconds, c->delta_bytes != 0),
                    optional_seconds(c->whole_seconds, c->whole_bytes != 0), c->reason});
  }
  auto out = table(rows, 0, "  ");
  if (b.choices.size() + 1 > rows.size()) out += fmt::format("  ... and {} more\n", b.choices.size() + 1 - rows.size());
  return out;
}

std::string operations_text(const block& b) {
  std::vector<std::string> bases;
  for (const auto* o : b.operations)
    if (std::find(bases.begin(), bases.end(), o->base) == bases.end()) bases.push_back(o->base);
  std::string out;
  for (const auto& base : bases) {
    std::uint64_t records = 0, made = 0, sent = 0;
    for (const auto* o : b.operations)
      if (o->base == base) records += o->records, made += o->target_bytes, sent += o->payload_bytes;
    std::vector<row> rows{{"operation", "records", "makes", "sends", "share"}};
    for (const auto* o : b.operations) {
      if (o->base != base) continue;
      const double share = sent == 0 ? 0 : static_cast<double>(o->payload_bytes) / static_cast<double>(sent);
      rows.push_back({o->operation, std::to_string(o->records), bytes_text(o->target_bytes),
                      bytes_text(o->payload_bytes), fmt::format("{:.0f} %", share * 100)});
    }
    if (rows.size() > 2)
      rows.push_back(
          {"together", std::to_string(records), bytes_text(made), bytes_text(sent), sent == 0 ? "0 %" : "100 %"});
    out += fmt::format("  the changed blocks, from {}:\n", base) + table(rows, 4, "    ");
  }
  return out;
}

}  // namespace

std::uint64_t planned_bytes(const plan_report& p, const std::string& object, std::uint64_t bytes) {
  const auto found =
      std::find_if(p.objects.begin(), p.objects.end(), [&](const planned_object& o) { return o.object == object; });
  return found == p.objects.end() ? bytes : found->group_bytes;
}

std::string plan_text(const plan_report& p) {
  std::string out;
  auto blocks = blocks_of(p);
  // Who asks for a plan of many objects wants to see those that cost something.
  const auto costs = [](const block& b) { return b.group_bytes != 0; };
  const auto first_idle = std::stable_partition(blocks.begin(), blocks.end(), costs);
  const auto idle = blocks.end() - first_idle;
  if (idle > 1) blocks.erase(first_idle, blocks.end());
  for (std::size_t i = 0; i < blocks.size() && i < objects_max; ++i)
    out += fmt::format("plan of '{}'\n", short_name(blocks[i].object)) + choices_text(blocks[i]) +
           operations_text(blocks[i]) + "\n";
  if (blocks.size() > objects_max) {
    std::uint64_t rest = 0;
    for (std::size_t i = objects_max; i < blocks.size(); ++i) rest += blocks[i].group_bytes;
    out += fmt::format("... and {} more objects: {} to the group\n", blocks.size() - objects_max, bytes_text(rest));
  }
  if (idle > 1) out += fmt::format("... and {} objects that all have already\n", idle);
  if (blocks.size() > objects_max || idle > 1) out += "\n";
  out += fmt::format(
      "planned     {} to the group once, {} until the last receiver has it; comparing and encoding took {}\n",
      bytes_text(p.group_bytes), seconds_text(p.seconds), seconds_text(p.prepare_seconds));
  return out;
}

std::string plan_outcome_text(const report& r) {
  if (r.plan.choices.empty()) return {};
  return fmt::format("plan        estimated {} to the group in {}; measured {} in {}\n", bytes_text(r.plan.group_bytes),
                     seconds_text(r.plan.seconds), bytes_text(r.bulk.bytes), seconds_text(r.seconds));
}

json plan_json(const plan_report& p) {
  json objects = json::array(), choices = json::array(), operations = json::array();
  for (const auto& o : p.objects) objects.push_back({{"object", o.object}, {"group_bytes", o.group_bytes}});
  for (const auto& c : p.choices)
    choices.push_back({{"object", c.object},
                       {"receivers", c.receivers},
                       {"holds", c.holds},
                       {"takes", c.takes},
                       {"delta_bytes", c.delta_bytes},
                       {"whole_bytes", c.whole_bytes},
                       {"delta_seconds", c.delta_seconds},
                       {"whole_seconds", c.whole_seconds},
                       {"reason", c.reason}});
  for (const auto& o : p.operations)
    operations.push_back({{"object", o.object},
                          {"base", o.base},
                          {"operation", o.operation},
                          {"records", o.records},
                          {"target_bytes", o.target_bytes},
                          {"payload_bytes", o.payload_bytes}});
  return {{"objects", objects},           {"choices", choices},   {"operations", operations},
          {"group_bytes", p.group_bytes}, {"seconds", p.seconds}, {"prepare_seconds", p.prepare_seconds}};
}

}  // namespace ddf::tools
