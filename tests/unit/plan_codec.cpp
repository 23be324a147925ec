#include "lib/wire/plan_codec.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"
#include "lib/wire/cursor.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/catalogues.hpp"
#include "tests/support/golden.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(plan_codec_)

static catalogue objects() { return {test::file("a", 1 << 20), test::folder("b", {0, 1, 65537}), test::file("empty", 0)}; }   // 16, 3 and 0 blocks

static digest root(std::uint8_t n) {
  digest d;
  d.bytes.fill(static_cast<std::byte>(n));
  return d;
}

static session_plan sample() {
  session_plan p;
  p.roots = {{0, root(1)}, {1, root(2)}, {2, root(3)}};
  p.deltas = {{0, version_id{41}, root(4), 5000, {{0, 1}, {3, 16}}}, {0, version_id{40}, root(5), 70'000, {}}, {1, version_id{~std::uint64_t{0}}, root(6), 64, {{1, 3}}}, {2, version_id{1}, root(7), 64, {}}};
  return p;
}

BOOST_AUTO_TEST_CASE(a_plan_reads_back) {
  const auto back = parse_plan(write_plan(sample()), objects());
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST((*back == sample()));
  const auto nothing = parse_plan(write_plan({}), objects());
  BOOST_REQUIRE(nothing.has_value());
  BOOST_TEST(nothing->empty());
}

BOOST_AUTO_TEST_CASE(random_plans_read_back) {
  prng random(1);
  const catalogue c = objects();
  for (int round = 0; round < 2000; ++round) {
    session_plan p;
    for (std::uint32_t o = 0; o < c.size(); ++o)
      if (random.next() % 4 != 0) p.roots.push_back({o, root(static_cast<std::uint8_t>(random.next() & 0xff))});
    for (std::uint64_t n = random.next() % 6; n-- != 0 && !p.roots.empty();) {
      delta_stream d{p.roots[random.next() % p.roots.size()].object, version_id{random.next() | 1}, root(static_cast<std::uint8_t>(random.next() & 0xff)), 1 + random.next() % 1'000'000, {}};
      for (std::uint64_t at = 0; (at += random.next() % 3) < c[d.object].blocks();) {
        const std::uint64_t last = std::min(c[d.object].blocks(), at + 1 + random.next() % 4);
        d.whole.push_back({at, last});
        at = last;
      }
      p.deltas.push_back(std::move(d));
    }
    const auto back = parse_plan(write_plan(p), c);
    BOOST_REQUIRE_MESSAGE(back.has_value(), round << ": " << back.error().what);
    BOOST_REQUIRE((*back == p));
  }
}

BOOST_AUTO_TEST_CASE(a_plan_has_the_bytes_of_its_golden_file) {
  const auto path = test::golden_folder() / "session_plan.hex";
  if (test::writes_golden()) test::write_golden(path, "three roots; two deltas for one object, one for a folder, one for an empty file", write_plan(sample()));
  BOOST_TEST((test::read_golden(path).bytes == write_plan(sample())));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  auto bytes = write_plan(sample());
  for (std::size_t n = 0; n < bytes.size(); ++n) BOOST_REQUIRE(!parse_plan(std::span(bytes).first(n), objects()).has_value());
  bytes.push_back(std::byte{0});
  BOOST_TEST(!parse_plan(bytes, objects()).has_value());
}

BOOST_AUTO_TEST_CASE(every_value_of_one_byte_is_refused_or_writes_back_to_itself) {
  const auto whole = write_plan(sample());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (unsigned v = 0; v < 256; ++v) {
      auto changed = whole;
      changed[i] = static_cast<std::byte>(v);
      if (const auto back = parse_plan(changed, objects())) BOOST_REQUIRE_MESSAGE(write_plan(*back) == changed, "byte " << i << " = " << v);
    }
}

struct refused {
  const char *name, *error;
  std::vector<std::byte> bytes;
};

static std::vector<std::byte> changed_sample(void (*change)(session_plan&)) {
  session_plan p = sample();
  change(p);
  return write_plan(p);
}

static std::vector<std::byte> counts(std::uint32_t roots, std::uint32_t deltas, bool ranges = false) {
  std::vector<std::byte> out;
  writer w(out);
  w.u32(roots);
  if (roots == 0) w.u32(deltas);
  if (ranges) {
    w.u32(0), w.u64(1), w.bytes(root(1).bytes), w.u64(64);
    w.u32(0xffffffff);
  }
  return out;
}

static std::vector<refused> refusals() {
  return {
      {"roots_claimed", "malformed", counts(3, 0)},
      {"roots_claimed_absurdly", "malformed", counts(0xffffffff, 0)},
      {"deltas_claimed", "malformed", counts(0, 4096)},
      {"deltas_claimed_absurdly", "malformed", counts(0, 0xffffffff)},
      {"ranges_claimed_absurdly", "malformed", counts(0, 1, true)},
      {"root_of_no_object", "root is of no object", changed_sample([](session_plan& p) { p.roots[2].object = 3; })},
      {"root_twice", "out of order", changed_sample([](session_plan& p) { p.roots[1].object = 0; })},
      {"roots_out_of_order", "out of order", changed_sample([](session_plan& p) { std::swap(p.roots[0], p.roots[1]); })},
      {"delta_of_no_object", "makes no object", changed_sample([](session_plan& p) { p.deltas[0].object = 3; })},
      {"delta_without_a_root", "'b' has no root", changed_sample([](session_plan& p) { p.roots.erase(p.roots.begin() + 1); })},
      {"delta_of_no_bytes", "'a' has an impossible length", changed_sample([](session_plan& p) { p.deltas[0].bytes = 0; })},
      {"delta_too_long", "'a' has an impossible length", changed_sample([](session_plan& p) { p.deltas[0].bytes = limits::delta_bytes(1 << 20) + 1; })},
      {"delta_of_2_to_the_64", "'a' has an impossible length", changed_sample([](session_plan& p) { p.deltas[0].bytes = ~std::uint64_t{0}; })},
      {"base_version_0", "names version 0", changed_sample([](session_plan& p) { p.deltas[0].base_version.value = 0; })},
      {"whole_past_the_end", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[0].whole = {{15, 17}}; })},
      {"whole_empty", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[0].whole = {{3, 3}}; })},
      {"whole_overlaps", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[0].whole = {{3, 6}, {5, 7}}; })},
      {"whole_out_of_order", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[0].whole = {{5, 7}, {3, 4}}; })},
      {"whole_of_4_billion", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[0].whole = {{0xffffffff, 0x1fffffffe}}; })},
      {"whole_of_an_empty_object", "blocks that are not there", changed_sample([](session_plan& p) { p.deltas[3].whole = {{0, 1}}; })},
  };
}

BOOST_AUTO_TEST_CASE(a_plan_that_breaks_a_rule_is_refused_with_its_reason) {
  for (const refused& r : refusals()) {
    const auto p = parse_plan(r.bytes, objects());
    BOOST_REQUIRE_MESSAGE(!p.has_value(), r.name);
    BOOST_TEST(p.error().what.find(r.error) != std::string::npos, r.name << ": " << p.error().what);
  }
}

BOOST_AUTO_TEST_CASE(files_that_must_be_refused_are) {
  const auto folder = test::golden_folder() / "plans_refused";
  if (test::writes_golden())
    for (const refused& r : refusals()) test::write_golden(folder / (std::string(r.name) + ".hex"), r.error, r.bytes);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto golden = test::read_golden(entry.path());
    const auto p = parse_plan(golden.bytes, objects());
    BOOST_REQUIRE_MESSAGE(!p.has_value(), entry.path().stem());
    BOOST_TEST(p.error().what.find(golden.comment) != std::string::npos, entry.path().stem() << ": " << p.error().what);
    ++files;
  }
  BOOST_TEST(files == refusals().size());
}

BOOST_AUTO_TEST_CASE(counts_beyond_the_bytes_take_no_memory) {
  const catalogue c = objects();
  for (const refused& r : refusals()) {
    const std::size_t before = test::bytes_allocated();
    const bool parsed = parse_plan(r.bytes, c).has_value();
    const std::size_t taken = test::bytes_allocated() - before;
    BOOST_TEST(!parsed);
    BOOST_TEST(taken < 4096u, r.name << " took " << taken << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(the_bounds_of_a_session_hold) {
  session_plan p;
  p.roots = {{0, root(1)}};
  for (std::size_t i = 0; i < limits::deltas; ++i) p.deltas.push_back({0, version_id{i + 1}, root(2), 64, {}});
  BOOST_TEST(parse_plan(write_plan(p), objects()).has_value());
  p.deltas.push_back(p.deltas[0]);
  BOOST_TEST((check_plan(p, objects()).error().code == errc::too_large));
  BOOST_TEST(!parse_plan(write_plan(p), objects()).has_value());

  const catalogue full{test::file("full", limits::blocks * limits::block_bytes_max, limits::block_bytes_max)};
  BOOST_TEST(check_plan({{{0, root(1)}}, {}}, full).has_value());
  BOOST_TEST((check_plan({{{0, root(1)}}, {{0, version_id{1}, root(2), 64, {}}}}, full).error().code == errc::too_large));   // its delta has a block, too
}

BOOST_AUTO_TEST_CASE(the_longest_plan_fits_its_bound) {
  // Every other block of the largest session whole, in one delta for each of many objects: more than that no plan holds.
  session_plan p;
  p.roots = {{0, root(1)}};
  p.deltas = {{0, version_id{1}, root(2), 64, {}}};
  const catalogue c{test::file("a", (limits::plan_bytes / 8 - 16) * 2 * std::uint64_t{limits::block_bytes_min})};
  for (std::uint64_t b = 0; b < c[0].blocks(); b += 2) p.deltas[0].whole.push_back({b, b + 1});
  const auto bytes = write_plan(p);
  BOOST_TEST(bytes.size() <= limits::plan_bytes);
  const std::size_t before = test::bytes_allocated();
  BOOST_TEST(parse_plan(bytes, c).has_value());
  BOOST_TEST(test::bytes_allocated() - before < 4 * bytes.size());
}

BOOST_AUTO_TEST_SUITE_END()
