// Faults that users of such systems really met.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <set>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

static bool streaming(scenario& s, std::uint64_t segment) { return s.sender().engine().state() != session_state::gathering && s.sender().engine().bulk_segment() >= segment; }
static void run_to_segment(scenario& s, std::uint64_t segment) {
  BOOST_REQUIRE(s.net().run_until([&] { return streaming(s, segment); }, 20s));
}
static bool is_announce(std::span<const std::byte> bytes) { return type_of(bytes) == packet_type::announce; }
static sender_process::options paced(std::uint64_t rate_bytes_per_s) { return {.engine = {.rate_bytes_per_s = rate_bytes_per_s}}; }

// --- 7 -------------------------------------------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(each_process_of_a_host_gets_its_own_repairs, bdata::xrange(3), seed) {
  node_options net = clean_network();
  net.down.loss = 0.05;
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 5, .network = net, .each = [](std::uint32_t, receiver_process::options& o) { o.node.host = 99; }});
  expect_success(s, 10s);
  for (std::uint32_t n = 0; n < 5; ++n) BOOST_TEST(s.receiver(n).engine()->count().duplicates < 40u, n);
}

// --- 13 ------------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(a_forgotten_membership_is_renewed) {
  scenario s({.receivers = 3, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = paced(2'000'000)});
  run_to_segment(s, 500);
  s.net().forget_member(s.receiver(1).node());
  expect_success(s, 20s);
  BOOST_TEST(s.receiver(1).rejoins() >= 1u);
  BOOST_TEST(!s.receiver(1).engine()->deaf());
}

BOOST_AUTO_TEST_CASE(a_membership_that_cannot_be_renewed_is_named_and_the_rest_comes_by_unicast) {
  scenario s({.receivers = 3, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = paced(1'000'000)});
  run_to_segment(s, 500);
  s.net().rejoin_works = false;
  s.net().forget_member(s.receiver(1).node());
  expect_success(s, 20s);
  BOOST_TEST(s.receiver(1).rejoins() >= 1u);
  BOOST_TEST(said(s.receiver(1).notes(), "querier"));
  BOOST_TEST(s.report(1).deaf);
  BOOST_TEST(s.sender().engine().count().unicast_repairs < 3000u);
}

// --- 14 ------------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(a_receiver_that_lost_the_first_announcements_is_admitted_by_later_ones) {
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = paced(4'000'000)});
  const network::node_id victim = s.receiver(1).node();
  s.net().set_drop([&](network::node_id to, bool, std::span<const std::byte> bytes) { return to == victim && is_announce(bytes) && s.net().now() < time_point{} + 2500ms; });
  expect_success(s, 20s);
  BOOST_TEST(seconds(s.receiver(1).engine()->when().first_heard.time_since_epoch()) > 2.5);
}

// --- 15 ------------------------------------------------------------------------------------------------------------------
static double seconds_of_first(bool with_late) {
  scenario s({.receivers = 2, .objects = {{.parts = {8 << 20}}}, .network = clean_network(), .sender = {.engine = {.linger = 1s}}, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_until([&] { return streaming(s, 3600); }, 20s);
  if (with_late) s.start_receiver(1);
  s.net().run_until([&] { return s.has_all(0); }, 10s);
  const double taken = seconds(s.net().now() - s.sender().engine().when().started);
  if (with_late) expect_success(s, 10s);
  return taken;
}

BOOST_AUTO_TEST_CASE(a_receiver_that_comes_at_60_percent_gets_everything_and_slows_nobody) {
  const double alone = seconds_of_first(false), beside_a_late_one = seconds_of_first(true);
  BOOST_TEST(beside_a_late_one < alone * 1.2 + 0.002, alone << " s alone, " << beside_a_late_one << " s");
}

// --- 22 ------------------------------------------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(sequences_wrap_and_loss_around_the_wrap_is_repaired, bdata::xrange(6), seed) {
  node_options net = rough_network(static_cast<std::uint64_t>(seed));
  net.down.loss = 0.05;
  const std::uint64_t first = (std::uint64_t(1) << 32) - 400;
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 4, .objects = {{.parts = {2 << 20}}}, .network = net,
              .sender = {.engine = {.rate_bytes_per_s = seed % 2 ? 20'000'000u : 0u, .sequence_first = first}}, .start_receivers = false});
  for (std::uint32_t n = 0; n < 3; ++n) s.start_receiver(n);
  run_to_segment(s, 600);   // past the wrap: the last receiver hears only what is after it
  s.start_receiver(3);
  expect_success(s, 20s);
  std::uint32_t left = 0;
  for (const auto& r : s.sender().engine().receivers()) left += r.left_rate_loop;
  BOOST_TEST(left == 0u);
}

// --- 24 ------------------------------------------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(two_senders_on_one_group_are_never_mixed, bdata::xrange(5), seed) {
  node_options net = rough_network(static_cast<std::uint64_t>(seed));
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 4, .objects = {{.name = "first", .parts = {1 << 20}}}, .network = net,
              .each = [](std::uint32_t n, receiver_process::options& o) {
                if (n < 2) o.engine.wanted = [](const manifest& m) { return m.name == "first"; };
              }});
  sender_process& other = s.add_sender({{.name = "second", .parts = {1 << 20}}}, {});
  BOOST_TEST(s.net().run_until([&] { return s.sender().outcome() && other.outcome(); }, 30s), s.summary());
  BOOST_TEST(s.sender().succeeded(), s.summary());
  BOOST_TEST(other.succeeded());
  BOOST_TEST(s.all_complete());
  for (std::uint32_t n = 0; n < 4; ++n) BOOST_TEST(s.storage(n).visible("second") == (n >= 2), n);
}

BOOST_DATA_TEST_CASE(two_senders_with_one_tag_are_never_mixed, bdata::xrange(3), seed) {   // half of a session's number is in every packet
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 2, .objects = {{.name = "first", .parts = {1 << 20}}}, .network = clean_network(),
              .each = [](std::uint32_t, receiver_process::options& o) { o.engine.wanted = [](const manifest& m) { return m.name == "first"; }; }});
  const session_id twin{s.sender().engine().id().value ^ std::uint64_t(1) << 60};
  sender_process& other = s.add_sender({{.name = "second", .parts = {1 << 20}}}, {.engine = {.session = twin, .wait = 3s}});
  expect_success(s, 10s);
  BOOST_TEST(s.net().run_until([&] { return other.outcome().has_value(); }, 10s));
  BOOST_TEST((other.outcome()->code == errc::no_receiver));
}

BOOST_AUTO_TEST_CASE(a_restarted_sender_is_a_new_session_and_the_old_one_ends_with_a_reason) {
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = paced(4'000'000)});
  run_to_segment(s, 1500);
  const session_id old = s.sender().engine().id();
  s.kill_sender();
  s.net().run_for(1s);
  s.start_sender();
  BOOST_TEST(s.net().run_until([&] { return s.sender().outcome().has_value(); }, 20s), s.summary());
  BOOST_TEST(s.all_complete());
  s.net().run_for(12s);
  for (std::uint32_t n = 0; n < 2; ++n) {
    BOOST_REQUIRE(s.receiver(n).outcome(old).has_value());
    BOOST_TEST((s.receiver(n).outcome(old)->code == errc::sender_lost), s.receiver(n).outcome(old)->what);
    BOOST_TEST(s.receiver(n).outcome(s.sender().engine().id())->what == "");
  }
}

// --- 25, 26 ---------------------------------------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(after_a_killed_sender_receivers_end_and_resume_what_is_missing, bdata::xrange(5), seed) {
  const std::uint64_t size = 8 << 20;
  node_options net = clean_network();
  net.down.loss = 0.01;
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 3, .objects = {{.parts = {size}}}, .network = net});
  run_to_segment(s, 2900);
  s.kill_sender();
  BOOST_TEST(s.net().run_until([&] { return s.all_ended(); }, 11s), "receivers end in bounded time: " << s.summary());
  std::uint64_t kept = size;
  for (std::uint32_t n = 0; n < 3; ++n) {
    BOOST_TEST((s.receiver(n).outcome()->code == errc::sender_lost));
    BOOST_TEST(s.storage(n).objects() == 0u);
    BOOST_TEST(s.storage(n).has_partial("model"));
    kept = std::min(kept, s.receiver(n).engine()->complete_blocks(0).count() * (64 << 10));
    s.kill_receiver(n);
  }
  BOOST_TEST(kept > size / 8, "too little arrived for this test to say anything");
  s.start_sender();
  for (std::uint32_t n = 0; n < 3; ++n) s.start_receiver(n);
  expect_success(s, 10s);
  for (std::uint32_t n = 0; n < 3; ++n) {
    const auto& c = s.receiver(n).engine()->count();
    BOOST_TEST(c.resumed_bytes >= kept);
    BOOST_TEST(c.bytes + c.resumed_bytes == size + digest_table::bytes(size / (64 << 10)), "each byte once: " << c.bytes << " came, " << c.resumed_bytes << " were there");
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_is_current_fetches_nothing) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = {.engine = {.tables_known = {true}}}});
  expect_success(s, 10s);
  for (std::uint32_t n = 0; n < 2; ++n) s.kill_receiver(n);
  s.start_sender();
  for (std::uint32_t n = 0; n < 2; ++n) s.start_receiver(n);
  expect_success(s, 10s);
  for (std::uint32_t n = 0; n < 2; ++n) {
    BOOST_TEST(s.receiver(n).engine()->count().segments == 0u);
    BOOST_TEST(s.receiver(n).engine()->reports().at(0).encoding == "none");
    BOOST_TEST(s.storage(n).commits() == 1u);
  }
  BOOST_TEST(s.sender().data_datagrams() == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_left_of_another_version_is_proven_before_it_counts) {
  scenario s({.receivers = 1, .network = clean_network(), .sender = paced(4'000'000)});
  run_to_segment(s, 400);
  s.kill_receiver(0);
  const auto next = std::make_shared<content>(std::vector<object_spec>{{.version = version_id{2}}}, 1234);   // all bytes differ
  s.start_sender(next);
  s.start_receiver(0);
  expect_success(s, 10s);
  BOOST_TEST(s.receiver(0).engine()->count().resumed_bytes == 0u);
  BOOST_TEST((s.storage(0).version("model") == version_id{2}));
}

BOOST_DATA_TEST_CASE(a_resumed_receiver_beside_an_empty_one_fetches_nothing_twice, bdata::xrange(5), seed) {
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network(),
              .receiver = {.digest_delay = 500us}, .start_receivers = false});
  s.start_receiver(0);
  run_to_segment(s, 1500);
  s.kill_receiver(0);
  s.start_sender();
  s.start_receiver(0);
  s.start_receiver(1);   // the group gets all of it, also what the first has
  expect_success(s, 10s);
}

// --- 32, 45 ---------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(a_transient_error_of_a_receivers_socket_does_not_end_it) {
  node_options net = clean_network();
  net.down.loss = 0.02;
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = net, .sender = paced(20'000'000)});
  run_to_segment(s, 300);
  s.net().refuse_sends(s.receiver(0).node(), true);
  s.net().run_for(300ms);
  s.net().refuse_sends(s.receiver(0).node(), false);
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(refused_sends_are_counted_and_backed_off_from) {
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network()});
  run_to_segment(s, 300);
  s.net().refuse_sends(s.sender().node(), true);
  s.net().run_for(500ms);
  BOOST_TEST(s.sender().refused_sends() > 0u);
  BOOST_TEST(s.sender().refused_sends() < 6000u, "every packet of the object was thrown at a socket that takes none");
  BOOST_TEST(!s.sender().outcome().has_value());
  s.net().refuse_sends(s.sender().node(), false);
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(sends_that_are_refused_for_ever_are_no_success) {
  scenario s({.receivers = 2, .network = clean_network()});
  run_to_segment(s, 200);
  s.net().refuse_sends(s.sender().node(), true);
  expect_end(s, 30s);
  BOOST_TEST(!s.sender().succeeded());
  BOOST_TEST(s.complete() == 0u);
  for (std::uint32_t n = 0; n < 2; ++n) BOOST_TEST(!s.receiver(n).succeeded());
}

// --- 36 ------------------------------------------------------------------------------------------------------------------
struct attacker final : process {
  explicit attacker(network& n) : net(n), node(n.attach(*this, {.host = 200, .in_group = false})) {}
  void receive(time_point, path, bool, std::span<const std::byte> bytes) override { got += bytes.size(); }
  void wake(time_point) override {}
  void say(const path& to, const message& m, std::size_t pad = 0) {
    const auto d = std::make_shared<const datagram>(write_message(m, pad));
    said += d->bytes.size();
    net.send(node, {false, 0, to}, d);
  }
  network& net;
  network::node_id node;
  std::size_t got = 0, said = 0;
};

BOOST_AUTO_TEST_CASE(forged_nacks_draw_no_repair) {
  scenario s({.receivers = 2, .network = clean_network(), .sender = paced(1'000'000)});
  run_to_segment(s, 500);
  attacker bad(s.net());
  const path to{s.net().address(s.sender().node()), 0};
  for (std::uint64_t guess = 1; guess < 300; ++guess)
    bad.say(to, nack{.session = s.sender().engine().id(), .token = join_token{guess}, .unicast = true, .ranges = {{0, 700}}});
  s.net().run_for(100ms);
  BOOST_TEST(s.sender().engine().count().dropped.at("wrong_token") == 299u);
  BOOST_TEST(bad.got == 0u);
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(a_joined_receiver_draws_repair_within_a_budget) {
  scenario s({.receivers = 1, .network = clean_network(), .sender = {.engine = {.linger = 60s}}});
  run_to_segment(s, 700);
  attacker bad(s.net());
  struct listener final : process {   // one that joins properly, and then asks without end
    listener(network& n, path p, session_id i) : net(n), to(p), id(i), node(n.attach(*this, {.host = 201, .in_group = false})) {}
    void receive(time_point, path, bool, std::span<const std::byte> bytes) override {
      got += bytes.size();
      if (const auto m = parse_message(bytes); m && std::holds_alternative<welcome>(*m)) token = std::get<welcome>(*m).token;
    }
    void wake(time_point) override {}
    void say(const message& m, std::size_t pad = 0) { net.send(node, {false, 0, to}, std::make_shared<const datagram>(write_message(m, pad))); }
    network& net;
    path to;
    session_id id;
    network::node_id node;
    join_token token{};
    std::size_t got = 0;
  } greedy(s.net(), {s.net().address(s.sender().node()), 0}, s.sender().engine().id());
  greedy.say(join{.session = greedy.id, .receiver = receiver_id{5}, .ready = true, .deaf = true, .buffer_bytes = 1 << 20, .host = "greedy"}, 256);
  s.net().run_for(10ms);
  BOOST_REQUIRE(greedy.token.value != 0u);
  for (int i = 0; i < 400; ++i) {
    greedy.say(nack{.session = greedy.id, .token = greedy.token, .unicast = true, .ranges = {{0, s.sender().engine().segments().segments()}}});
    s.net().run_for(5ms);
  }
  BOOST_TEST(greedy.got > std::size_t(1) << 20);
  BOOST_TEST(greedy.got < (std::size_t(13) << 20) + (1 << 20), "more than eight times the object and 4 MiB, with headers");
  BOOST_TEST(s.sender().engine().count().dropped.at("over_budget") > 0u);
  BOOST_TEST(s.all_complete());
}

BOOST_AUTO_TEST_CASE(no_answer_to_a_stranger_is_larger_than_its_question) {
  std::vector<object_spec> objects;
  for (int n = 0; n < 15; ++n) objects.push_back({.name = "a/rather/long/name/for/a/small/object/" + std::to_string(n), .parts = {10}});
  scenario s({.objects = objects, .network = clean_network()});
  s.net().run_for(500ms);
  attacker bad(s.net());
  const path to{s.net().address(s.sender().node()), 0};
  bad.say(to, query{receiver_id{1}}, control_bytes_max);
  s.net().run_for(20ms);
  BOOST_TEST(bad.got > 0u);
  BOOST_TEST(bad.got <= bad.said);
  const std::size_t said_before = bad.said, got_before = bad.got;
  bad.say(to, query{receiver_id{1}});   // not padded
  s.net().run_for(20ms);
  BOOST_TEST(bad.got - got_before <= bad.said - said_before);
}

// --- 37, 38, 39 -----------------------------------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(one_packet_lost_by_64_receivers_takes_a_few_nacks_and_one_or_two_repairs, bdata::xrange(10), seed) {
  node_options net = clean_network();
  net.down.jitter = 10us;
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 64, .network = net});
  s.net().set_drop([&](network::node_id, bool, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    return h && h->segment == 300 && (h->flags & data_header::repair) == 0;
  });
  expect_success(s, 10s);
  const auto& c = s.sender().engine().count();
  BOOST_TEST(c.nacks <= 8u, s.summary());
  BOOST_TEST(c.multicast_repairs + c.unicast_repairs <= 2u, s.summary());
}

BOOST_AUTO_TEST_CASE(a_thousand_gaps_are_asked_for_in_one_round) {
  scenario s({.objects = {{.parts = {4 << 20}}}, .network = clean_network()});
  s.net().set_drop([&](network::node_id, bool, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    return h && h->segment % 2 == 1 && h->segment < 2000 && (h->flags & data_header::repair) == 0;
  });
  expect_success(s, 10s);
  const auto& c = s.sender().engine().count();
  BOOST_TEST(c.multicast_repairs + c.unicast_repairs == 1000u, s.summary());
  BOOST_TEST(c.nack_ranges <= 1050u, c.nack_ranges);
}

BOOST_AUTO_TEST_CASE(the_loss_of_the_last_data_and_of_every_end_mark_is_found) {
  scenario s({.receivers = 2, .network = clean_network()});
  s.net().set_drop([&](network::node_id, bool to_group, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    if (h) return h->segment >= 730 && (h->flags & data_header::repair) == 0;
    return to_group && is_announce(bytes) && s.net().now() > time_point{} + 2s && s.net().now() < time_point{} + 3500ms;
  });
  expect_success(s, 5s);
}

// --- 40 ------------------------------------------------------------------------------------------------------------------
static double seconds_of_the_fast(duration per_datagram, duration stop_for) {
  scenario s({.receivers = 5, .objects = {{.parts = {16 << 20}}}, .network = clean_network(), .each = [&](std::uint32_t n, receiver_process::options& o) {
                if (n == 4) o.node.per_datagram = per_datagram, o.node.buffer_bytes = 1 << 20;
              }});
  run_to_segment(s, 1000);
  if (stop_for > 0s) s.net().pause(s.receiver(4).node(), stop_for);
  BOOST_TEST(s.net().run_until([&] { return s.has_all(0) && s.has_all(1) && s.has_all(2) && s.has_all(3); }, 20s), s.summary());
  const double taken = seconds(s.net().now() - s.sender().engine().when().started);
  expect_success(s, 60s);
  BOOST_TEST(s.report(4).left_rate_loop == (stop_for > 0s), s.summary());
  return taken;
}

BOOST_AUTO_TEST_CASE(a_stopped_receiver_is_left_behind_told_and_served_later) {
  const double alone = seconds_of_the_fast(500ns, 0s), beside_a_stopped_one = seconds_of_the_fast(500ns, 2s);
  BOOST_TEST(beside_a_stopped_one < alone + 0.5, alone << " s, " << beside_a_stopped_one << " s");
}

BOOST_AUTO_TEST_CASE(a_receiver_much_slower_than_the_others_finishes_later) {
  scenario s({.receivers = 4, .objects = {{.parts = {64 << 20}}}, .network = clean_network(), .each = [&](std::uint32_t n, receiver_process::options& o) {
                if (n == 3) o.node.per_datagram = 200us, o.node.buffer_bytes = 1 << 20;   // 7 MB/s
              }});
  BOOST_TEST(s.net().run_until([&] { return s.has_all(0) && s.has_all(1) && s.has_all(2); }, 60s), s.summary());
  const double fast = seconds(s.net().now() - s.sender().engine().when().started);
  expect_success(s, 60s);
  const double slow = seconds(s.net().now() - s.sender().engine().when().started);
  BOOST_TEST(fast < 4, fast);   // two seconds of patience, then at its own speed
  BOOST_TEST(slow > 9, slow);
  BOOST_TEST(said(s.sender().notes(), "slower"));
  BOOST_TEST(s.sender().engine().count().unicast_repairs < 115'000u, "of 47,116 segments: answers queue for longer than a timer runs");
  BOOST_TEST(said(s.receiver(3).notes(), "too slow"));
}

// --- 46 ------------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(announced_but_no_data_is_named_and_served_by_unicast) {
  scenario s({.receivers = 2, .objects = {{.parts = {4 << 20}}}, .network = clean_network(), .sender = paced(2'000'000)});
  const network::node_id victim = s.receiver(0).node();
  s.net().set_drop([&](network::node_id to, bool to_group, std::span<const std::byte> bytes) { return to == victim && to_group && type_of(bytes) == packet_type::data; });
  expect_success(s, 20s);
  BOOST_TEST(said(s.receiver(0).notes(), "announcements arrive, data does not"));
}

BOOST_AUTO_TEST_CASE(data_but_no_repair_is_named_and_ends) {
  scenario s({.receivers = 2, .network = clean_network()});
  const network::node_id victim = s.receiver(0).node();
  s.net().set_drop([&](network::node_id to, bool to_group, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    return to == victim && h && (!to_group || h->segment == 100 || h->flags & data_header::repair);
  });
  expect_end(s, 60s);
  BOOST_TEST(s.has_all(1));
  BOOST_TEST(!s.sender().succeeded());
  BOOST_REQUIRE(s.receiver(0).outcome().has_value());
  BOOST_TEST(s.receiver(0).outcome()->what.find("no repair") != std::string::npos, s.receiver(0).outcome()->what);
}

BOOST_AUTO_TEST_CASE(repairs_to_the_group_that_do_not_arrive_are_asked_for_by_unicast) {
  scenario s({.receivers = 20, .network = clean_network()});
  const network::node_id victim = s.receiver(0).node();
  s.net().set_drop([&](network::node_id to, bool to_group, std::span<const std::byte> bytes) {
    const auto h = parse_data_header(bytes);
    return to == victim && h && to_group && (h->segment == 100 || h->flags & data_header::repair);
  });
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(announcements_but_no_answer_is_named_and_ends) {
  node_options net = clean_network();
  net.down.loss = 0.05;
  scenario s({.receivers = 2, .network = net, .sender = {.engine = {.linger = 60s}}});
  s.net().block(s.receiver(0).node()).unicast_in = true;
  BOOST_TEST(s.net().run_until([&] { return s.receiver(0).outcome().has_value(); }, 30s));
  BOOST_REQUIRE(s.receiver(0).outcome().has_value());
  BOOST_TEST(!s.receiver(0).succeeded());
  BOOST_TEST(s.receiver(0).outcome()->what.find("firewall") != std::string::npos, s.receiver(0).outcome()->what);
}

// --- 57, 58 ---------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(hundreds_of_joins_are_bounded_and_the_others_are_told) {
  scenario s({.receivers = 300, .objects = {{.parts = {100'000}}}, .network = clean_network(), .sender = {.engine = {.receivers_max = 100}}});
  BOOST_TEST(s.net().run_until([&] { return s.all_ended(); }, 30s), s.summary());
  BOOST_TEST(s.sender().engine().receivers_joined() == 100u);
  BOOST_TEST(s.complete() == 100u);
  for (std::uint32_t n = 0; n < 300; ++n)
    if (!s.has_all(n)) BOOST_TEST((s.receiver(n).outcome()->code == errc::refused));
}

BOOST_AUTO_TEST_CASE(repeated_joins_count_once) {
  scenario s({.receivers = 20, .objects = {{.parts = {100'000}}}, .network = clean_network()});
  s.net().set_drop([&](network::node_id to, bool, std::span<const std::byte> bytes) {   // every WELCOME is lost for a second: all join again and again
    return to != s.sender().node() && type_of(bytes) == packet_type::welcome && s.net().now() < time_point{} + 1s;
  });
  expect_success(s, 10s);
  BOOST_TEST(s.sender().engine().receivers_joined() == 20u);
}

BOOST_DATA_TEST_CASE(receivers_that_die_while_their_repairs_are_queued_harm_nobody, bdata::xrange(10), seed) {
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 8, .objects = {{.parts = {4 << 20}}}, .network = clean_network(),
              .sender = {.engine = {.rate_bytes_per_s = 20'000'000, .silence = 300ms}}});
  for (std::uint32_t n = 0; n < 6; ++n) s.net().block(s.receiver(n).node()).multicast_in = true;   // deaf: each has a queue of its own
  run_to_segment(s, 1000);
  prng random(static_cast<std::uint64_t>(seed));
  for (std::uint32_t n = 0; n < 6; ++n) s.net().at(s.net().now() + std::chrono::milliseconds(random.next() % 300), [&s, n] { s.kill_receiver(n); });
  expect_end(s, 20s);
  BOOST_TEST(s.has_all(6));
  BOOST_TEST(s.has_all(7));
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete));
}

// --- 63 ------------------------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(bytes_that_do_not_match_the_digests_are_never_visible) {
  const auto wrong = std::make_shared<content>(std::vector<object_spec>{{}}, 5);
  wrong->part_to_change(0, 0)[500'000] ^= std::byte{1};   // the table was made before
  scenario s({.receivers = 2, .network = clean_network(), .start_receivers = false});
  s.start_sender(wrong);
  for (std::uint32_t n = 0; n < 2; ++n) s.start_receiver(n);
  expect_end(s, 60s);
  for (std::uint32_t n = 0; n < 2; ++n) {
    BOOST_TEST(s.storage(n).objects() == 0u);
    BOOST_TEST((s.receiver(n).outcome()->code == errc::integrity), s.receiver(n).outcome()->what);
  }
  BOOST_TEST(!s.sender().succeeded());
}

BOOST_AUTO_TEST_CASE(a_write_that_was_forgotten_is_found_by_its_digest) {   // what was never written reads as 0xdb, not as what was there
  node_options net = clean_network();
  net.down.reorder = 0.5;   // blocks are read back
  scenario s({.receivers = 2, .network = net});
  expect_success(s, 10s);
}

// --- 53, faults of one receiver's disk -----------------------------------------------------------------------------------
BOOST_DATA_TEST_CASE(a_full_disk_fails_one_receiver_with_its_error, bdata::make({1, 2, 50, 700}), nth) {
  scenario s({.receivers = 3, .network = clean_network()});
  s.storage(1).fail.write = static_cast<std::uint64_t>(nth);
  expect_end(s, 10s);
  BOOST_TEST(s.has_all(0));
  BOOST_TEST(s.has_all(2));
  BOOST_TEST((s.receiver(1).outcome()->code == errc::io));
  BOOST_TEST(s.receiver(1).engine()->reports().at(0).problem.os == ENOSPC);
  BOOST_TEST((s.sender().outcome()->code == errc::incomplete));
  BOOST_TEST(s.report(1).state == "failed");
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_or_revealed_fails_one_receiver) {
  scenario s({.receivers = 4, .network = clean_network()});
  s.storage(1).fail.open = 1;
  s.storage(2).fail.commit = 1;
  expect_end(s, 10s);
  BOOST_TEST(s.has_all(0));
  BOOST_TEST(s.has_all(3));
  BOOST_TEST((s.receiver(1).outcome()->code == errc::io));
  BOOST_TEST((s.receiver(2).outcome()->code == errc::io));
  BOOST_TEST(s.storage(1).objects() + s.storage(2).objects() == 0u);
}

BOOST_AUTO_TEST_CASE(one_object_of_many_may_fail_alone) {
  std::vector<object_spec> objects;
  for (int n = 0; n < 6; ++n) objects.push_back({.name = "object-" + std::to_string(n), .parts = {200'000}});
  scenario s({.receivers = 2, .objects = objects, .network = clean_network()});
  s.storage(0).fail.write = 400;
  expect_end(s, 10s);
  BOOST_TEST(s.storage(0).objects() == 5u);
  BOOST_TEST(!s.receiver(0).succeeded());
  BOOST_TEST(s.has_all(1));
}

// --- 43 in simulated form --------------------------------------------------------------------------------------------------
BOOST_AUTO_TEST_CASE(a_path_that_carries_only_smaller_packets_makes_all_smaller) {
  node_options net = clean_network();
  net.up.mtu = net.down.mtu = 9000;
  scenario s({.receivers = 3, .objects = {{.parts = {4 << 20}}}, .network = net, .each = [](std::uint32_t n, receiver_process::options& o) {
                if (n == 1) o.node.down.mtu = 1500;
              }});
  expect_success(s, 10s);
  BOOST_TEST(s.sender().engine().segments().segment_bytes() == 1472u - data_header::wire_size);
  BOOST_TEST(said(s.sender().notes(), "MTU"));
}
