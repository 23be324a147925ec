#include "lib/model/layout.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/catalogues.hpp"
#include "tests/support/layout_check.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(layout_)

static void check_all(const catalogue& c, std::uint32_t segment_bytes) {
  BOOST_REQUIRE(check_catalogue(c).has_value());
  const layout l(c, segment_bytes);
  BOOST_REQUIRE_EQUAL(test::fault(l, c), "");
  BOOST_REQUIRE_EQUAL(test::fault(l, c, 0, l.blocks()), "");
}

BOOST_AUTO_TEST_CASE(sizes_around_multiples_of_a_block_are_covered) {
  const std::uint64_t block = limits::block_bytes_min;
  for (const std::uint32_t segment : {512u, 513u, 1000u, 1456u, 8956u, 65000u})
    for (const std::uint64_t k : {0, 1, 2, 5})
      for (const std::int64_t d : {-1, 0, 1}) {
        if (k == 0 && d < 0) continue;
        check_all({test::file("f", k * block + static_cast<std::uint64_t>(d))}, segment);
      }
}

BOOST_AUTO_TEST_CASE(sizes_around_multiples_of_a_segment_are_covered) {
  for (const std::uint32_t segment : {512u, 1456u, 65000u})
    for (const std::uint64_t bytes : {1u, segment - 1, segment, segment + 1, 2 * segment}) check_all({test::file("f", bytes)}, segment);
}

BOOST_AUTO_TEST_CASE(parts_without_bytes_take_no_block) {
  check_all({test::folder("d", {0, 1, 0, 0, 65536, 0}), test::folder("e", {}), test::file("f", 0), test::folder("g", {0})}, 1456);
}

BOOST_AUTO_TEST_CASE(an_empty_object_is_its_digest_table) {
  const layout l({test::file("f", 0)}, 1456);
  BOOST_TEST(l.segments() == 1u);
  BOOST_TEST(l.blocks() == 1u);
  BOOST_TEST(l.segment(0).table);
  BOOST_TEST(l.segment(0).bytes == digest::size);
}

BOOST_AUTO_TEST_CASE(any_block_and_segment_can_be_asked_for_in_any_order) {
  const catalogue c{test::file("a", 200'000), test::folder("b", {70'000, 0, 5}), test::file("c", 0), test::file("d", 300'000, 1 << 18)};
  const layout straight(c, 1456), jumping(c, 1456);
  for (std::uint64_t i = 0; i < straight.segments(); ++i) {
    const std::uint64_t s = i * 7919 % straight.segments();
    BOOST_REQUIRE_EQUAL(jumping.segment(s).offset, layout(straight).segment(s).offset);
    BOOST_REQUIRE_EQUAL(jumping.segment(s).block, straight.block_of_segment(s));
  }
}

BOOST_AUTO_TEST_CASE(offsets_beyond_4_gib_are_whole) {
  const std::uint64_t bytes = (std::uint64_t(5) << 30) + 12345;
  const catalogue c{test::file("big", bytes, 4 << 20)};
  const layout l(c, 1456);
  BOOST_TEST(test::fault(l, c) == "");
  BOOST_TEST(test::fault(l, c, l.blocks() - 4, l.blocks()) == "");
  const segment_extent last = l.segment(l.object(0).table_segment - 1);
  BOOST_TEST(last.offset + last.bytes == bytes);
}

BOOST_AUTO_TEST_CASE(more_than_2_to_the_32_segments_are_numbered) {
  const std::uint64_t bytes = (std::uint64_t(1) << 42) + 7;   // 4 TiB in segments of 512 bytes
  const catalogue c{test::file("huge", bytes, 4 << 20), test::file("next", 100'000)};
  BOOST_REQUIRE(check_catalogue(c).has_value());
  const layout l(c, 512);
  BOOST_TEST(l.segments() > std::uint64_t(1) << 32);
  BOOST_TEST(test::fault(l, c) == "");
  const std::uint64_t around = l.block_of_segment(std::uint64_t(1) << 32);
  BOOST_TEST(test::fault(l, c, around - 1, around + 1) == "");
  BOOST_TEST(test::fault(l, c, l.blocks() - 4, l.blocks()) == "");
  BOOST_TEST(l.segment(std::uint64_t(1) << 32).offset == std::uint64_t(1) << 41);
}

BOOST_AUTO_TEST_CASE(the_largest_session_fits_the_48_bits_of_the_wire) {
  catalogue c{test::file("max", limits::blocks * limits::block_bytes_max, limits::block_bytes_max)};
  BOOST_REQUIRE(check_catalogue(c).has_value());
  const layout l(c, limits::segment_bytes_min);
  BOOST_TEST(l.segments() < std::uint64_t(1) << 48);
  BOOST_TEST(test::fault(l, c, l.blocks() - 2, l.blocks() - 1) == "");
}

BOOST_AUTO_TEST_SUITE_END()
