#include "lib/session/sender.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/engines.hpp"
#include "tests/support/messages.hpp"

using namespace ddf;
using namespace std::chrono_literals;
using test::at;
using test::lone_sender;

BOOST_AUTO_TEST_SUITE(sender_)

/// From a receiver that has heard all that was sent before.
static nack nack_of(join_token token, std::vector<range> ranges, bool unicast = false) {
  nack n = test::a_nack(test::this_session, token, std::move(ranges), nack_space::segments, unicast);
  n.sequence = n.unicast_sequence = std::uint64_t(1) << 40;
  return n;
}

static std::uint64_t repairs_for(lone_sender& s, path from, const nack& n) {
  const std::uint64_t at_once = lone_sender::segments_in(s.hear(from, n));
  return at_once + lone_sender::segments_in(s.run(20ms));
}

/// A session of one honest receiver that was sent everything: its token.
static join_token stream(lone_sender& s) {
  const auto w = s.join_from(at(2), 2);
  s.run(3s);
  BOOST_REQUIRE(s.engine.state() != session_state::gathering);
  s.hear(at(2), status{test::this_session, w.token, 0, 0, 0, false});
  for (int i = 0; i < 1000 && s.engine.bulk_segment() < s.engine.segments().segments(); ++i) {
    const auto sent = s.engine.count().group_packets;
    s.hear(at(2), status{test::this_session, w.token, sent, sent, sent, false});
    s.run(1ms);
  }
  BOOST_REQUIRE(s.engine.bulk_segment() == s.engine.segments().segments());
  return w.token;
}

BOOST_AUTO_TEST_CASE(a_nack_with_a_forged_token_draws_nothing) {
  lone_sender s;
  const join_token token = stream(s);
  for (const join_token forged : {join_token{0}, join_token{1}, join_token{token.value ^ 2}}) {
    BOOST_TEST(repairs_for(s, at(2), nack_of(forged, {{0, 100}})) == 0u);
  }
  BOOST_TEST(s.engine.count().dropped.at("wrong_token") == 3u);
}

BOOST_AUTO_TEST_CASE(a_nack_from_another_address_draws_nothing) {
  lone_sender s;
  const join_token token = stream(s);
  BOOST_TEST(repairs_for(s, at(3), nack_of(token, {{0, 100}})) == 0u);
  BOOST_TEST(repairs_for(s, at(2, 1001), nack_of(token, {{0, 100}})) == 0u);
  BOOST_TEST(s.engine.count().dropped.at("wrong_token") == 2u);
  BOOST_TEST(repairs_for(s, at(2), nack_of(token, {{0, 100}})) == 100u);
}

BOOST_AUTO_TEST_CASE(a_nack_beyond_the_last_segment_draws_nothing) {
  lone_sender s;
  const join_token token = stream(s);
  const std::uint64_t end = s.engine.segments().segments();
  BOOST_TEST(repairs_for(s, at(2), nack_of(token, {{end, end + 1}, {std::uint64_t(1) << 47, (std::uint64_t(1) << 47) + 0xffffffff}})) == 0u);
  BOOST_TEST(s.engine.count().dropped.at("nack_out_of_range") == 2u);
}

// The first pass waits for the window, perhaps because the link is full: what a late receiver is sent then would slow the others.
BOOST_AUTO_TEST_CASE(a_late_receiver_is_not_given_what_a_shut_window_leaves) {
  sender_options o;
  o.expect = 1;
  lone_sender s({test::file("f", 20 << 20)}, o);
  const join_token first = s.join_from(at(2), 2).token;
  s.run(20ms);
  std::uint64_t sent = 0, late_got = 0;
  const welcome w = s.join_from(at(3), 3);
  const auto confirm = [&](std::uint64_t sequence) {
    const auto actions = s.hear(at(2), status{test::this_session, first, sequence, sequence, sequence, false, true});
    sent += s.segments_in(actions, true);
    late_got += s.segments_in(actions, false);
  };
  confirm(20);
  confirm(s.engine.bulk_segment());
  confirm(s.engine.bulk_segment());   // the window is shut now
  late_got += s.segments_in(s.hear(at(3), nack_of(w.token, {{0, 100}})), false);
  late_got += s.segments_in(s.run(50ms), false);
  const std::uint64_t bulk = s.engine.bulk_segment();
  BOOST_REQUIRE(bulk < s.engine.segments().segments());
  BOOST_TEST(late_got <= 100u);
  const std::uint64_t before = late_got;
  late_got += s.segments_in(s.hear(at(3), nack_of(w.token, {{100, 400}})), false);
  late_got += s.segments_in(s.run(50ms), false);
  BOOST_TEST(late_got == before);     // it has had its share
  for (int i = 0; i < 400 && s.engine.bulk_segment() < s.engine.segments().segments(); ++i) {
    confirm(s.engine.bulk_segment());
    const auto more = s.run(2ms);
    sent += s.segments_in(more, true);
    late_got += s.segments_in(more, false);
  }
  BOOST_TEST(late_got > 100u);        // while the first pass goes on it gets a part of it
  BOOST_TEST(late_got <= 400u);
}

BOOST_AUTO_TEST_CASE(a_repeated_join_changes_nothing_and_is_answered_alike) {
  lone_sender s;
  const auto first = s.join_from(at(2), 2);
  for (int i = 0; i < 500; ++i) BOOST_REQUIRE(s.join_from(at(2), 2).token == first.token);
  BOOST_TEST(s.engine.receivers_joined() == 1u);
  BOOST_TEST(s.engine.receivers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_join_under_a_taken_id_from_elsewhere_is_dropped) {
  lone_sender s;
  s.join_from(at(2), 2);
  BOOST_TEST((s.join_from(at(3), 2).token == join_token{0}));
  BOOST_TEST(s.engine.count().dropped.at("join_from_elsewhere") == 1u);
}

BOOST_AUTO_TEST_CASE(more_receivers_than_the_limit_are_refused) {
  sender_options o;
  o.receivers_max = 300;
  lone_sender s({test::file("f", 1)}, o);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    const auto w = s.join_from(at(static_cast<std::uint8_t>(i % 250), static_cast<std::uint16_t>(i)), i);
    BOOST_REQUIRE((w.refused == (i <= 300 ? refusal::none : refusal::full)));
  }
  BOOST_TEST(s.engine.receivers().size() == 300u);
  BOOST_TEST(s.engine.count().dropped.at("receivers_full") == 700u);
}

// Whoever can forge a source address must not draw more bytes to it than he sends, whatever he sends but a joined receiver's packets.
BOOST_AUTO_TEST_CASE(an_address_that_did_not_join_draws_at_most_what_came_from_it) {
  for (const bool streaming : {false, true})
    for (const std::size_t pad : {0, 256, 1200}) {
      sender_options o;
      o.wait = 500ms;
      lone_sender s({test::file("f", 100'000), test::folder("folder", std::vector<std::uint64_t>(30, 5000))}, o);
      if (streaming) s.join_from(at(2), 2), s.run(1s);
      const path victim = at(66);
      std::uint64_t in = 0, out = 0;
      const auto forge = [&](const message& m) {
        in += write_message(m, pad).size();
        out += s.bytes_to(s.hear(victim, m, pad), victim);
      };
      for (int i = 0; i < 20; ++i) {
        forge(query{receiver_id{666}});
        auto j = s.a_join(666 + static_cast<std::uint64_t>(i % 3), i % 2 == 0);
        forge(j);
        j.deaf = true;
        forge(j);
        forge(nack_of(join_token{666}, {{0, 100}}, true));
        forge(status{test::this_session, join_token{666}, 1, 1, 1, true});
        forge(done{test::this_session, join_token{666}, done_state::failed, 0, 0, 0, 0, 0, 0, "x"});
      }
      out += s.bytes_to(s.run(20s), victim);
      s.engine.stop(s.now, {errc::interrupted, 0, std::string(400, 'x')});
      out += s.bytes_to(s.drain(), victim);
      BOOST_TEST(static_cast<double>(out) <= 1.1 * static_cast<double>(in), (streaming ? "streaming" : "gathering") << ", padded to " << pad << ": " << in << " bytes in, " << out << " out");
    }
}

BOOST_AUTO_TEST_CASE(one_forged_join_draws_at_most_what_it_is_long) {
  for (const bool ready : {false, true}) {
    lone_sender s;
    stream(s);
    const path victim = at(66);
    std::uint64_t out = s.bytes_to(s.hear(victim, s.a_join(666, ready), 256), victim);
    out += s.bytes_to(s.run(1s), victim);
    s.engine.stop(s.now, {errc::interrupted, 0, std::string(400, 'x')});
    out += s.bytes_to(s.drain(), victim);
    BOOST_TEST(out <= 281u);
  }
}

BOOST_AUTO_TEST_CASE(packets_that_lack_their_padding_are_dropped) {
  lone_sender s;
  BOOST_TEST(s.hear(at(2), query{receiver_id{2}}).empty());
  BOOST_TEST(s.hear(at(2), s.a_join(2)).empty());
  BOOST_TEST(s.engine.count().dropped.at("unpadded") == 2u);
  BOOST_TEST(s.engine.receivers_joined() == 0u);
}

// A joined receiver may be hostile too: what it can draw is bounded by the object.
BOOST_AUTO_TEST_CASE(a_joined_receiver_draws_repairs_within_its_budget) {
  for (const std::size_t others : {0, 30})   // alone: unicast; in a large group: multicast
    for (const bool unicast : {false, true}) {
      sender_options o;
      o.linger = 1000s;
      lone_sender s({test::file("f", 200'000)}, o);
      const join_token token = s.join_from(at(2), 2).token;
      std::vector<welcome> complete;
      for (std::size_t i = 0; i < others; ++i) complete.push_back(s.join_from(at(static_cast<std::uint8_t>(100 + i)), 100 + i));
      s.run(3s);
      for (std::size_t i = 0; i < others; ++i)
        s.hear(at(static_cast<std::uint8_t>(100 + i)), done{test::this_session, complete[i].token, done_state::complete, 0, 1, 0, 0, 0, 0, ""});
      std::uint64_t bytes = 0;
      for (int i = 0; i < 4000; ++i) {
        nack n = nack_of(token, {{0, s.engine.segments().segments()}}, unicast);
        n.sequence = n.received = s.engine.count().group_packets;
        s.hear(at(2), n);
        s.now += 5ms;
        s.engine.handle_timeout(s.now);
        s.drain();
      }
      bytes = s.engine.count().unicast_repair_bytes + s.engine.count().multicast_repair_bytes;
      BOOST_TEST(bytes <= 10 * 200'000 + (5 << 20), bytes << " bytes were drawn");
      BOOST_TEST(s.engine.count().dropped.at("over_budget") > 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_nack_of_every_catalogue_chunk_draws_a_bounded_burst) {
  catalogue c;
  for (int i = 0; i < 20'000; ++i) c.push_back(test::file("object number " + std::to_string(i), 1));
  lone_sender s(c);
  auto j = s.a_join(2, false);
  j.deaf = true;
  join_token token{};
  for (const auto& m : lone_sender::messages(s.hear(at(2), j, 256)))
    if (const auto* w = std::get_if<welcome>(&m)) token = w->token;
  BOOST_REQUIRE(token.value != 0);
  std::vector<range> every;
  for (std::uint64_t i = 0; i < nack_ranges_max; ++i) every.push_back({5 * i, 5 * i + 4});
  const auto n = test::count_of<send_message>(s.hear(at(2), test::a_nack(test::this_session, token, every, nack_space::catalogue_chunks, true)));
  BOOST_TEST(n > 0u);
  BOOST_TEST(n <= 64u);
  for (int i = 0; i < 2000; ++i) s.hear(at(2), test::a_nack(test::this_session, token, every, nack_space::catalogue_chunks, true));
  BOOST_TEST(s.engine.count().dropped.at("over_budget") > 0u);
}

BOOST_AUTO_TEST_CASE(what_receivers_call_themselves_is_made_printable) {
  lone_sender s;
  auto j = s.a_join(2);
  j.host = "evil\x1b]0;x\x07";
  s.hear(at(2), j, 256);
  BOOST_TEST(s.engine.receivers()[0].id.find('\x1b') == std::string::npos);
  const auto w = s.join_from(at(3), 3);
  s.hear(at(3), done{test::this_session, w.token, done_state::failed, 1, 0, 0, 0, 0, 0, "no\x1b[2J"});
  BOOST_TEST(s.engine.receivers()[1].reason == "no\\x1b[2J");
}

BOOST_AUTO_TEST_CASE(foreign_sessions_and_noise_are_counted_and_ignored) {
  lone_sender s;
  auto j = s.a_join(2);
  j.session = session_id{5};
  BOOST_TEST(s.hear(at(2), j, 256).empty());
  s.engine.handle_datagram(s.now, at(2), {});
  s.engine.handle_datagram(s.now, at(2), std::vector<std::byte>(1472, std::byte{0xff}));
  s.engine.handle_datagram(s.now, at(2), std::vector<std::byte>(1472, std::byte{0x10}));
  s.hear(at(2), farewell{test::this_session, receiver_id{2}});
  const auto& d = s.engine.count().dropped;
  BOOST_TEST(d.at("other_session") == 1u);
  BOOST_TEST(d.at("malformed") == 2u);
  BOOST_TEST(d.at("foreign_data") == 1u);
  BOOST_TEST(d.at("unexpected") == 1u);
  BOOST_TEST(s.engine.receivers_joined() == 0u);
}

// --- pacing -----------------------------------------------------------------------------------------------------------

struct paced {
  std::uint64_t bytes = 0, burst_max = 0;
  double seconds = 0;
};
static paced run_paced(std::uint64_t rate, std::uint32_t datagram, std::uint64_t object, duration most) {
  sender_options o;
  o.rate_bytes_per_s = rate;
  o.rails = {{datagram, 28, "eth0"}};
  o.wait = 10ms;
  o.silence = 1'000'000s;
  lone_sender s({test::file("f", object, 4 << 20)}, o);
  auto j = s.a_join(2);
  j.datagram_bytes = static_cast<std::uint16_t>(datagram);
  j.buffer_bytes = 64 << 20;
  join_token token{};
  for (const auto& m : lone_sender::messages(s.hear(at(2), j, 256)))
    if (const auto* w = std::get_if<welcome>(&m)) token = w->token;
  s.now += 20ms;
  s.engine.handle_timeout(s.now);
  const time_point start = s.now, until = start + most;
  paced p;
  while (s.engine.bulk_segment() < s.engine.segments().segments() && s.now < until) {
    std::uint64_t burst = 0;
    const auto take = [&](const std::vector<sender_action>& actions) {
      for (const auto& a : actions)
        if (const auto* b = std::get_if<send_segments>(&a))
          for (std::uint32_t i = 0; i < b->count; ++i) burst += s.engine.segments().segment(b->segments[i]).bytes;
    };
    take(s.drain());
    const auto sent = s.engine.count().group_packets;
    take(s.hear(at(2), status{test::this_session, token, sent, sent, sent, false}));
    p.bytes += burst;
    p.burst_max = std::max(p.burst_max, burst);
    const time_point next = s.engine.next_timeout();
    BOOST_REQUIRE(next < never);
    s.now = std::max(s.now + 1ns, next);
    s.engine.handle_timeout(s.now);
  }
  p.seconds = seconds(s.now - start);
  return p;
}

BOOST_AUTO_TEST_CASE(a_thousand_bits_per_second_leave_one_packet_at_a_time) {
  const paced p = run_paced(125, 1472, 20'000, 400s);
  BOOST_TEST(p.burst_max <= 1456u);
  BOOST_TEST(static_cast<double>(p.bytes) <= 125 * p.seconds + 2 * 1500);
  BOOST_TEST(static_cast<double>(p.bytes) >= 0.9 * 125 * p.seconds - 1500);
}

BOOST_AUTO_TEST_CASE(a_gigabit_with_jumbo_frames_is_met) {
  const paced p = run_paced(125'000'000, 8972, 30'000'000, 10s);
  BOOST_TEST(static_cast<double>(p.bytes) / p.seconds <= 1.02 * 125e6);
  BOOST_TEST(static_cast<double>(p.bytes) / p.seconds >= 0.9 * 125e6);
}

BOOST_AUTO_TEST_CASE(rates_beyond_every_wire_do_not_overflow) {
  for (const std::uint64_t rate : {std::uint64_t(200'000'000'000), ~std::uint64_t(0)}) {
    const paced p = run_paced(rate, 65'016, 20'000'000, 10s);
    BOOST_TEST(p.bytes >= 20'000'000u);
    BOOST_TEST(p.seconds < 0.1);
  }
}

BOOST_AUTO_TEST_CASE(one_byte_per_second_does_not_overflow) {
  const paced p = run_paced(1, 65'016, 80'000, 1'000'000s);
  BOOST_TEST(p.bytes >= 80'000u);
  BOOST_TEST(p.seconds > 60'000);
}

// --- life -------------------------------------------------------------------------------------------------------------

/// After a timer was served the next one is later: a shell that waits for it does not spin.
static void check_timers_move(lone_sender& s, duration d) {
  const time_point until = s.now + d;
  while (s.now < until) {
    s.engine.handle_timeout(s.now);
    s.drain();
    const time_point next = s.engine.next_timeout();
    BOOST_REQUIRE_MESSAGE(next > s.now, "a timer stays in the past at " << seconds(s.now.time_since_epoch()) << " s");
    if (next == never) return;
    s.now = next;
  }
}

BOOST_AUTO_TEST_CASE(a_sender_that_serves_waits_for_its_first_receiver_without_spinning) {
  sender_options o;
  o.serve = true;
  lone_sender s({test::file("f", 1)}, o);
  check_timers_move(s, 10s);
  BOOST_TEST(!s.engine.finished());
}

BOOST_AUTO_TEST_CASE(a_sender_that_lingers_beyond_its_deadline_does_not_spin) {
  sender_options o;
  o.deadline = 4s;
  o.linger = 20s;
  lone_sender s({test::file("f", 200'000)}, o);
  const join_token token = stream(s);
  s.hear(at(2), done{test::this_session, token, done_state::complete, 0, 1, 0, 200'000, 0, 0, ""});
  BOOST_TEST((s.engine.state() == session_state::lingering));
  check_timers_move(s, 10s);
}

BOOST_AUTO_TEST_CASE(a_deadline_before_anybody_joined_ends_the_session) {
  sender_options o;
  o.deadline = 1s;
  o.wait = 60s;
  lone_sender s({test::file("f", 1)}, o);
  check_timers_move(s, 5s);
  BOOST_TEST(s.engine.finished());
}

BOOST_AUTO_TEST_CASE(a_sender_without_receivers_ends_with_advice) {
  lone_sender s;
  error outcome;
  for (const auto& a : s.run(3s))
    if (const auto* f = std::get_if<sender_finished>(&a)) outcome = f->outcome;
  BOOST_TEST((outcome.code == errc::no_receiver));
  BOOST_TEST(outcome.what.find("IGMP") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(receivers_that_all_refuse_are_named_at_once) {
  sender_options o;
  o.expect = 1;
  o.wait = 60s;
  lone_sender s({test::file("f", 1000)}, o);
  const welcome w = s.join_from(at(2), 2, false);
  error outcome;
  std::vector<sender_action> seen = s.hear(at(2), done{test::this_session, w.token, done_state::failed, static_cast<std::uint8_t>(errc::refused), 0, 1, 0, 0, 0, "a folder is in the way"});
  for (auto& a : s.run(1s)) seen.push_back(std::move(a));
  for (const auto& a : seen)
    if (const auto* f = std::get_if<sender_finished>(&a)) outcome = f->outcome;
  BOOST_TEST((outcome.code == errc::incomplete));
  BOOST_TEST(outcome.what.find("a folder is in the way") != std::string::npos, outcome.what);
}

BOOST_AUTO_TEST_CASE(an_interrupted_receiver_may_come_back_before_the_start) {
  sender_options o;
  o.expect = 1;
  o.wait = 60s;
  lone_sender s({test::file("f", 1000)}, o);
  const welcome w = s.join_from(at(2), 2, false);
  s.hear(at(2), done{test::this_session, w.token, done_state::leaving, static_cast<std::uint8_t>(errc::interrupted), 0, 0, 0, 0, 0, "interrupted"});
  for (const auto& a : s.run(10s)) BOOST_REQUIRE(!std::holds_alternative<sender_finished>(a));
  s.join_from(at(2, 1001), 3);
  s.run(1s);
  BOOST_TEST((s.engine.state() != session_state::gathering));
}

BOOST_AUTO_TEST_CASE(when_the_last_receiver_is_lost_the_first_pass_ends) {
  lone_sender s({test::file("f", 50'000'000)});
  s.join_from(at(2), 2);
  s.run(3s);
  BOOST_TEST(s.engine.count().group_packets > 0u);
  const auto sent = s.engine.count().group_packets;
  s.run(10s);   // it is silent: it holds the window, then it is lost
  BOOST_TEST(s.engine.count().group_packets < sent + 1000);
  BOOST_TEST(s.engine.finished());
}

BOOST_AUTO_TEST_CASE(a_finished_sender_stays_finished) {
  lone_sender s;
  const join_token token = stream(s);
  s.engine.stop(s.now, {errc::interrupted, 0, "stopped"});
  BOOST_TEST(test::count_of<sender_finished>(s.drain()) == 1u);
  BOOST_TEST(s.engine.finished());
  BOOST_TEST((s.engine.next_timeout() == never));
  s.hear(at(3), s.a_join(3), 256);
  s.hear(at(2), nack_of(token, {{0, 5}}));
  s.engine.stop(s.now, {});
  BOOST_TEST(test::count_of<sender_finished>(s.run(1s)) == 0u);
  const auto answer = lone_sender::messages(s.hear(at(2), done{test::this_session, token, done_state::complete, 0, 1, 0, 0, 0, 0, ""}));
  BOOST_REQUIRE(answer.size() == 1u);
  BOOST_TEST(std::holds_alternative<farewell>(answer[0]));
}

BOOST_AUTO_TEST_SUITE_END()
