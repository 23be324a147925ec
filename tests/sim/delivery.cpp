// Whatever the network does, every receiver gets every byte.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "transports/sim/scenario.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_CASE(one_receiver_gets_the_object_over_a_clean_network) {
  scenario s({.network = clean_network()});
  BOOST_TEST(s.run_until_ended(30s), s.summary());
  BOOST_TEST(s.all_complete(), s.summary());
  BOOST_TEST(s.sender().succeeded(), s.summary());
  BOOST_TEST_MESSAGE(s.summary());
}

BOOST_DATA_TEST_CASE(eight_receivers_get_the_object_over_a_rough_network, bdata::xrange(60), seed) {
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 8, .network = rough_network(static_cast<std::uint64_t>(seed))});
  BOOST_TEST(s.run_until_ended(60s), s.summary());
  BOOST_TEST(s.all_complete(), s.summary());
  BOOST_TEST(s.sender().succeeded(), s.summary());
}
