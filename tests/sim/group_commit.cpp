// Switching together: all, or a quorum, make a version visible at once, or none does.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

static scenario_options together(std::uint64_t seed, std::uint32_t receivers, node_options network) {
  scenario_options o;
  o.seed = seed;
  o.receivers = receivers;
  o.network = network;
  o.objects = {{.parts = {2 << 20}}, {.name = "tokenizer", .parts = {70'000}}};
  o.sender.engine.group_commit = true;
  return o;
}

BOOST_DATA_TEST_CASE(nobody_switches_before_everybody_can, bdata::xrange(20), seed) {
  const auto s = static_cast<std::uint64_t>(seed) + 1;
  scenario_options o = together(s, 5, rough_network(s));
  o.each = [](std::uint32_t n, receiver_process::options& r) {
    if (n == 2) r.digest_delay = 30ms;   // it proves its blocks slowly
  };
  scenario run(o);
  bool early = false;
  for (std::uint32_t n = 0; n < 5; ++n) {
    run.storage(n).on_commit = [&run, &early] {
      for (std::uint32_t k = 0; k < 5; ++k) early = early || (run.receiver(k).engine() != nullptr && run.receiver(k).engine()->count().bytes_verified < run.published()->size());
    };
  }
  expect_success(run, 30s);
  BOOST_TEST(!early);
}

BOOST_AUTO_TEST_CASE(when_one_fails_nobody_switches_and_it_is_named) {
  scenario_options o = together(3, 4, clean_network());
  scenario run(o);
  run.storage(1).fail.write = 10;
  expect_end(run, 30s);
  for (std::uint32_t n = 0; n < 4; ++n) {
    BOOST_TEST(run.storage(n).objects() == 0u);
    BOOST_TEST(!run.receiver(n).succeeded());
  }
  BOOST_TEST(!run.sender().succeeded());
  BOOST_TEST(run.sender().outcome()->what.find("did not switch") != std::string::npos);
  BOOST_TEST(run.sender().outcome()->what.find("host11") != std::string::npos, run.sender().outcome()->what);
}

BOOST_AUTO_TEST_CASE(a_quorum_switches_and_who_did_not_is_named) {
  scenario_options o = together(4, 4, clean_network());
  o.sender.engine.quorum = 3;
  o.sender.engine.deadline = 4s;
  scenario run(o);
  run.storage(1).fail.write = 10;
  expect_end(run, 30s);
  for (std::uint32_t n = 0; n < 4; ++n) BOOST_TEST(run.has_all(n) == (n != 1));
  BOOST_TEST(run.sender().succeeded(), run.summary());
  BOOST_TEST(run.report(1).state == "failed");
}

BOOST_AUTO_TEST_CASE(at_the_deadline_those_that_are_prepared_switch_when_they_are_a_quorum) {
  scenario_options o = together(5, 4, clean_network());
  o.sender.engine.quorum = 3;
  o.sender.engine.deadline = 5s;
  o.each = [](std::uint32_t n, receiver_process::options& r) {
    if (n == 3) r.digest_delay = 60s;
  };
  o.network.down.reorder = 0.2;   // so that blocks have to be read again
  scenario run(o);
  run.net().run_for(9s);
  for (std::uint32_t n = 0; n < 3; ++n) BOOST_TEST(run.has_all(n), run.summary());
  BOOST_TEST(!run.has_all(3));
  BOOST_REQUIRE(run.sender().outcome().has_value());
  BOOST_TEST(run.sender().succeeded(), run.summary());
  BOOST_TEST(run.report(3).state == "incomplete");
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_before_the_switch_keeps_everybody_on_the_old_version) {
  scenario_options o = together(6, 3, clean_network());
  o.sender.engine.silence = 1s;
  o.each = [](std::uint32_t n, receiver_process::options& r) {
    if (n == 2) r.digest_delay = 300ms, r.node.down.reorder = 0.3;
  };
  scenario run(o);
  run.net().run_until([&] { return run.sender().engine().state() == session_state::flushing; }, 10s);
  run.kill_receiver(2);
  run.run_until_ended(20s);
  for (std::uint32_t n = 0; n < 2; ++n) BOOST_TEST(run.storage(n).objects() == 0u);
  BOOST_REQUIRE(run.sender().outcome().has_value());
  BOOST_TEST(!run.sender().succeeded());
}

BOOST_AUTO_TEST_CASE(a_lost_commit_is_told_again) {
  scenario_options o = together(7, 3, clean_network());
  o.network.down.loss = o.network.up.loss = 0.3;
  scenario run(o);
  expect_success(run, 60s);
}

BOOST_AUTO_TEST_CASE(who_is_current_already_does_not_hold_up_the_others) {
  scenario_options o = together(8, 3, clean_network());
  o.sender.engine.group_commit = false;
  o.start_receivers = false;
  scenario run(o);
  run.start_receiver(0);
  expect_end(run, 10s);
  BOOST_TEST(run.has_all(0));
  run.set_group_commit(true);
  run.start_sender();
  for (std::uint32_t n = 0; n < 3; ++n) run.start_receiver(n);
  expect_success(run, 20s);
}
