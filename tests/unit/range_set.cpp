#include "lib/model/range_set.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/number_set.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(range_set_)

// Every set over 8 points, and on each every insertion and every removal of a half-open range.
BOOST_AUTO_TEST_CASE(every_range_on_every_set_over_8_points) {
  constexpr std::uint64_t points = 8;
  for (unsigned bits = 0; bits < 1u << points; ++bits) {
    range_set set;
    test::number_set model;
    for (std::uint64_t n = 0; n < points; ++n)
      if (bits >> n & 1) set.insert(n, n + 1), model.insert(n, n + 1);
    BOOST_REQUIRE_EQUAL(test::difference(set, model, points), "");
    for (std::uint64_t a = 0; a <= points; ++a)
      for (std::uint64_t b = a; b <= points; ++b)
        for (const bool insert : {true, false}) {
          range_set s = set;
          test::number_set m = model;
          const auto real = insert ? s.insert(a, b) : s.erase(a, b);
          const auto right = insert ? m.insert(a, b) : m.erase(a, b);
          BOOST_REQUIRE_EQUAL(real, right);
          BOOST_REQUIRE(s.to_vector() == m.to_vector());
          BOOST_REQUIRE_EQUAL(s.count(), m.count());
        }
  }
}

BOOST_AUTO_TEST_CASE(every_pair_of_ranges_over_8_points) {
  for (std::uint64_t a = 0; a <= 8; ++a)
    for (std::uint64_t b = a; b <= 8; ++b)
      for (std::uint64_t c = 0; c <= 8; ++c)
        for (std::uint64_t d = c; d <= 8; ++d) {
          range_set s;
          test::number_set m;
          s.insert(a, b), m.insert(a, b);
          BOOST_REQUIRE_EQUAL(s.insert(c, d), m.insert(c, d));
          BOOST_REQUIRE_EQUAL(test::difference(s, m, 8), "");
          BOOST_REQUIRE_EQUAL(s.erase(a, b), m.erase(a, b));
          BOOST_REQUIRE_EQUAL(test::difference(s, m, 8), "");
        }
}

BOOST_AUTO_TEST_CASE(a_range_that_ends_before_it_starts_is_empty) {
  range_set s;
  s.insert(3, 5);
  BOOST_TEST(s.insert(9, 7) == 0u);
  BOOST_TEST(s.erase(5, 3) == 0u);
  BOOST_TEST(s.count() == 2u);
  BOOST_TEST(!s.first_gap(4, 2).has_value());
  BOOST_TEST(!s.first_in(4, 2).has_value());
}

BOOST_AUTO_TEST_CASE(numbers_beyond_32_bits_are_kept_apart) {
  range_set s;
  const std::uint64_t base = std::uint64_t(1) << 32;
  s.insert(base - 2, base + 2);
  s.insert(2 * base, 2 * base + 1);
  BOOST_TEST(s.count() == 5u);
  BOOST_TEST(!s.contains(0));
  BOOST_TEST(s.contains(base));
  BOOST_TEST((s.first_gap(base, 3 * base) == range{base + 2, 2 * base}));
}

BOOST_AUTO_TEST_CASE(in_order_insertion_stays_one_range) {
  range_set s;
  for (std::uint64_t n = 0; n < 100'000; ++n) s.insert(n, n + 1);
  BOOST_TEST(s.ranges() == 1u);
  BOOST_TEST(s.count() == 100'000u);
}

BOOST_AUTO_TEST_SUITE_END()
