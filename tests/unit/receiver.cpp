#include "lib/session/receiver.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/wire/cursor.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/messages.hpp"

using namespace ddf;
using namespace std::chrono_literals;
using test::at;
using test::lone_receiver;

BOOST_AUTO_TEST_SUITE(receiver_)

/// An object's bytes and its digest table, cut into the segments of its layout.
struct source {
  catalogue c;
  std::vector<std::byte> bytes, table;
  layout l;

  explicit source(std::uint64_t size) : c{test::file("f", size)}, bytes(size), l(c, 1456) {
    prng rng(3);
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next() & 0xff);
    std::vector<digest> rows;
    for (std::uint64_t b = 0; b < c[0].blocks(); ++b) {
      const block_extent e = l.block(b);
      rows.push_back(block_digest(std::span(bytes).subspan(e.offset, e.bytes)));
    }
    writer w(table);
    w.bytes(root_digest("f", size, rows).bytes);
    for (const digest& d : rows) w.bytes(d.bytes);
  }
  std::span<const std::byte> segment(std::uint64_t s) const {
    const segment_extent e = l.segment(s);
    return std::span(e.table ? table : bytes).subspan(e.offset, e.bytes);
  }
};

template <class Action>
static std::vector<Action> all(const std::vector<receiver_action>& actions) {
  std::vector<Action> out;
  for (const auto& a : actions)
    if (const auto* x = std::get_if<Action>(&a)) out.push_back(*x);
  return out;
}

static std::vector<range> asked(const std::vector<receiver_action>& actions) {
  std::vector<range> out;
  for (const auto& s : all<send_message>(actions)) {
    const auto m = parse_message(s.datagram);
    if (const auto* n = m ? std::get_if<nack>(&*m) : nullptr) out.insert(out.end(), n->ranges.begin(), n->ranges.end());
  }
  return out;
}

BOOST_AUTO_TEST_CASE(what_limits_the_window_is_the_buffer_that_the_group_fills) {
  for (const std::uint32_t of_the_group : {0u, 16u << 20}) {
    receiver_options o;
    o.buffer_bytes = 425'984;
    o.group_buffer_bytes = of_the_group;
    const source f(200'000);
    lone_receiver r(o);
    std::vector<std::uint32_t> told;
    auto done = r.hear(lone_receiver::an_announce(f.c));
    const auto opened = r.run(100ms);
    done.insert(done.end(), opened.begin(), opened.end());
    for (const auto& s : all<send_message>(done)) {
      const auto m = parse_message(s.datagram);
      if (const auto* j = m ? std::get_if<join>(&*m) : nullptr) told.push_back(j->buffer_bytes);
    }
    BOOST_REQUIRE(!told.empty());
    BOOST_TEST(told.front() == (of_the_group != 0 ? of_the_group : 425'984u));
  }
}

BOOST_AUTO_TEST_CASE(an_object_that_arrives_whole_is_committed_once) {
  const source f(200'000);
  lone_receiver r;
  r.join(f.c);
  std::vector<receiver_action> seen;
  for (std::uint64_t s = 0; s < f.l.segments(); ++s)
    for (auto& a : r.data(s, f.segment(s))) seen.push_back(std::move(a));
  BOOST_TEST(all<place_segments>(seen).size() == f.l.object(0).table_segment);
  BOOST_TEST(all<commit_object>(seen).size() == 1u);
  r.engine.handle_committed(r.now, 0, {});
  r.drain();
  BOOST_TEST(r.engine.count().bytes_verified == 200'000u);
  const auto end = r.hear(farewell{test::this_session, receiver_id{7}}, false);
  BOOST_REQUIRE(all<receiver_finished>(end).size() == 1u);
  BOOST_TEST((all<receiver_finished>(end)[0].outcome.code == errc::ok));
}

BOOST_AUTO_TEST_CASE(foreign_sessions_and_noise_are_counted_and_ignored) {
  const source f(5000);
  lone_receiver r;
  auto a = lone_receiver::an_announce(f.c);
  a.session = session_id{1};
  BOOST_TEST(r.hear(a).empty());
  BOOST_TEST(r.hear(close_session{test::this_session, 0, ""}, true, at(9)).empty());   // our session from a stranger
  BOOST_TEST(!r.engine.finished());
  r.engine.handle_datagram(r.now, at(1), true, {});
  r.engine.handle_datagram(r.now, at(1), true, std::vector<std::byte>(100, std::byte{0xff}));
  r.engine.handle_datagram(r.now, at(1), true, std::vector<std::byte>(100, std::byte{0x10}));   // DATA of another session
  r.hear(test::a_nack(test::this_session, join_token{1}, {{0, 1}}));
  const auto& d = r.engine.count().dropped;
  BOOST_TEST(d.at("other_session") == 2u);
  BOOST_TEST(d.at("other_rail") == 1u);
  BOOST_TEST(d.at("malformed") == 2u);
  BOOST_TEST(d.at("unexpected") == 1u);
  BOOST_TEST(r.engine.objects().empty());
}

BOOST_AUTO_TEST_CASE(data_that_does_not_fit_the_layout_is_dropped) {
  const source f(5000);
  lone_receiver r;
  r.data(0, f.segment(0));
  BOOST_TEST(r.engine.count().dropped.at("before_catalogue") == 1u);
  r.join(f.c);
  BOOST_TEST(all<place_segments>(r.data(f.l.segments(), f.segment(0))).empty());
  BOOST_TEST(all<place_segments>(r.data((std::uint64_t(1) << 48) - 1, f.segment(0))).empty());
  BOOST_TEST(all<place_segments>(r.data(0, f.segment(0).first(1455))).empty());
  BOOST_TEST(all<place_segments>(r.data(f.l.segments() - 1, f.segment(0))).empty());
  BOOST_TEST(r.engine.count().dropped.at("inconsistent") == 4u);
  BOOST_TEST(all<place_segments>(r.data(0, f.segment(0), data_header::authenticated)).empty());
}

BOOST_AUTO_TEST_CASE(a_session_larger_than_the_room_is_refused_before_memory_is_taken) {
  receiver_options o;
  o.bytes_max = 1 << 30;
  lone_receiver r(o);
  const auto a = write_message(lone_receiver::an_announce({test::file("f", limits::blocks * limits::block_bytes_max, limits::block_bytes_max)}, session_state::gathering));
  const std::size_t before = test::bytes_allocated();
  r.engine.handle_datagram(r.now, at(1), true, a);
  const auto actions = r.drain();
  BOOST_TEST(test::bytes_allocated() - before < 100'000u);
  BOOST_TEST(all<open_object>(actions).empty());
  r.hear(welcome{test::this_session, receiver_id{7}, join_token{99}, false, false, refusal::none, 1}, false);
  error outcome;
  for (const auto& x : all<receiver_finished>(r.run(30s))) outcome = x.outcome;
  BOOST_TEST((outcome.code == errc::too_large));
  BOOST_TEST(outcome.what.find("free space") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_catalogue_that_breaks_a_rule_ends_the_session_with_its_reason) {
  lone_receiver r;
  catalogue c{test::file("f", 1)};
  c[0].name = "../../x";
  const auto end = all<receiver_finished>(r.hear(lone_receiver::an_announce(c)));
  BOOST_REQUIRE(end.size() == 1u);
  BOOST_TEST((end[0].outcome.code == errc::refused));
  BOOST_TEST(end[0].outcome.what.find("'.' or '..'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_catalogue_whose_digest_is_wrong_is_not_taken) {
  lone_receiver r;
  auto a = lone_receiver::an_announce({test::file("f", 1)});
  a.catalogue_digest.bytes[0] ^= std::byte{1};
  BOOST_TEST(all<open_object>(r.hear(a)).empty());
  BOOST_TEST(r.engine.count().dropped.at("bad_catalogue") == 1u);
}

BOOST_AUTO_TEST_CASE(a_gap_is_asked_for_and_all_gaps_in_one_round) {
  const source f(400'000);
  lone_receiver r;
  r.join(f.c);
  std::vector<range> missing;
  for (std::uint64_t s = 0; s < f.l.segments(); ++s) {
    if (s % 10 == 3) missing.push_back({s, s + 1});
    else r.data(s, f.segment(s));
  }
  auto a = lone_receiver::an_announce(f.c, session_state::flushing);
  a.bulk_segment = a.segments;
  r.hear(a);
  const auto first_round = asked(r.run(4ms));
  BOOST_TEST(first_round.size() + 1 >= missing.size());   // the last gap may still be mere reordering
  for (const range& x : asked(r.run(20ms))) BOOST_TEST((std::ranges::find(missing, x) != missing.end()));
}

BOOST_AUTO_TEST_CASE(loss_of_the_very_last_segments_is_asked_for) {
  const source f(50'000);
  lone_receiver r;
  r.join(f.c);
  for (std::uint64_t s = 0; s + 2 < f.l.segments(); ++s) r.data(s, f.segment(s));
  auto a = lone_receiver::an_announce(f.c, session_state::flushing);
  a.bulk_segment = a.segments;
  r.hear(a);
  BOOST_TEST((asked(r.run(20ms)) == std::vector<range>{{f.l.segments() - 2, f.l.segments()}}));
}

BOOST_AUTO_TEST_CASE(a_bad_block_is_asked_for_again) {
  const source f(200'000);
  lone_receiver r;
  r.join(f.c);
  std::vector<std::byte> wrong(f.segment(50).begin(), f.segment(50).end());
  wrong[7] ^= std::byte{1};
  for (std::uint64_t s = 0; s < f.l.segments(); ++s) r.data(s, s == 50 ? std::span<const std::byte>(wrong) : f.segment(s));
  BOOST_TEST(r.engine.count().bad_blocks == 1u);
  const block_extent e = f.l.block(f.l.block_of_segment(50));
  const auto ranges = asked(r.run(50ms));
  BOOST_REQUIRE(!ranges.empty());
  BOOST_TEST(ranges[0].first == e.first_segment);
  for (const range& x : ranges) BOOST_TEST(x.last <= e.last_segment);
}

// A hostile or broken sender: every block of the object fails, more often than is borne. The object fails; nothing else does.
BOOST_AUTO_TEST_CASE(blocks_that_keep_failing_fail_the_object_and_nothing_more) {
  const source f(20 * 65536);
  lone_receiver r;
  r.join(f.c);
  const std::uint64_t table = f.l.object(0).table_segment;
  const std::vector<std::byte> noise(1456, std::byte{0x5a});
  const std::uint64_t bad_enough = 16 + f.l.blocks();
  std::vector<receiver_action> seen;
  const auto data = [&](std::uint64_t s, std::span<const std::byte> payload) {
    for (auto& a : r.data(s, payload)) seen.push_back(std::move(a));
  };
  // Bad tables first, until one more bad block is too much but for all of the object's at once.
  for (std::uint64_t i = 0; i + 5 < bad_enough; ++i) data(table, std::span(noise).first(f.segment(table).size()));
  for (std::uint64_t s = 0; s < table; ++s) data(s, std::span(noise).first(f.segment(s).size()));
  data(table, f.segment(table));
  BOOST_TEST(r.engine.reports()[0].problem.what.find("keep failing") != std::string::npos);
  for (std::uint64_t s = 0; s < f.l.segments(); ++s) r.data(s, f.segment(s));   // and what comes later is not wanted
  BOOST_TEST(!r.engine.finished());
  BOOST_TEST(all<receiver_finished>(r.hear(farewell{test::this_session, receiver_id{7}}, false)).size() == 1u);
}

// --- resume -----------------------------------------------------------------------------------------------------------

static opened_object resumable(std::uint64_t first, std::uint64_t last) {
  opened_object o;
  o.resumable.insert(first, last);
  return o;
}

BOOST_AUTO_TEST_CASE(blocks_of_an_earlier_transfer_count_when_they_are_proven) {
  const source f(5 * 65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 3));
  const std::uint64_t table = f.l.object(0).table_segment;
  const auto checks = all<digest_block>(r.data(table, f.segment(table), data_header::repair, false));
  BOOST_REQUIRE(checks.size() == 3u);
  for (const auto& d : checks) {
    const block_extent e = f.l.block(d.block);
    r.engine.handle_block_digest(r.now, d.block, block_digest(std::span(f.bytes).subspan(e.offset, e.bytes)));
  }
  BOOST_TEST(r.engine.count().resumed_bytes == 3 * 65536u);
  auto a = lone_receiver::an_announce(f.c, session_state::flushing);
  a.bulk_segment = a.segments;
  r.hear(a);
  const auto missing = asked(r.run(50ms));
  BOOST_REQUIRE(!missing.empty());
  BOOST_TEST(missing[0].first == f.l.block(3).first_segment);
}

BOOST_AUTO_TEST_CASE(a_block_of_an_earlier_transfer_that_cannot_be_read_is_fetched) {
  const source f(3 * 65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 1));
  const std::uint64_t table = f.l.object(0).table_segment;
  const auto checks = all<digest_block>(r.data(table, f.segment(table), data_header::repair, false));
  BOOST_REQUIRE(checks.size() == 1u);
  r.engine.handle_block_digest(r.now, checks[0].block, fail(errc::io, "cannot read", 5));
  auto a = lone_receiver::an_announce(f.c, session_state::flushing);
  a.bulk_segment = a.segments;
  r.hear(a);
  const auto missing = asked(r.run(50ms));
  BOOST_REQUIRE(!missing.empty());
  BOOST_TEST(missing[0].first == 0u);
}

BOOST_AUTO_TEST_CASE(a_block_that_arrives_while_its_earlier_copy_is_checked_does_not_stop_the_rest) {
  const source f(3 * 65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 1));
  const std::uint64_t table = f.l.object(0).table_segment;
  BOOST_REQUIRE(all<digest_block>(r.data(table, f.segment(table), data_header::repair, false)).size() == 1u);
  for (std::uint64_t s = 0; s < f.l.block(0).last_segment; ++s) r.data(s, f.segment(s));
  r.engine.handle_block_digest(r.now, 0, digest{});   // of what lay there before
  for (const auto& d : all<digest_block>(r.drain())) r.engine.handle_block_digest(r.now, d.block, block_digest(std::span(f.bytes).first(65536)));
  BOOST_TEST(r.engine.count().bytes_verified == 65536u);
  auto a = lone_receiver::an_announce(f.c, session_state::flushing);
  a.bulk_segment = a.segments;
  r.hear(a);
  const auto missing = asked(r.run(50ms));
  BOOST_REQUIRE(!missing.empty());
  BOOST_TEST(missing[0].first == f.l.block(1).first_segment);
}

// The earlier copy is read; then a segment that was damaged on the way is written over it; then comes the answer, which is out of date.
BOOST_AUTO_TEST_CASE(a_block_that_was_written_to_while_its_earlier_copy_was_read_is_not_proven) {
  const source f(65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 1));
  const std::uint64_t table = f.l.object(0).table_segment;
  BOOST_REQUIRE(all<digest_block>(r.data(table, f.segment(table), data_header::repair, false)).size() == 1u);
  std::vector<std::byte> damaged(f.segment(3).begin(), f.segment(3).end());
  damaged[5] ^= std::byte{1};
  r.data(3, damaged, data_header::repair, false);
  r.engine.handle_block_digest(r.now, 0, block_digest(f.bytes));
  BOOST_TEST(all<commit_object>(r.drain()).empty());
  BOOST_TEST(r.engine.count().bytes_verified == 0u);
}

BOOST_AUTO_TEST_CASE(two_reads_of_one_block_are_never_awaited_at_once) {
  const source f(65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 1));
  const std::uint64_t table = f.l.object(0).table_segment;
  BOOST_REQUIRE(all<digest_block>(r.data(table, f.segment(table), data_header::repair, false)).size() == 1u);
  for (std::uint64_t s = table; s-- != 0;) BOOST_TEST(all<digest_block>(r.data(s, f.segment(s), data_header::repair, false)).empty());
  r.engine.handle_block_digest(r.now, 0, digest{});
  BOOST_TEST(all<digest_block>(r.drain()).size() == 1u);
  r.engine.handle_block_digest(r.now, 0, block_digest(f.bytes));
  BOOST_TEST(all<commit_object>(r.drain()).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_block_that_came_out_of_order_before_the_digest_table_counts) {
  const source f(3 * 65536);
  lone_receiver r;
  r.join(f.c, resumable(0, 1));
  std::vector<receiver_action> seen;
  for (std::uint64_t s = f.l.block(0).last_segment; s-- != 0;)
    for (auto& a : r.data(s, f.segment(s))) seen.push_back(std::move(a));
  for (const auto& d : all<digest_block>(seen)) r.engine.handle_block_digest(r.now, d.block, block_digest(std::span(f.bytes).first(65536)));
  const std::uint64_t table = f.l.object(0).table_segment;
  BOOST_TEST(all<digest_block>(r.data(table, f.segment(table), data_header::repair, false)).empty());
  BOOST_TEST(r.engine.count().bytes_verified == 65536u);
}

BOOST_AUTO_TEST_CASE(an_absurd_resume_record_costs_nothing) {
  const source f(3 * 65536);
  lone_receiver r;
  r.join(f.c, resumable(1, ~std::uint64_t(0)));
  const std::uint64_t table = f.l.object(0).table_segment;
  BOOST_TEST(all<digest_block>(r.data(table, f.segment(table), data_header::repair, false)).size() == 2u);
}

// --- bounds and life --------------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(repair_notices_are_remembered_within_a_bound) {
  const source f(60'000'000);
  lone_receiver r;
  r.join(f.c);
  for (std::uint64_t s = 0; s < f.l.object(0).table_segment; s += 2) r.data(s, f.segment(s));   // a gap after every segment
  const std::size_t before = test::bytes_allocated();
  const auto notice = write_message(repair_notice{test::this_session, {{0, f.l.segments()}}});
  for (int i = 0; i < 200; ++i) r.engine.handle_datagram(r.now, at(1), true, notice);
  BOOST_TEST(test::bytes_allocated() - before < 16u << 20);
}

static void check_timers_move(lone_receiver& r, duration d) {
  const time_point until = r.now + d;
  while (r.now < until) {
    r.engine.handle_timeout(r.now);
    r.drain();
    const time_point next = r.engine.next_timeout();
    BOOST_REQUIRE_MESSAGE(next > r.now, "a timer stays in the past at " << seconds(r.now.time_since_epoch()) << " s");
    if (next == never) return;
    r.now = next;
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_leaves_does_not_spin) {
  const source f(200'000);
  lone_receiver r;
  r.join(f.c);
  r.run(350ms);   // its next STATUS is due soon
  r.engine.stop(r.now, {errc::interrupted, 0, "stopped"});
  check_timers_move(r, 10s);
  BOOST_TEST(r.engine.finished());
}

BOOST_AUTO_TEST_CASE(a_receiver_that_refuses_a_session_tells_the_sender_more_than_once_and_ends) {
  receiver_options o;
  o.bytes_max = 10;
  lone_receiver r(o);
  r.hear(lone_receiver::an_announce({test::file("f", 100)}));
  const time_point told = r.now;
  r.hear(welcome{test::this_session, receiver_id{7}, join_token{99}, false, false, refusal::none, 1}, false);
  check_timers_move(r, 10s);
  BOOST_TEST(r.engine.finished());
  BOOST_TEST((r.now - told > 20ms));   // it waits for an answer in between
}

BOOST_AUTO_TEST_CASE(a_receiver_whose_sender_is_silent_ends_with_an_error) {
  const source f(200'000);
  lone_receiver r;
  r.join(f.c);
  error outcome;
  for (const auto& x : all<receiver_finished>(r.run(12s))) outcome = x.outcome;
  BOOST_TEST((outcome.code == errc::sender_lost));
}

BOOST_AUTO_TEST_CASE(a_finished_receiver_stays_finished) {
  const source f(200'000);
  lone_receiver r;
  r.join(f.c);
  r.hear(close_session{test::this_session, 0, "bye"});
  BOOST_TEST(r.engine.finished());
  BOOST_TEST((r.engine.next_timeout() == never));
  r.data(0, f.segment(0));
  r.engine.handle_block_digest(r.now, 0, digest{});
  r.engine.handle_committed(r.now, 0, {});
  r.engine.handle_store_error(r.now, 0, {errc::io, 5, "late"});
  r.engine.stop(r.now, {});
  BOOST_TEST(test::count_of<receiver_finished>(r.run(20s)) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
