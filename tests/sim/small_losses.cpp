// Small spaces are enumerated: every loss of up to three packets of a short object.
#include <boost/test/unit_test.hpp>

#include <set>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;

// One receiver of `receivers` loses the first copy of these segments.
static void lose(std::uint32_t receivers, const std::set<std::uint64_t>& segments, bool all_receivers) {
  scenario s({.receivers = receivers, .objects = {{.parts = {11'000}}}, .network = clean_network(), .sender = {.engine = {.wait = 20ms}}});
  const network::node_id victim = s.receiver(0).node();
  s.net().set_drop([&](network::node_id to, bool, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    return h && (all_receivers || to == victim) && (h->flags & data_header::repair) == 0 && segments.contains(h->segment);
  });
  BOOST_TEST_CONTEXT("lost: " << (segments.empty() ? 0 : *segments.begin()) << " and " << segments.size() - !segments.empty() << " more") {
    expect_success(s, 2s);
    const auto& c = s.sender().engine().count();
    BOOST_TEST(c.multicast_repairs + c.unicast_repairs == segments.size() * (all_receivers && receivers > 1 && c.multicast_repairs == 0 ? receivers : 1), s.summary());
  }
}

static constexpr std::uint64_t segments = 9;   // 8 of data, 1 of the digest table

BOOST_AUTO_TEST_CASE(the_short_object_has_nine_segments) {
  scenario s({.objects = {{.parts = {11'000}}}, .network = clean_network(), .sender = {.engine = {.wait = 20ms}}});
  expect_success(s, 2s);
  BOOST_TEST(s.sender().engine().segments().segments() == segments);
}

BOOST_AUTO_TEST_CASE(every_loss_of_up_to_three_segments_at_one_receiver_is_repaired_once) {
  for (std::uint64_t a = 0; a < segments; ++a)
    for (std::uint64_t b = a; b < segments; ++b)
      for (std::uint64_t c = b; c < segments; ++c) lose(1, {a, b, c}, false);
}

BOOST_AUTO_TEST_CASE(every_loss_of_up_to_two_segments_at_one_of_three_receivers_is_repaired_once) {
  for (std::uint64_t a = 0; a < segments; ++a)
    for (std::uint64_t b = a; b < segments; ++b) lose(3, {a, b}, false);
}

BOOST_AUTO_TEST_CASE(every_loss_of_up_to_two_segments_at_all_of_three_receivers_is_repaired) {
  for (std::uint64_t a = 0; a < segments; ++a)
    for (std::uint64_t b = a; b < segments; ++b) lose(3, {a, b}, true);
}
