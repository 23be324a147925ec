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

BOOST_AUTO_TEST_CASE(nobody_comes) {
  scenario s({.receivers = 0, .network = clean_network()});
  expect_end(s, 3s);
  BOOST_TEST((s.sender().outcome()->code == errc::no_receiver));
}

BOOST_AUTO_TEST_CASE(a_sender_starts_as_soon_as_all_expected_are_there) {
  scenario s({.receivers = 3, .network = clean_network(), .sender = {.engine = {.expect = 3, .wait = 60s}}});
  expect_success(s, 1s);
}

BOOST_AUTO_TEST_CASE(fewer_than_expected_are_served_and_it_is_no_success) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = {.engine = {.expect = 3, .wait = 3s}}});
  expect_end(s, 10s);
  BOOST_TEST(s.all_complete());
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete), s.sender().outcome()->what);
  BOOST_TEST(s.sender().outcome()->what.find("never joined") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_quorum_is_enough) {
  scenario s({.receivers = 4, .network = clean_network(), .sender = {.engine = {.quorum = 3, .silence = 1s}}});
  s.net().run_for(1900ms);
  s.kill_receiver(3);
  expect_end(s, 10s);
  BOOST_TEST(s.sender().succeeded(), s.summary());
  BOOST_TEST(s.complete() == 3u);
}

BOOST_AUTO_TEST_CASE(one_less_than_the_quorum_is_not) {
  scenario s({.receivers = 4, .network = clean_network(), .sender = {.engine = {.quorum = 4, .silence = 1s}}});
  s.net().run_for(1900ms);
  s.kill_receiver(3);
  expect_end(s, 10s);
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete));
}

BOOST_AUTO_TEST_CASE(at_the_deadline_the_sender_gives_up_on_those_that_lack_something_and_names_them) {
  scenario s({.receivers = 3, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = {.engine = {.deadline = 4s}},
              .each = [](std::uint32_t n, receiver_process::options& o) {
                o.engine.host = "host" + std::to_string(n);
              }});
  s.net().block(s.receiver(1).node()).data_in = true;
  BOOST_TEST(s.net().run_until([&] { return s.sender().outcome().has_value(); }, 10s));
  BOOST_TEST(seconds(s.net().now().time_since_epoch()) <= 4.1);
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete));
  BOOST_TEST(s.report(1).state == "incomplete");
  BOOST_TEST(s.sender().outcome()->what.find("host1") != std::string::npos, s.sender().outcome()->what);
  expect_end(s, 20s);
  BOOST_TEST(!s.receiver(1).succeeded());
  BOOST_TEST(s.complete() == 2u);
}

BOOST_AUTO_TEST_CASE(a_lingering_sender_serves_who_comes_late) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = {.engine = {.linger = 5s}}, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_for(4s);
  BOOST_TEST(s.has_all(0));
  BOOST_TEST(!s.sender().outcome().has_value());
  s.start_receiver(1);
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(multicast_that_is_required_and_does_not_arrive_is_refused) {
  scenario s({.receivers = 3, .network = clean_network(), .sender = {.engine = {.multicast = multicast_use::require}}});
  s.net().block(s.receiver(1).node()).multicast_in = true;
  expect_end(s, 15s);
  BOOST_TEST((s.receiver(1).outcome()->code == errc::no_multicast), s.receiver(1).outcome()->what);
  BOOST_TEST(s.complete() == 2u);
  BOOST_TEST(!s.sender().succeeded());
}

BOOST_AUTO_TEST_CASE(a_receiver_that_requires_multicast_leaves_when_none_arrives) {
  scenario s({.receivers = 2, .network = clean_network(), .receiver = {.engine = {.multicast = multicast_use::require}}});
  s.net().block(s.receiver(1).node()).multicast_in = true;
  expect_end(s, 15s);
  BOOST_TEST((s.receiver(1).outcome()->code == errc::no_multicast), s.receiver(1).outcome()->what);
  BOOST_TEST(s.has_all(0));
}

BOOST_AUTO_TEST_CASE(a_deaf_receiver_is_served_by_unicast_and_told_why) {
  scenario s({.receivers = 3, .network = clean_network()});
  s.net().block(s.receiver(1).node()).multicast_in = true;
  expect_success(s, 15s);
  BOOST_TEST(said(s.receiver(1).notes(), "announcements arrive by unicast only"));
  BOOST_TEST(s.report(1).deaf);
}

BOOST_AUTO_TEST_CASE(a_killed_receiver_delays_the_others_by_less_than_half_a_second) {
  scenario s({.receivers = 4, .objects = {{.parts = {8 << 20}}}, .network = clean_network()});
  s.net().run_until([&] { return s.sender().engine().bulk_segment() > 2000; }, 5s);
  s.kill_receiver(2);
  BOOST_TEST(s.net().run_until([&] { return s.has_all(0) && s.has_all(1) && s.has_all(3); }, 500ms), s.summary());
  BOOST_TEST(s.net().run_until([&] { return s.sender().outcome().has_value(); }, 10s));
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete));
}

BOOST_AUTO_TEST_CASE(a_source_that_changed_ends_the_session_with_that_reason) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = {.engine = {.rate_bytes_per_s = 1'000'000}}});
  s.net().run_until([&] { return s.sender().engine().bulk_segment() > 300; }, 5s);
  s.sender().stop({errc::source_changed, 0, "the file changed while it was sent"});
  expect_end(s, 1s);
  for (std::uint32_t n = 0; n < 2; ++n) BOOST_TEST((s.receiver(n).outcome()->code == errc::source_changed));
  BOOST_TEST(s.complete() == 0u);
}

BOOST_AUTO_TEST_CASE(a_receiver_that_is_stopped_tells_the_sender) {
  scenario s({.receivers = 2, .objects = {{.parts = {2 << 20}}}, .network = clean_network(), .sender = {.engine = {.rate_bytes_per_s = 4'000'000}}});
  s.net().run_until([&] { return s.sender().engine().bulk_segment() > 300; }, 5s);
  s.receiver(0).stop({errc::interrupted, 0, "interrupted"});
  BOOST_TEST(s.net().run_until([&] { return s.receiver(0).outcome().has_value(); }, 100ms));
  BOOST_TEST(s.report(0).state == "failed");
  expect_end(s, 5s);
  BOOST_TEST(s.has_all(1));
}

BOOST_AUTO_TEST_CASE(a_late_receiver_that_is_served_by_unicast_is_not_taken_for_deaf) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = {.engine = {.linger = 10s}}, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_for(3s);
  s.start_receiver(1);
  s.net().run_until([&] { return s.runs(1) && s.receiver(1).engine() != nullptr && s.receiver(1).engine()->joined(); }, 2s);
  s.net().up(s.sender().node()).options.rate_bytes_per_s = 1'000'000;   // so that it takes more than half a second
  BOOST_TEST(s.run_until_complete(10s), s.summary());
  BOOST_TEST(!s.receiver(1).engine()->deaf());
}

// What is being made visible when the sender ends the session becomes visible, and that is what the receiver says.
BOOST_AUTO_TEST_CASE(a_session_that_is_closed_while_a_receiver_commits_ends_well_there) {
  scenario_options o{.network = clean_network()};
  o.receiver.commit_delay = 3s;
  o.sender.engine.expect = 1;
  o.sender.engine.deadline = 1s;
  scenario s(o);
  expect_end(s, 20s);
  BOOST_TEST(!s.sender().succeeded());   // it could not know
  BOOST_TEST(s.has_all(0));
  BOOST_TEST(s.receiver(0).succeeded(), s.summary());
}

// Who resumes takes no part in the rate loop; the only one that does must not hold it up when it dies.
BOOST_AUTO_TEST_CASE(a_newcomer_that_dies_does_not_hold_up_those_that_resume) {
  scenario_options o{.receivers = 3, .objects = {{.parts = {64 << 20}}}, .network = clean_network()};
  o.network.up.rate_bytes_per_s = o.network.down.rate_bytes_per_s = 50'000'000;
  o.sender.engine.expect = 3;
  o.sender.engine.wait = 5s;
  scenario s(o);
  s.kill_receiver(2);
  s.net().run_until([&] { return s.sender().engine().bulk_segment() > 10'000; }, 10s);
  s.kill_sender();
  s.kill_receiver(0), s.kill_receiver(1);
  s.start_sender();
  for (std::uint32_t n = 0; n < 3; ++n) s.start_receiver(n);
  s.net().run_until([&] { return s.sender().engine().bulk_segment() > 5'000; }, 20s);
  s.kill_receiver(2);
  const time_point died = s.net().now();
  BOOST_TEST(s.net().run_until([&] { return s.has_all(0) && s.has_all(1); }, 30s), s.summary());
  BOOST_TEST((s.net().now() - died < 4s));
}
