// How sessions end: what is reported, to whom, and when.
#include <boost/test/unit_test.hpp>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;

BOOST_AUTO_TEST_CASE(a_receiver_whose_done_is_lost_for_two_seconds_still_counts_as_complete) {
  scenario s({.receivers = 2, .network = clean_network()});
  BOOST_TEST(s.run_until_complete(5s), s.summary());
  s.net().block(s.receiver(0).node()).out = true;
  s.net().run_for(2s);
  s.net().heal();
  expect_success(s, 2s);
}
