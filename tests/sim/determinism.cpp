// A run follows from its seed, and its figures change only when the protocol does.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

static std::uint64_t trace_of(std::uint64_t seed) {
  node_options net = rough_network(seed);
  net.down.corrupt = 0.002;
  scenario s({.seed = seed, .receivers = 5, .network = net});
  s.net().at(time_point{} + 2010ms, [&s] { s.kill_receiver(1); });
  s.net().at(time_point{} + 2300ms, [&s] { s.start_receiver(1); });
  s.run_until_ended(20s);
  return s.net().trace();
}

BOOST_DATA_TEST_CASE(the_same_seed_gives_the_same_trace, bdata::xrange(10), seed) {
  BOOST_TEST(trace_of(static_cast<std::uint64_t>(seed)) == trace_of(static_cast<std::uint64_t>(seed)));
}

BOOST_AUTO_TEST_CASE(another_seed_gives_another_trace) { BOOST_TEST(trace_of(1) != trace_of(2)); }

struct figures {
  std::uint64_t data, nacks, multicast_repairs, unicast_repairs;
  bool operator==(const figures&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const figures& f) {
    return out << "data " << f.data << ", nacks " << f.nacks << ", repairs " << f.multicast_repairs << " + " << f.unicast_repairs;
  }
};

static figures figures_of(std::uint32_t receivers, double loss) {
  node_options net = clean_network();
  net.down.loss = loss;
  scenario s({.seed = 7, .receivers = receivers, .objects = {{.parts = {2 << 20}}}, .network = net});
  expect_success(s, 20s);
  const auto& c = s.sender().engine().count();
  return {s.sender().data_datagrams(), c.nacks, c.multicast_repairs, c.unicast_repairs};
}

// A change of the protocol shows here as a diff. That these figures are good ones is for other tests to say.
BOOST_AUTO_TEST_CASE(figures_of_one_receiver_without_loss) { BOOST_TEST(figures_of(1, 0) == (figures{1473, 0, 0, 0})); }
BOOST_AUTO_TEST_CASE(figures_of_eight_receivers_without_loss) { BOOST_TEST(figures_of(8, 0) == (figures{1473, 0, 0, 0})); }
BOOST_AUTO_TEST_CASE(figures_of_one_receiver_with_loss) { BOOST_TEST(figures_of(1, 0.02) == (figures{1498, 3, 0, 25})); }
BOOST_AUTO_TEST_CASE(figures_of_eight_receivers_with_loss) { BOOST_TEST(figures_of(8, 0.02) == (figures{1711, 13, 4, 234})); }
BOOST_AUTO_TEST_CASE(figures_of_forty_receivers_with_loss) { BOOST_TEST(figures_of(40, 0.02) == (figures{2292, 64, 796, 23})); }
