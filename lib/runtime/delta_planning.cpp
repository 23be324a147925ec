#include "lib/runtime/delta_planning.hpp"

#include <algorithm>
#include <fstream>

#include "lib/model/object_name.hpp"

namespace ddf {

static std::string version_text(version_id v) { return "version " + std::to_string(v.value); }

static const char* name_of(delta::operation o) {
  switch (o) {
    case delta::operation::keep: return "keep";
    case delta::operation::replace: return "replace";
    case delta::operation::sparse_context: return "sparse";
    case delta::operation::sparse_fast: return "sparse, fast";
    case delta::operation::gather: return "gather";
    case delta::operation::dense: return "dense";
    case delta::operation::planes: return "planes";
    case delta::operation::prefix: return "prefix";
  }
  return "?";
}

result<void> delta_planning::run(const std::atomic<bool>& abandon) {
  for (object& o : objects) {
    const manifest& m = o.description;
    std::vector<made_delta> made;
    const bool worth_it = forced || worth_a_delta(m.size(), measured);
    for (delta_base& base : o.bases) {
      // Of the same bytes a delta is all blocks kept, for who has them in another form.
      const bool of_use = std::ranges::any_of(o.demand.bases, [&](const sender::demand::base& b) { return b.root == base.digests.root && !b.current; });
      if (!wants_deltas || !worth_it || (o.digests_known && base.digests.root == o.digests.root && !of_use)) continue;
      delta_options how = options;
      if (o.changed_from == base.digests.root) how.changed = &o.changed;
      auto one = make_delta(m, *o.source, o.digests, o.digests_known, base, how, abandon);
      if (!one && one.error().code == errc::stale_base) {   // its bytes are gone since: its digests are not
        base.bytes.reset();
        one = make_delta(m, *o.source, o.digests, o.digests_known, base, how, abandon);
      }
      if (!one && one.error().code == errc::io && o.source->check_read()) {   // no room to make it: the whole goes without
        warnings.push_back("no delta of '" + printable(m.name) + "' was made from " + version_text(base.version) + ", so it goes whole: " + describe(one.error()) + (options.scratch_folder.empty() ? "" : " (in " + options.scratch_folder + ")"));
        continue;
      }
      if (!one) return tl::unexpected(one.error());
      o.digests_known = true;
      report.prepare_seconds += one->seconds;
      if (base.digests.root != o.digests.root || of_use) made.push_back(std::move(*one));
    }
    if (!o.digests_known) {
      auto t = digests_of(m, *o.source, abandon);
      if (!t) return tl::unexpected(t.error());
      o.digests = std::move(*t);
      o.digests_known = true;
    }

    // A receiver proves that it has what was read; whether that was one version is seen here, before a delta says so.
    if (auto ok = o.source->check_read(); !ok) return ok;

    object_facts facts;
    facts.bytes = m.size();
    for (const block_place& b : block_places(m)) facts.block_bytes.push_back(b.bytes);
    facts.with_nothing = o.demand.with_nothing;
    std::uint32_t without_base = 0;
    std::vector<delta_candidate> candidates;
    for (const made_delta& d : made) candidates.push_back({d.base_version, d.base_root, 0, made_delta::overhead_bytes, d.costs(m)});
    for (const sender::demand::base& b : o.demand.bases) {
      const auto candidate = std::ranges::find(candidates, b.root, &delta_candidate::base_root);
      if (b.current && b.root == o.digests.root) facts.current += b.receivers;
      else if (candidate != candidates.end()) candidate->receivers += b.receivers;
      else without_base += b.receivers;
    }
    facts.with_nothing += without_base;
    const object_plan chosen = plan_object(facts, candidates, measured);

    plan.roots.push_back({o.index, o.digests.root});
    for (const object_plan::chosen_delta& c : chosen.deltas) {
      const made_delta& d = made[c.candidate];
      delta_object stream = stream_of(d, o.digests.root, m.size(), c.whole);
      delta_stream s{o.index, d.base_version, d.base_root, stream.bytes, c.whole};
      session_source::item item{delta_manifest(s, m), std::move(stream.source), {}};
      auto t = digests_of(item.description, *item.source, abandon);
      if (!t) return tl::unexpected(t.error());
      item.digests = std::move(*t);
      plan.deltas.push_back(std::move(s));
      deltas.push_back(std::move(item));
    }
    report.objects.push_back({m.name, chosen.group_bytes});
    report.group_bytes += chosen.group_bytes;
    report.seconds += chosen.seconds;
    for (const choice& c : chosen.choices) {
      plan_choice one{m.name, c.receivers, c.holds, c.takes, c.delta_bytes, c.whole_bytes, c.delta_seconds, c.whole_seconds, c.reason};
      if (c.holds == "nothing" && without_base != 0) {
        one.receivers = o.demand.with_nothing;
        if (one.receivers != 0) report.choices.push_back(one);
        one.receivers = without_base;
        one.holds = "older versions";
        one.reason = !wants_deltas ? "no deltas are wanted" : !worth_it ? "on a link this fast, making and applying a delta takes longer than the whole" : "what they hold is not known here, or not any more";
      }
      report.choices.push_back(std::move(one));
    }
    for (const made_delta& d : made)
      for (std::size_t i = 0; i < d.account.by_operation.size(); ++i) {
        const auto& line = d.account.by_operation[i];
        if (line.records != 0) report.operations.push_back({m.name, version_text(d.base_version), name_of(static_cast<delta::operation>(i)), line.records, line.target_bytes, line.payload_bytes});
      }
  }
  return {};
}

std::string resembling_object(const base_store& bases, const manifest& m, object_source& source) {
  constexpr std::size_t looked_at = 64;
  constexpr double enough = 0.3;
  const auto target = bytes_of(m, source);
  const auto read_target = [&](std::uint64_t offset, std::span<std::byte> out) { return target->read(offset, out); };
  const auto map = delta::tensor_map_of(m, read_target);
  if (!map) return {};
  std::string best;
  double most = enough;
  for (const published_base& b : bases.newest_of_all(looked_at)) {
    if (b.description.name == m.name || b.description.size() == 0) continue;
    const delta_base base = bases.open(b);
    if (!base.bytes) continue;
    const auto read_base = [&](std::uint64_t offset, std::span<std::byte> out) { return base.bytes->read(offset, out); };
    const auto base_map = delta::tensor_map_of(b.description, read_base);
    if (!base_map) continue;
    const double alike = delta::resemblance(*base_map, read_base, *map, read_target);
    if (alike > most) most = alike, best = b.description.name;
  }
  return best;
}

double link_bytes_per_s(const std::vector<std::string>& interfaces) {
  double least = 0;
  for (const std::string& name : interfaces) {
    std::ifstream file("/sys/class/net/" + name + "/speed");
    double mbit = 0;
    if (file >> mbit && mbit > 0 && (least == 0 || mbit * 125'000 < least)) least = mbit * 125'000;
  }
  return least;
}

}  // namespace ddf
