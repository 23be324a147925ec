// A thousand receivers: what repair costs, and how long the last one waits.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;

struct large_run {
  double egress, repairs_per_segment, nacks_per_segment, nacks_per_loss, median, last;
};

static large_run run(std::uint32_t receivers, std::uint64_t size, double loss) {
  node_options net = clean_network();
  net.down.loss = loss;
  net.down.jitter = 5us;
  scenario s({.receivers = receivers, .objects = {{.parts = {size}}}, .network = net, .sender = {.engine = {.expect = receivers, .wait = 60s}}});
  std::vector<double> ended;
  for (std::uint32_t n = 0; n < receivers; ++n)
    s.receiver(n).set_on_end([&](const receiver_process&) { ended.push_back(seconds(s.net().now() - s.sender().engine().when().started)); });
  expect_success(s, 60s);
  BOOST_REQUIRE(ended.size() == receivers);
  std::ranges::sort(ended);
  const auto& c = s.sender().engine().count();
  const double segments = static_cast<double>(s.sender().engine().segments().segments());
  const large_run r{s.egress_ratio(), static_cast<double>(c.multicast_repairs + c.unicast_repairs) / segments, static_cast<double>(c.nacks) / segments,
                    static_cast<double>(c.nacks) / (segments * receivers * loss), ended[receivers / 2], ended.back()};
  BOOST_TEST_MESSAGE(receivers << " receivers: egress " << r.egress << ", repairs per segment " << r.repairs_per_segment << ", NACK packets per lost range "
                               << r.nacks_per_segment << " (" << r.nacks_per_loss << " per receiver that lost it), median " << r.median << " s, last " << r.last << " s");
  BOOST_TEST(s.net().overflows(s.sender().node()) == 0u, "NACKs overflow the sender's socket");
  return r;
}

// With a thousand receivers and 1 % loss every segment is lost by ten of them, so each goes to the group at least twice; 1 in
// 10 is lost again by someone. Without parity less than 2.1 packets a segment is not possible.
BOOST_AUTO_TEST_CASE(a_thousand_receivers_that_lose_one_percent_draw_each_segment_about_twice) {
  const large_run r = run(1000, 4 << 20, 0.01);
  BOOST_TEST(r.repairs_per_segment < 1.2);
  BOOST_TEST(r.egress < 2.4);
  BOOST_TEST(r.nacks_per_segment < 0.7, "ten lose each segment, fewer than one in fourteen of them may say so");
  BOOST_TEST(r.last < 20 * r.median);
  BOOST_TEST(r.last < 0.3);
}

// One in a thousand: a third of the segments is repaired.
BOOST_AUTO_TEST_CASE(what_one_receiver_comes_too_late_for_does_not_load_a_large_group) {
  scenario s({.receivers = 31, .objects = {{.parts = {8 << 20}}}, .network = clean_network(), .sender = {.engine = {.rate_bytes_per_s = 20'000'000, .linger = 1s}}, .start_receivers = false});
  for (std::uint32_t n = 0; n < 30; ++n) s.start_receiver(n);
  s.net().run_until([&] { return s.has_sender() && s.sender().engine().bulk_segment() > 3000; }, 20s);
  s.start_receiver(30);
  expect_success(s, 20s);
  const auto& c = s.sender().engine().count();
  BOOST_TEST(c.multicast_repairs < 400u, c.multicast_repairs << " repairs to the group");
  BOOST_TEST(c.unicast_repairs > 2000u, c.unicast_repairs << " to the late one");
}

BOOST_AUTO_TEST_CASE(four_hundred_receivers_that_lose_one_in_a_thousand_cost_a_third_more) {
  const large_run r = run(400, 4 << 20, 0.001);
  BOOST_TEST(r.egress < 1.45);
  BOOST_TEST(r.nacks_per_segment < 0.35);
  BOOST_TEST(r.last < 0.2);
}
