// A plan that parses keeps every bound of its catalogue and writes back to the same bytes; every receiver gets every object somehow.
#include "lib/wire/plan_codec.hpp"
#include "tests/support/catalogues.hpp"
#include "tests/support/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ddf::catalogue c{ddf::test::file("a", 1 << 20), ddf::test::folder("b", {0, 1, 65537}), ddf::test::file("empty", 0), ddf::test::file("large", std::uint64_t{1} << 45, 4 << 20)};
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto p = ddf::parse_plan(bytes, c);
  if (!p) {
    FUZZ_CHECK(p.error().code == ddf::errc::invalid_argument || p.error().code == ddf::errc::too_large);
    FUZZ_CHECK(!p.error().what.empty());
    return 0;
  }
  FUZZ_CHECK(ddf::check_plan(*p, c).has_value());
  const auto again = ddf::write_plan(*p);
  FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  std::vector<ddf::held_version> held;
  for (const ddf::delta_stream& d : p->deltas) {
    const ddf::manifest& target = c[d.object];
    FUZZ_CHECK(p->root_of(d.object) != nullptr);
    FUZZ_CHECK(ddf::delta_manifest(d, target).size() == d.bytes && d.bytes <= ddf::limits::delta_bytes(target.size()));
    for (const ddf::range& r : d.whole) FUZZ_CHECK(r.first < r.last && r.last <= target.blocks());
    held.push_back({d.object, d.base_version, d.base_root});
  }
  for (std::uint32_t object = 0; object < c.size(); ++object) {
    FUZZ_CHECK(ddf::delivery_for(*p, object, {}).by == ddf::delivery::kind::whole);
    const auto d = ddf::delivery_for(*p, object, held);
    if (d.by == ddf::delivery::kind::delta) FUZZ_CHECK(p->deltas[d.delta].object == object);
    if (const auto* root = p->root_of(object)) FUZZ_CHECK(ddf::delivery_for(*p, object, {{object, ddf::version_id{1}, *root, true}}).by == ddf::delivery::kind::nothing);
  }
  return 0;
}
