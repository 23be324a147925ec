// What the sender believes about the time a packet takes, and what a receiver needs to know before data is of use.
#include <boost/test/unit_test.hpp>

#include "transports/sim/scenario.hpp"

using namespace ddf;
using namespace ddf::sim;

static session_state state_of(std::span<const std::byte> bytes) {
  const auto m = parse_message(bytes);
  return std::get<announce>(*m).state;
}

BOOST_AUTO_TEST_CASE(a_status_that_waited_for_a_timer_is_not_taken_for_a_round_trip) {
  scenario s({.receivers = 4, .objects = {{.parts = {4 << 20}}}, .network = clean_network()});
  // The end of the first pass is lost, and for a while everything else: receivers tell by their timers where they are.
  std::optional<time_point> lost;
  s.net().set_drop([&](network::node_id, bool to_group, std::span<const std::byte> bytes) {
    if (const auto h = parse_data_header(bytes); h && h->segment >= 2900 && !lost) lost = s.net().now();
    return to_group && lost && s.net().now() < *lost + 150ms;
  });
  BOOST_TEST(s.run_until_ended(10s), s.summary());
  BOOST_TEST(s.sender().engine().group_round_trip() < 2ms);
}

BOOST_AUTO_TEST_CASE(a_lost_start_announcement_does_not_cost_the_first_pass) {
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network()});
  s.net().set_drop([&](network::node_id, bool to_group, std::span<const std::byte> bytes) {
    return to_group && type_of(bytes) == packet_type::announce && state_of(bytes) == session_state::streaming;
  });
  BOOST_TEST(s.run_until_ended(10s), s.summary());
  BOOST_TEST(s.all_complete(), s.summary());
  const auto& c = s.sender().engine().count();
  BOOST_TEST(c.multicast_repairs + c.unicast_repairs < c.bulk_segments / 3, s.summary());
}
