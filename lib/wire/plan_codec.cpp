#include "lib/wire/plan_codec.hpp"

#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::size_t root_bytes = 4 + 16, delta_bytes_min = 4 + 8 + 16 + 8 + 4, range_bytes = 8;

std::vector<std::byte> write_plan(const session_plan& p) {
  std::vector<std::byte> out;
  writer w(out);
  w.u32(static_cast<std::uint32_t>(p.roots.size()));
  for (const object_root& r : p.roots) {
    w.u32(r.object);
    w.bytes(r.root.bytes);
  }
  w.u32(static_cast<std::uint32_t>(p.deltas.size()));
  for (const delta_stream& d : p.deltas) {
    w.u32(d.object);
    w.u64(d.base_version.value);
    w.bytes(d.base_root.bytes);
    w.u64(d.bytes);
    w.u32(static_cast<std::uint32_t>(d.whole.size()));
    for (const range& r : d.whole) {
      w.u32(static_cast<std::uint32_t>(r.first));
      w.u32(static_cast<std::uint32_t>(r.size()));
    }
  }
  return out;
}

result<session_plan> parse_plan(std::span<const std::byte> bytes, const catalogue& c) {
  const auto malformed = [] { return fail(errc::invalid_argument, "the plan is malformed"); };
  reader r(bytes);
  session_plan p;
  const std::size_t roots = r.u32();
  if (roots > limits::objects || roots * root_bytes > r.left()) return malformed();
  p.roots.reserve(roots);
  for (std::size_t i = 0; i < roots; ++i) {
    object_root one;
    one.object = r.u32();
    one.root = r.digest();
    p.roots.push_back(one);
  }
  const std::size_t deltas = r.u32();
  if (deltas > limits::deltas || deltas * delta_bytes_min > r.left()) return malformed();
  p.deltas.reserve(deltas);
  for (std::size_t i = 0; i < deltas; ++i) {
    delta_stream d;
    d.object = r.u32();
    d.base_version.value = r.u64();
    d.base_root = r.digest();
    d.bytes = r.u64();
    const std::size_t ranges = r.u32();
    if (!r.ok() || ranges * range_bytes > r.left()) return malformed();
    d.whole.reserve(ranges);
    for (std::size_t k = 0; k < ranges; ++k) {
      const std::uint64_t first = r.u32();
      const std::uint64_t size = r.u32();
      d.whole.push_back({first, first + size});
    }
    p.deltas.push_back(std::move(d));
  }
  if (!r.done()) return malformed();
  if (auto ok = check_plan(p, c); !ok) return tl::unexpected(ok.error());
  return p;
}

}  // namespace ddf
