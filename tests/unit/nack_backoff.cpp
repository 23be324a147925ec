#include "lib/session/nack_backoff.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"

using namespace ddf;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(nack_backoff_)

BOOST_AUTO_TEST_CASE(every_wait_is_within_its_bounds) {
  prng rng(1);
  for (const double group : {1.0, 2.0, 100.0, 4e9})
    for (int i = 0; i < 10'000; ++i) {
      const duration d = nack_backoff(rng.uniform(), 10ms, group);
      if (d < 0ms || d > 10ms) BOOST_FAIL("group " << group << ": " << d.count() << " ns");
    }
  BOOST_TEST((nack_backoff(0, 10ms, 50) == 0ms));
  BOOST_TEST((nack_backoff(0.999999999, 10ms, 50) > 9ms));
  BOOST_TEST((nack_backoff(0.5, 0ms, 50) == 0ms));
}

BOOST_AUTO_TEST_CASE(it_grows_with_the_uniform_number) {
  duration before{-1};
  for (int i = 0; i < 1000; ++i) {
    const duration d = nack_backoff(i / 1000.0, 10ms, 30);
    BOOST_TEST(d.count() > before.count());
    before = d;
  }
}

// Whatever the size of the group, only a few of it speak in the first fraction that it takes to be heard.
BOOST_AUTO_TEST_CASE(few_of_any_group_speak_first) {
  prng rng(7);
  for (const int group : {10, 100, 1000, 10'000}) {
    double firsts = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<duration> waits;
      for (int i = 0; i < group; ++i) waits.push_back(nack_backoff(rng.uniform(), 40ms, group));
      const duration first = *std::ranges::min_element(waits);
      firsts += static_cast<double>(std::ranges::count_if(waits, [&](duration d) { return d <= first + 10ms; }));   // a quarter: the group round trip
    }
    BOOST_TEST(firsts / 20 < 25, "of " << group << " receivers " << firsts / 20 << " speak before they can hear the first");
  }
}

BOOST_AUTO_TEST_SUITE_END()
