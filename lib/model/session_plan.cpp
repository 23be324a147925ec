#include "lib/model/session_plan.hpp"

#include <algorithm>

#include "lib/model/object_name.hpp"

namespace ddf {

const digest* session_plan::root_of(std::uint32_t object) const {
  const auto it = std::ranges::lower_bound(roots, object, {}, &object_root::object);
  return it != roots.end() && it->object == object ? &it->root : nullptr;
}

manifest delta_manifest(const delta_stream& d, const manifest& target) {
  manifest m;
  m.name = target.name;
  m.version = target.version;
  m.kind = object_kind::memory;
  m.block_bytes = block_bytes_for(d.bytes);
  part p;
  p.size = d.bytes;
  m.parts.push_back(std::move(p));
  return m;
}

result<void> check_plan(const session_plan& p, const catalogue& c) {
  if (p.deltas.size() > limits::deltas) return fail(errc::too_large, "more than 4,096 deltas in one session");
  for (std::size_t i = 0; i < p.roots.size(); ++i)
    if (p.roots[i].object >= c.size() || (i != 0 && p.roots[i].object <= p.roots[i - 1].object)) return fail(errc::invalid_argument, "a root is of no object, or out of order");
  std::uint64_t blocks = 0;
  for (const manifest& m : c) blocks += m.blocks();
  for (const delta_stream& d : p.deltas) {
    if (d.object >= c.size()) return fail(errc::invalid_argument, "a delta makes no object of the session");
    const manifest& target = c[d.object];
    const auto bad = [&](const char* why) { return fail(errc::invalid_argument, "the delta for '" + printable(target.name) + "' " + why); };
    if (p.root_of(d.object) == nullptr) return bad("has no root to prove its result by");
    if (d.bytes == 0 || d.bytes > limits::delta_bytes(target.size())) return bad("has an impossible length");
    if (d.base_version.value == 0) return bad("names version 0 as its base");
    std::uint64_t at = 0;
    for (const range& r : d.whole) {
      if (r.first < at || r.first >= r.last || r.last > target.blocks()) return bad("leaves out blocks that are not there");
      at = r.last;
    }
    if ((blocks += delta_manifest(d, target).blocks()) > limits::blocks) return fail(errc::too_large, "more than 2^24 blocks in one session");
  }
  return {};
}

delivery delivery_for(const session_plan& p, std::uint32_t object, const std::vector<held_version>& held) {
  const auto holds = [&](const digest& root) { return std::ranges::any_of(held, [&](const held_version& h) { return h.object == object && h.root == root; }); };
  const digest* const root = p.root_of(object);
  if (root != nullptr && std::ranges::any_of(held, [&](const held_version& h) { return h.object == object && h.current && h.root == *root; })) return {delivery::kind::nothing, 0};
  delivery found;
  for (std::size_t i = 0; i < p.deltas.size(); ++i) {
    const delta_stream& d = p.deltas[i];
    if (d.object != object || !holds(d.base_root)) continue;
    if (found.by != delivery::kind::delta || d.bytes < p.deltas[found.delta].bytes) found = {delivery::kind::delta, i};
  }
  return found;
}

}  // namespace ddf
