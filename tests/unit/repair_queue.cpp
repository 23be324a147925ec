#include "lib/session/repair_queue.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/wanted_by.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(repair_queue_)

BOOST_AUTO_TEST_CASE(a_range_that_two_receivers_want_is_wanted_by_several) {
  repair_queue q;
  q.add({0, 10}, 1);
  q.add({5, 15}, 2);
  BOOST_TEST(q.count() == 15u);
  BOOST_TEST(q.next()->receiver == 1u);
  BOOST_TEST((q.next(5)->segments == range{5, 10}));
  BOOST_TEST(q.next(5)->receiver == repair_queue::several);
  BOOST_TEST(q.next(10)->receiver == 2u);
}

BOOST_AUTO_TEST_CASE(asking_twice_queues_once) {
  repair_queue q;
  q.add({3, 9}, 7);
  q.add({3, 9}, 7);
  BOOST_TEST(q.count() == 6u);
  BOOST_TEST(q.next()->receiver == 7u);
}

// Three requests of two receivers over 6 points, then a removal: every combination.
BOOST_AUTO_TEST_CASE(every_small_sequence_agrees_with_the_model) {
  constexpr std::uint64_t points = 5;
  std::vector<range> all;
  for (std::uint64_t a = 0; a <= points; ++a)
    for (std::uint64_t b = a; b <= points; ++b) all.push_back({a, b});
  for (const range& x : all)
    for (const range& y : all)
      for (const range& z : all) {
        repair_queue q;
        test::wanted_by m;
        q.add(x, 1), m.add(x, 1);
        q.add(y, 2), m.add(y, 2);
        q.add(z, 1), m.add(z, 1);
        BOOST_REQUIRE_EQUAL(test::difference(q, m, points), "");
        q.erase(y), m.erase(y);
        BOOST_REQUIRE_EQUAL(test::difference(q, m, points), "");
      }
}

BOOST_AUTO_TEST_CASE(a_full_queue_refuses_and_stays_bounded) {
  repair_queue q;
  std::uint64_t s = 0;
  while (q.add({s, s + 1}, 1)) s += 2;
  BOOST_TEST(q.ranges() == repair_queue::ranges_max);
  BOOST_TEST(!q.add({0, s}, 2));
  q.erase({0, 1});
  BOOST_TEST(q.add({0, s}, 2));   // one long request may fill every gap: twice the maximum, and no further
  BOOST_TEST(q.ranges() <= 2 * repair_queue::ranges_max + 1);
  BOOST_TEST(!q.add({s + 10, s + 11}, 2));
}

BOOST_AUTO_TEST_SUITE_END()
