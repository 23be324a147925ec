#include "codecs/delta/align.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/weights.hpp"

using namespace ddf;
using namespace ddf::delta;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(delta_align)

static bytes_of joined(std::initializer_list<bytes_of> all) {
  bytes_of out;
  for (const auto& b : all) out.insert(out.end(), b.begin(), b.end());
  return out;
}

// Aligned, and all but `most` bytes of the target found where the regions say.
static std::vector<region> aligned(const object& base, const object& target, std::uint64_t most) {
  const auto regions = regions_of(base, target);
  BOOST_TEST(fault(regions, target.bytes.size(), base.bytes.size()) == "");
  BOOST_TEST(target.bytes.size() - same_bytes(regions, base, target) <= most);
  const auto made = delta_of(base, target, 64 << 10);
  BOOST_TEST(made.equal);
  return regions;
}

static std::vector<weights> model(std::size_t elements = 40'000) {
  std::vector<weights> out;
  for (unsigned i = 0; i < 6; ++i) out.push_back(bf16_tensor("layers." + std::to_string(i) + ".w", i, elements));
  out.push_back({"norm", "F32", "[1000]", noise(77, 4000)});
  return out;
}

BOOST_AUTO_TEST_CASE(a_longer_header_shifts_what_follows) {
  const auto tensors = model();
  const auto base = file_object(safetensors(tensors)), target = file_object(safetensors(tensors, std::string(1360, 'x')));
  const auto regions = aligned(base, target, 4000);
  BOOST_REQUIRE(regions.size() == 3u);   // the header, all bf16 tensors, the norm
  BOOST_TEST((regions[1].element == element::bf16));
  BOOST_TEST(regions[1].target_offset - regions[1].base_offset == target.bytes.size() - base.bytes.size());
}

BOOST_AUTO_TEST_CASE(tensors_are_found_wherever_they_stand) {
  auto tensors = model();
  const auto base = file_object(safetensors(tensors));
  std::reverse(tensors.begin(), tensors.end());
  aligned(base, file_object(safetensors(tensors)), 2000);

  const std::vector<weights> first(tensors.begin(), tensors.begin() + 3), second(tensors.begin() + 3, tensors.end());
  const auto two = folder_object({{"config.json", as_bytes("{\"a\":1}")}, {"m-1-of-2.safetensors", safetensors(first)}, {"m-2-of-2.safetensors", safetensors(second)}});
  const std::vector<weights> one(tensors.begin(), tensors.begin() + 1), rest(tensors.begin() + 1, tensors.end());
  const auto other = folder_object({{"config.json", as_bytes("{\"a\":2}")}, {"m-1-of-2.safetensors", safetensors(rest)}, {"m-2-of-2.safetensors", safetensors(one)}});
  aligned(two, other, 2000);
}

BOOST_AUTO_TEST_CASE(identical_objects_are_one_region_per_element) {
  const auto o = file_object(safetensors(model()));
  const auto regions = aligned(o, o, 0);
  BOOST_TEST(regions.size() == 3u);
  for (const auto& r : regions) BOOST_TEST(r.base_offset == r.target_offset);
  const auto made = delta_of(o, o);
  BOOST_TEST(made.bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_grew_keeps_its_beginning) {
  const auto embedding = bf16_weights(5, 200'000);
  const bytes_of rows = bf16_weights(6, 20'000);
  const weights old{"embed", "BF16", "[200000]", embedding}, grown{"embed", "BF16", "[220000]", joined({embedding, rows})};
  const weights cut{"embed", "BF16", "[150000]", bytes_of(embedding.begin() + 100'000, embedding.end())};
  const auto base = file_object(safetensors({old}));
  aligned(base, file_object(safetensors({grown})), rows.size() + 500);
  aligned(base, file_object(safetensors({cut})), 500);   // its first rows are gone
}

BOOST_AUTO_TEST_CASE(an_untyped_file_that_moved_within_itself_is_found_by_anchors) {
  const auto old = noise(9, 3 << 20), in = noise(10, 12'345);
  const auto base = folder_object({{"w.bin", old}});
  const auto part_of_old = [&](std::size_t first, std::size_t last) { return bytes_of(old.begin() + static_cast<std::ptrdiff_t>(first), old.begin() + static_cast<std::ptrdiff_t>(last)); };
  const auto all = part_of_old(0, old.size());
  aligned(base, folder_object({{"w.bin", joined({in, all})}}), in.size() + 300);
  aligned(base, folder_object({{"w.bin", joined({part_of_old(0, 1'000'001), in, part_of_old(1'000'001, old.size())})}}), in.size() + 300);
  const auto regions = aligned(base, folder_object({{"w.bin", joined({part_of_old(0, 800'001), in, part_of_old(800'001, 1'700'003), part_of_old(1'800'000, 2'500'000), in, part_of_old(2'500'000, old.size())})}}), 2 * in.size() + 600);
  BOOST_TEST(regions.size() <= 5u);
  aligned(base, folder_object({{"w.bin", joined({part_of_old(1'500'000, old.size()), part_of_old(0, 1'500'000)})}}), 300);   // halves exchanged, same size
}

BOOST_AUTO_TEST_CASE(untyped_weights_that_moved_and_changed_are_found) {
  const auto old = bf16_weights(9, 1 << 20);
  const auto changed = stepped(old, 3, 0.0133);
  const auto base = file_object(old, "w.bin"), target = file_object(joined({noise(1, 1360), changed}), "w.bin");
  const auto regions = regions_of(base, target);
  BOOST_TEST(fault(regions, target.bytes.size(), base.bytes.size()) == "");
  BOOST_TEST(target.bytes.size() - same_bytes(regions, base, target) < target.bytes.size() / 100);
}

BOOST_AUTO_TEST_CASE(renamed_files_and_tensors_are_found_by_what_they_hold) {
  const auto a = noise(1, 300'000), b = noise(2, 300'000), c = noise(3, 500'000);
  const auto base = folder_object({{"a.bin", a}, {"b.bin", b}, {"c.bin", c}});
  aligned(base, folder_object({{"new/b.bin", b}, {"new/c.bin", joined({noise(4, 99), c})}, {"x.bin", a}}), 400);
  aligned(base, folder_object({{"a.bin", b}, {"b.bin", a}, {"c.bin", c}}), 300);   // exchanged

  auto tensors = model();
  const auto old = file_object(safetensors(tensors));
  for (auto& t : tensors) t.name = "module." + t.name;
  const auto regions = aligned(old, file_object(safetensors(tensors)), 2000);
  BOOST_TEST(regions.size() == 3u);
}

BOOST_AUTO_TEST_CASE(fused_tensors_are_found_in_their_parts) {
  const auto q = bf16_weights(1, 100'000), k = bf16_weights(2, 100'000), v = bf16_weights(3, 100'000);
  const auto base = file_object(safetensors({{"q", "BF16", "[100000]", q}, {"k", "BF16", "[100000]", k}, {"v", "BF16", "[100000]", v}}));
  aligned(base, file_object(safetensors({{"kqv", "BF16", "[300000]", joined({k, q, v})}})), 700);
}

BOOST_AUTO_TEST_CASE(unrelated_bytes_stay_where_they_are_or_have_no_base) {
  const auto base = folder_object({{"a.bin", noise(1, 1 << 20)}});
  const auto same = regions_of(base, folder_object({{"a.bin", noise(2, 1 << 20)}}));
  BOOST_REQUIRE(same.size() == 1u);
  BOOST_TEST(same[0].base_offset == 0u);
  const auto longer = regions_of(base, folder_object({{"a.bin", noise(2, (1 << 20) + 1)}}));
  BOOST_REQUIRE(longer.size() == 1u);
  BOOST_TEST(longer[0].base_offset == region::no_base);
  const auto another = regions_of(base, folder_object({{"b.bin", noise(2, 1 << 20)}}));
  BOOST_REQUIRE(another.size() == 1u);
  BOOST_TEST(another[0].base_offset == region::no_base);
}

BOOST_AUTO_TEST_CASE(nothing_aligns_to_nothing) {
  const auto none = file_object({}, "w.bin"), some = file_object(noise(1, 100), "w.bin");
  BOOST_TEST(regions_of(none, none).empty());
  BOOST_TEST(regions_of(some, none).empty());
  const auto regions = regions_of(none, some);
  BOOST_REQUIRE(regions.size() == 1u);
  BOOST_TEST(regions[0].base_offset == region::no_base);
  BOOST_TEST(delta_of(none, some).equal);
  BOOST_TEST(delta_of(file_object({}, "a"), file_object({}, "a")).equal);
}

BOOST_AUTO_TEST_CASE(another_element_is_another_tensor) {
  const auto bytes = noise(1, 100'000);
  const auto base = file_object(safetensors({{"w", "BF16", "[50000]", bytes}})), target = file_object(safetensors({{"w", "F32", "[25000]", bf16_weights(4, 50'000)}}));
  const auto regions = regions_of(base, target);
  BOOST_REQUIRE(regions.size() == 2u);
  BOOST_TEST(regions[1].base_offset == region::no_base);
}

BOOST_AUTO_TEST_CASE(errors_of_reading_come_through) {
  const auto base = folder_object({{"a.bin", noise(1, 1 << 20)}});
  const auto map = base.map();
  const auto broken = [](std::uint64_t, std::span<std::byte>) -> result<void> { return fail(errc::io, "no", 5); };
  BOOST_TEST((align(map, broken, map, base.reads()).error().code == errc::io));
  BOOST_TEST((align(map, base.reads(), map, broken).error().code == errc::io));
}

BOOST_AUTO_TEST_CASE(ninety_thousand_tensors_become_few_regions) {
  std::vector<weights> tensors;
  constexpr std::size_t count = 90'000;
  for (std::size_t i = 0; i < count; ++i) tensors.push_back({"layers." + std::to_string(i / 100) + ".experts." + std::to_string(i % 100) + ".w", "BF16", "[4,8]", bytes_of(64, std::byte(i))});
  const auto base = file_object(safetensors(tensors)), target = file_object(safetensors(tensors, "one more line of metadata"));
  std::uint64_t reads = 0;
  const auto counted = [&](const object& o) {
    return [&, in = o.reads()](std::uint64_t offset, std::span<std::byte> out) { return ++reads, in(offset, out); };
  };
  const auto regions = align(base.map(), counted(base), target.map(), counted(target));
  BOOST_REQUIRE(regions.has_value());
  BOOST_TEST(regions->back().bytes == 64 * count);
  BOOST_TEST(regions->size() < 10u);
  BOOST_TEST(reads < 1000u);   // the headers are looked into, the tensors are not
}

BOOST_AUTO_TEST_SUITE_END()
