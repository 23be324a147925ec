// What a receiver misses it reads from the sender's memory, where both can: and whatever becomes of reads, it gets every byte.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

static lane_offer by(std::initializer_list<repair_lane> lanes, std::uint64_t host_key = 0) {
  lane_offer o;
  for (const repair_lane l : lanes) o.lanes.add(l);
  o.host_key = host_key;
  return o;
}

static scenario_options reading(std::uint32_t receivers, std::uint64_t bytes, std::uint64_t seed = 1, node_options net = clean_network()) {
  scenario_options o;
  o.seed = seed;
  o.receivers = receivers;
  o.objects = {{.parts = {bytes}}};
  o.network = net;
  o.sender.engine.reads = o.receiver.engine.reads = by({repair_lane::tcp});
  o.sender.engine.read_after_tcp = 0;
  o.sender.engine.expect = receivers;
  o.sender.engine.wait = 5s;
  return o;
}

static bool is(std::span<const std::byte> datagram, packet_type t) { return type_of(datagram) == t; }

BOOST_AUTO_TEST_CASE(the_best_lane_is_one_that_both_have) {
  BOOST_TEST((best_lane(by({}), by({repair_lane::tcp})) == repair_lane::udp));
  BOOST_TEST((best_lane(by({repair_lane::tcp, repair_lane::verbs}), by({repair_lane::tcp})) == repair_lane::tcp));
  BOOST_TEST((best_lane(by({repair_lane::tcp, repair_lane::verbs}), by({repair_lane::verbs, repair_lane::tcp})) == repair_lane::verbs));
  const auto all = {repair_lane::tcp, repair_lane::verbs, repair_lane::shm};
  BOOST_TEST((best_lane(by(all, 7), by(all, 7)) == repair_lane::shm));
  BOOST_TEST((best_lane(by(all, 7), by(all, 8)) == repair_lane::verbs));
  BOOST_TEST((best_lane(by(all, 0), by(all, 0)) == repair_lane::verbs));
}

BOOST_AUTO_TEST_CASE(a_deaf_receiver_reads_everything) {
  scenario s(reading(1, 20 << 20));
  s.net().block(s.receiver(0).node()).multicast_in = true;
  expect_success(s, 20s);
  const auto& c = s.sender().engine().count();
  BOOST_TEST(c.read_bytes > (19u << 20));
  BOOST_TEST(c.unicast_repairs * 1400 < (1u << 20));
  BOOST_TEST(s.receiver(0).engine()->count().read_bytes == c.read_bytes);
  BOOST_TEST(s.sender().open_grants() == 0u);
}

BOOST_AUTO_TEST_CASE(what_the_group_loses_is_read_by_who_lost_it) {
  node_options net = clean_network();
  net.down.burst_start = 0.002;
  net.down.burst_end = 0.01;
  scenario s(reading(4, 20 << 20, 3, net));
  expect_success(s, 20s);
  BOOST_TEST(s.sender().engine().count().read_bytes != 0u);
}

BOOST_AUTO_TEST_CASE(without_a_common_lane_all_goes_by_udp) {
  scenario_options o = reading(1, 4 << 20);
  o.receiver.engine.reads = by({repair_lane::verbs});
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  expect_success(s, 20s);
  BOOST_TEST(s.sender().engine().count().grants == 0u);
  BOOST_TEST(s.sender().engine().count().unicast_repairs != 0u);
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_required_and_missing_is_refused_by_name) {
  for (const auto& [at_the_sender, deaf] : {std::pair(true, false), std::pair(false, false), std::pair(true, true), std::pair(false, true)}) {
    scenario_options o = reading(1, 1 << 20);
    (at_the_sender ? o.receiver.engine.reads : o.sender.engine.reads) = {};
    (at_the_sender ? o.sender.engine.reads_required : o.receiver.engine.reads_required) = true;
    scenario s(o);
    s.net().block(s.receiver(0).node()).multicast_in = deaf;
    expect_end(s, 30s);
    BOOST_TEST(!s.sender().succeeded());
    BOOST_REQUIRE(s.receiver(0).outcome());
    BOOST_TEST(!s.receiver(0).succeeded());
    BOOST_TEST(s.receiver(0).outcome()->what.find("--repair") != std::string::npos, s.receiver(0).outcome()->what);
    BOOST_TEST(s.report(0).reason.find("--repair") != std::string::npos, s.report(0).reason);
  }
}

BOOST_DATA_TEST_CASE(grants_and_releases_may_be_lost, bdata::xrange(20), seed) {
  node_options slow = clean_network();   // so that there is time to try again
  slow.up.rate_bytes_per_s = slow.down.rate_bytes_per_s = 12'500'000;
  scenario s(reading(3, 8 << 20, static_cast<std::uint64_t>(seed) + 1, slow));
  for (std::uint32_t n = 0; n < 3; ++n) s.net().block(s.receiver(n).node()).multicast_in = true;
  prng random(static_cast<std::uint64_t>(seed) * 7 + 1);
  s.net().set_drop([&](network::node_id, bool, std::span<const std::byte> d) { return (is(d, packet_type::grant) || is(d, packet_type::release)) && random.uniform() < 0.3; });
  expect_success(s, 60s);
  BOOST_TEST(s.sender().engine().count().read_bytes > (6u << 20));
}

BOOST_AUTO_TEST_CASE(where_reads_do_not_get_through_udp_takes_over) {
  scenario s(reading(1, 4 << 20));
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().block(s.receiver(0).node()).reads = true;
  expect_success(s, 60s);
  BOOST_TEST(s.sender().engine().count().read_bytes == 0u);
  BOOST_TEST(s.sender().open_grants() == 0u);
}

// It costs more than it saves where little is lost.
BOOST_AUTO_TEST_CASE(tcp_is_tried_when_much_went_to_one_alone) {
  for (const std::uint64_t size : {16, 200}) {
    scenario_options o = reading(1, size << 20);
    o.sender.engine.read_after_tcp = sender_options().read_after_tcp;
    scenario s(o);
    s.net().block(s.receiver(0).node()).multicast_in = true;
    expect_success(s, 60s);
    const auto& c = s.sender().engine().count();
    BOOST_TEST(c.read_bytes >= (size == 16 ? 0 : 100u << 20));
    BOOST_TEST(c.grants == (size == 16 ? 0 : c.grants));
    BOOST_TEST(c.unicast_repair_bytes > (size == 16 ? size << 20 : 60u << 20));
  }
}

// The first read is a small one beside UDP: a firewall in its way holds nobody up.
BOOST_AUTO_TEST_CASE(reads_that_are_dropped_on_the_way_cost_no_time) {
  duration took[2];
  for (const bool dropped : {false, true}) {
    scenario_options o = reading(1, 200 << 20);
    o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 125'000'000;
    if (!dropped) o.sender.engine.reads = {};
    scenario s(o);
    s.net().block(s.receiver(0).node()).multicast_in = true;
    s.net().block(s.receiver(0).node()).reads = dropped;
    expect_success(s, 60s);
    took[dropped] = s.net().now().time_since_epoch();
    if (dropped) BOOST_TEST(s.sender().engine().count().grants == 1u);
  }
  BOOST_TEST(took[1] < took[0] + 100ms);
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_required_says_so_when_it_fails_and_the_bytes_come_all_the_same) {
  scenario_options o = reading(1, 4 << 20);
  o.sender.engine.reads_required = true;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().block(s.receiver(0).node()).reads = true;
  expect_success(s, 60s);
  BOOST_TEST(said(s.sender().notes(), "could not read by tcp"));
}

BOOST_AUTO_TEST_CASE(a_lane_that_failed_is_tried_again) {
  scenario_options o = reading(1, 400 << 20);
  o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 12'500'000;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().block(s.receiver(0).node()).reads = true;
  s.net().run_until([&] { return s.sender().engine().count().grants_failed != 0; }, 20s);
  s.net().block(s.receiver(0).node()).reads = false;
  BOOST_TEST(s.net().run_until([&] { return s.sender().engine().count().read_bytes > (10 << 20); }, 30s), s.summary());
}

BOOST_AUTO_TEST_CASE(memory_that_is_gone_costs_a_read_and_no_more) {
  scenario s(reading(1, 8 << 20));
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().run_until([&] { return s.sender().open_grants() != 0; }, 10s);
  s.sender().lose_grants();
  expect_success(s, 60s);
}

BOOST_AUTO_TEST_CASE(a_provider_that_fails_is_left_for_udp) {
  scenario_options o = reading(2, 8 << 20);
  int calls = 0;
  o.sender.grant_fails = [&](const grant_segments&) { return ++calls % 3 == 0 ? std::optional<error>({errc::network, ENOMEM, "memory cannot be registered"}) : std::nullopt; };
  scenario s(o);
  for (std::uint32_t n = 0; n < 2; ++n) s.net().block(s.receiver(n).node()).multicast_in = true;
  expect_success(s, 60s);
  BOOST_TEST(said(s.sender().notes(), "memory cannot be registered"));
}

BOOST_AUTO_TEST_CASE(a_provider_that_fails_several_grants_at_once_fails_once) {
  scenario_options o = reading(1, 64 << 20);
  o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 12'500'000;
  o.network.down.loss = 0.05;
  o.sender.engine.reads_required = o.receiver.engine.reads_required = true;   // no trial: several grants wait for the lane
  o.sender.grant_delay = 1s;
  o.sender.grant_fails = [](const grant_segments&) { return error{errc::network, ENOMEM, "memory cannot be registered"}; };
  scenario s(o);
  expect_success(s, 60s);
  BOOST_TEST(s.sender().engine().count().grants > 1u);
  BOOST_TEST(s.sender().engine().count().grants_failed == 1u);
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_required_is_not_left_because_it_is_slow) {
  scenario_options o = reading(1, 8 << 20);
  o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 500'000;   // a read takes two seconds
  o.sender.engine.reads_required = o.receiver.engine.reads_required = true;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  expect_success(s, 60s);
  BOOST_TEST(s.sender().engine().count().unicast_repair_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_lane_that_opens_slowly_leaves_readers_their_time) {
  scenario_options o = reading(1, 8 << 20);
  o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 2'500'000;   // a read takes half a second
  o.sender.engine.reads_required = o.receiver.engine.reads_required = true;
  o.sender.engine.grant_life = 3s;
  o.sender.grant_delay = 2900ms;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  expect_success(s, 60s);
  BOOST_TEST(s.sender().engine().count().grants_failed == 0u);
}

BOOST_AUTO_TEST_CASE(a_sender_that_dies_while_it_is_read_is_missed_and_its_next_session_goes_on) {
  scenario s(reading(1, 40 << 20));
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().run_until([&] { return s.sender().engine().count().read_bytes > (8 << 20); }, 10s);
  s.kill_sender();
  BOOST_TEST(s.net().run_until([&] { return s.receiver(0).outcome().has_value(); }, 30s));
  BOOST_TEST((s.receiver(0).outcome()->code == errc::sender_lost));
  s.kill_receiver(0);
  s.start_sender();
  s.start_receiver(0);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  BOOST_TEST(s.run_until_complete(30s), s.summary());
  BOOST_TEST(s.receiver(0).engine()->count().resumed_bytes > (4u << 20));
}

BOOST_AUTO_TEST_CASE(a_receiver_that_dies_while_it_reads_keeps_no_memory) {
  scenario_options o = reading(2, 40 << 20);
  o.sender.engine.deadline = 30s;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().run_until([&] { return s.sender().open_grants() != 0; }, 10s);
  s.kill_receiver(0);
  BOOST_TEST(s.net().run_until([&] { return s.sender().outcome().has_value(); }, 60s));
  BOOST_TEST(s.sender().open_grants() == 0u);
  BOOST_TEST(s.has_all(1));
}

BOOST_AUTO_TEST_CASE(memory_for_grants_is_bounded) {
  scenario_options o = reading(24, 8 << 20);
  o.sender.engine.grants_max = 8;
  scenario s(o);
  for (std::uint32_t n = 0; n < 24; ++n) s.net().block(s.receiver(n).node()).multicast_in = true;
  std::size_t most = 0;
  s.net().run_until([&] { return most = std::max(most, s.sender().open_grants()), s.all_ended(); }, 60s);
  BOOST_TEST(s.all_complete());
  BOOST_TEST(most > 4u);
  BOOST_TEST(most <= 8u);
}

BOOST_DATA_TEST_CASE(rough_networks_and_reads_that_come_and_go, bdata::xrange(40), seed) {
  const auto number = static_cast<std::uint64_t>(seed) + 1;
  scenario_options o = reading(5, 6 << 20, number, rough_network(number));
  o.sender.engine.read_bytes_least = number % 2 == 0 ? 1 : 16 << 10;
  o.each = [number](std::uint32_t n, receiver_process::options& r) {
    if ((n + number) % 3 == 0) r.engine.reads = {};
  };
  scenario s(o);
  for (std::uint32_t n = 0; n < 5; n += 2) s.net().block(s.receiver(n).node()).multicast_in = true;
  prng random(number);
  for (int i = 1; i <= 20; ++i)
    s.net().at(s.net().now() + i * 20ms, [&s, on = random.next() % 2 == 0, n = static_cast<std::uint32_t>(random.next() % 5)] {
      if (s.runs(n)) s.net().block(s.receiver(n).node()).reads = on;
    });
  expect_success(s, 120s);
  BOOST_TEST(s.sender().open_grants() == 0u);
}

// As when a path begins to lose much of what TCP sends: what is being read then goes by UDP as well.
BOOST_AUTO_TEST_CASE(reads_that_become_slow_give_way_to_udp) {
  scenario_options o = reading(1, 200 << 20);
  o.network.down.rate_bytes_per_s = o.network.up.rate_bytes_per_s = 125'000'000;
  scenario s(o);
  s.net().block(s.receiver(0).node()).multicast_in = true;
  s.net().run_until([&] { return s.sender().engine().count().read_bytes > (50 << 20); }, 10s);
  s.net().block(s.receiver(0).node()).reads = true;
  const time_point stalled = s.net().now();
  BOOST_TEST(s.run_until_complete(30s), s.summary());
  BOOST_TEST((s.net().now() - stalled < 3s));
  BOOST_TEST(!said(s.receiver(0).notes(), "no multicast: data arrives"));
  expect_end(s, 30s);
}
