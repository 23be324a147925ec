// The transport without a device: what is sent is handed over once and in order, in as few runs as it came; a ring that is full makes
// the sender wait; whatever fails is an error with a cure, and leaves nothing open.
#include "transports/verbs/verbs_multicast.hpp"

#include <poll.h>

#include <array>
#include <cstring>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/support/allocations.hpp"
#include "tests/support/fake_verbs.hpp"

using namespace ddf;
using ddf::test::fake_verbs;
using call = fake_verbs::call;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(verbs_multicast)

static constexpr std::uint32_t tag = 77;

static verbs_options options(std::uint32_t slots = 64) {
  verbs_options o;
  o.local.address = {10, 0, 0, 1};
  o.group.address = {239, 77, 7, 7};
  o.group.port = 7700;
  o.send_packets = slots;
  o.buffer_bytes = slots * 1024;
  o.patience = std::chrono::milliseconds(0);
  return o;
}

static std::unique_ptr<verbs_sender> sender(fake_verbs& calls, const verbs_options& o = options()) {
  auto s = verbs_sender::open(calls, o);
  BOOST_REQUIRE_MESSAGE(s.has_value(), (s ? std::string() : describe(s.error())));
  return std::move(*s);
}
static std::unique_ptr<verbs_receiver> receiver(fake_verbs& calls, const verbs_options& o = options()) {
  auto r = verbs_receiver::open(calls, o);
  BOOST_REQUIRE_MESSAGE(r.has_value(), (r ? std::string() : describe(r.error())));
  return std::move(*r);
}

static std::byte content(std::uint64_t segment, std::size_t at) { return static_cast<std::byte>(segment * 31 + at); }

// DATA packets of segments from `first` on.
struct batch {
  batch(std::uint64_t first, std::size_t count, std::size_t payload_bytes) : headers(count), payloads(count) {
    for (std::size_t i = 0; i < count; ++i) {
      data_header h;
      h.segment = first + i;
      h.session_tag = tag;
      h.sequence = static_cast<std::uint32_t>(first + i);
      write_data_header(h, headers[i]);
      for (std::size_t k = 0; k < payload_bytes; ++k) payloads[i].push_back(content(first + i, k));
      header_pieces.push_back({headers[i].data(), headers[i].size()});
      payload_pieces.push_back({payloads[i].data(), payloads[i].size()});
    }
  }
  std::vector<std::array<std::byte, data_header::wire_size>> headers;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<iovec> header_pieces, payload_pieces;
};

struct outcome {
  std::size_t taken = 0;
  sent how = sent::failed;
  int error = 0;
};
static outcome send(verbs_sender& s, const batch& b, std::size_t from = 0) {
  outcome o;
  o.taken = s.send_batch(std::span(b.header_pieces).subspan(from), std::span(b.payload_pieces).subspan(from), o.how, &o.error);
  return o;
}

// What is taken in, checked byte by byte; once more when all of a call was handed over, as it lives until the next.
struct intake {
  std::vector<std::uint64_t> segments;
  std::size_t runs = 0, pieces = 0;

  std::size_t take(verbs_receiver& r) {
    std::vector<data_run> seen;
    const std::size_t n = r.receive([&](const datagrams& d) {
      for (std::size_t i = 0; i < d.count();) {
        const auto run = d.run_from(i);
        BOOST_REQUIRE(run.has_value());
        const auto whole = d.datagram(i);
        BOOST_TEST(whole.size() == run->packet_bytes());
        BOOST_TEST((whole.back() == run->payload(0).back()));
        seen.push_back(*run);
        i += run->count;
      }
    });
    for (const data_run& run : seen) {
      ++runs;
      run.each_piece([&](std::size_t, std::span<const std::byte>) { ++pieces; });
      for (std::uint32_t i = 0; i < run.count; ++i) {
        segments.push_back(run.head.segment + i);
        bool same = true;
        for (std::size_t k = 0; k < run.payload_bytes; ++k) same = same && run.payload(i)[k] == content(run.head.segment + i, k);
        BOOST_TEST(same);
      }
    }
    return n;
  }
  void take_all(verbs_receiver& r) {
    while (take(r) != 0) {}
  }
};

static bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

BOOST_DATA_TEST_CASE(what_is_sent_arrives_at_every_member_whatever_its_size, bdata::make({1u, 15u, 100u, 1007u, 1008u}), payload_bytes) {
  fake_verbs calls;
  const auto a = receiver(calls), b = receiver(calls);
  const auto s = sender(calls);
  const batch all(1000, 40, payload_bytes);
  BOOST_TEST((send(*s, all).how == sent::all));
  for (verbs_receiver* r : {a.get(), b.get()}) {
    intake in;
    in.take_all(*r);
    BOOST_TEST(in.segments.size() == 40u);
    BOOST_TEST(in.segments.front() == 1000u);
    BOOST_TEST(in.segments.back() == 1039u);
    BOOST_TEST(in.runs == 1u);                                      // what stands before each packet is not between the payloads
    BOOST_TEST(in.pieces == (payload_bytes == 1008 ? 1u : 40u));    // those of full packets adjoin
  }
}

BOOST_AUTO_TEST_CASE(buffers_are_used_again_and_again_in_order) {
  fake_verbs calls;
  const auto r = receiver(calls, options(32));
  const auto s = sender(calls);
  intake in;
  std::uint64_t next = 0;
  for (std::size_t round = 0; round < 500; ++round) {
    const std::size_t n = 1 + round % 32;
    BOOST_TEST((send(*s, batch(next, n, 900)).how == sent::all));
    next += n;
    in.take_all(*r);
  }
  BOOST_TEST(in.segments.size() == next);
  for (std::uint64_t i = 0; i < next; ++i) BOOST_REQUIRE(in.segments[i] == i);
  BOOST_TEST(calls.not_delivered == 0u);
}

BOOST_AUTO_TEST_CASE(packets_that_find_no_buffer_are_lost_and_those_after_them_are_not) {
  fake_verbs calls;
  const auto r = receiver(calls, options(16));
  const auto s = sender(calls);
  send(*s, batch(0, 40, 500));
  intake in;
  in.take_all(*r);
  BOOST_TEST(in.segments.size() == 16u);
  BOOST_TEST(calls.not_delivered == 24u);
  send(*s, batch(40, 16, 500));
  in.take_all(*r);
  BOOST_TEST(in.segments.size() == 32u);
  BOOST_TEST(in.segments.back() == 55u);
}

BOOST_AUTO_TEST_CASE(packets_of_other_sizes_between_equal_ones_end_a_run) {
  fake_verbs calls;
  const auto r = receiver(calls);
  const auto s = sender(calls);
  send(*s, batch(0, 5, 1008));
  send(*s, batch(5, 1, 300));
  send(*s, batch(6, 5, 1008));
  intake in;
  in.take_all(*r);
  BOOST_TEST(in.segments.size() == 11u);
  BOOST_TEST(in.runs == 3u);
}

BOOST_AUTO_TEST_CASE(a_sender_does_not_hear_itself_and_of_another_group_nobody_hears) {
  fake_verbs calls;
  auto other = options();
  other.group.address[3] = 8;
  const auto r = receiver(calls, other);
  const auto s = sender(calls);
  const auto taken = send(*s, batch(0, 10, 100));
  BOOST_TEST(taken.taken == 10u);
  intake in;
  in.take_all(*r);
  BOOST_TEST(in.segments.empty());
  BOOST_TEST(calls.not_delivered == 0u);   // no queue pair of ours was offered it
}

BOOST_AUTO_TEST_CASE(a_full_ring_makes_the_sender_wait_and_the_descriptor_tells_when_it_need_not) {
  fake_verbs calls;
  calls.holds_sends = true;
  const auto s = sender(calls, options(32));
  const batch all(0, 50, 1000);
  const auto first = send(*s, all);
  BOOST_TEST(first.taken == 32u);
  BOOST_TEST((first.how == sent::would_block));
  BOOST_TEST(!readable(s->room_fd()));
  calls.end_sends();
  BOOST_TEST(readable(s->room_fd()));
  const auto second = send(*s, all, 32);
  BOOST_TEST(second.taken == 18u);
  BOOST_TEST((second.how == sent::all));
  BOOST_TEST(s->problem() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_device_that_takes_less_than_it_said_is_waited_for_and_never_for_ever) {
  fake_verbs calls;
  const auto r = receiver(calls);
  calls.holds_sends = true;
  for (calls.sends_taken = 1; calls.sends_taken <= 20; ++calls.sends_taken) {
    const auto s = sender(calls, options(32));
    const batch all(0, 20, 100);
    std::size_t done = 0;
    for (int tries = 0; done < 20 && tries < 100; ++tries) {
      const auto o = send(*s, all, done);
      done += o.taken;
      if (o.how == sent::would_block) {
        calls.end_sends();
        BOOST_TEST(readable(s->room_fd()));
      } else if (o.how != sent::all) {
        BOOST_REQUIRE((o.how == sent::queue_full));   // the engine waits on its own clock
        calls.end_sends();
      }
    }
    BOOST_TEST((done == 20 || calls.sends_taken < 20));
    BOOST_TEST(s->problem() == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_found_nothing_is_told_of_the_next_packet) {
  fake_verbs calls;
  const auto r = receiver(calls);
  const auto s = sender(calls);
  intake in;
  for (std::uint64_t i = 0; i < 100; ++i) {
    in.take_all(*r);
    BOOST_TEST(!readable(r->fd()));
    send(*s, batch(i, 1, 100));
    BOOST_TEST(readable(r->fd()));
  }
  in.take_all(*r);
  BOOST_TEST(in.segments.size() == 100u);
}

BOOST_AUTO_TEST_CASE(a_packet_larger_than_the_port_takes_is_not_sent) {
  fake_verbs calls;
  const auto s = sender(calls);
  const auto o = send(*s, batch(0, 1, 1009));
  BOOST_TEST(o.taken == 0u);
  BOOST_TEST((o.how == sent::failed));
  BOOST_TEST(o.error == EMSGSIZE);
  BOOST_TEST((send(*s, batch(0, 1, 1008)).how == sent::all));
}

BOOST_AUTO_TEST_CASE(a_send_that_ended_badly_ends_the_lane_with_a_cause) {
  fake_verbs calls;
  const auto s = sender(calls, options(32));
  calls.send_status = 5;
  send(*s, batch(0, 32, 100));
  const auto o = send(*s, batch(32, 1, 100));
  BOOST_TEST((o.how == sent::failed));
  BOOST_TEST(o.error == ENODEV);
  BOOST_REQUIRE(s->problem() != nullptr);
  BOOST_TEST(s->problem()->what.find("flushed") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_receive_that_ended_badly_ends_the_lane_with_a_cause) {
  fake_verbs calls;
  const auto r = receiver(calls);
  const auto s = sender(calls);
  send(*s, batch(0, 3, 100));
  calls.receive_status = 5;
  send(*s, batch(3, 3, 100));
  intake in;
  in.take_all(*r);
  BOOST_TEST(in.segments.size() == 3u);   // those before it are whole
  BOOST_REQUIRE(r->look() != nullptr);
  BOOST_TEST(r->look()->what.find("flushed") != std::string::npos);
  BOOST_TEST(in.take(*r) == 0u);
}

BOOST_AUTO_TEST_CASE(a_group_or_device_that_went_away_is_seen_while_nothing_is_sent) {
  fake_verbs calls;
  const auto r = receiver(calls);
  const auto s = sender(calls);
  s->look();
  BOOST_TEST((s->problem() == nullptr && r->look() == nullptr));
  calls.tell({verbs_event::kind::ended, 0, {}});
  s->look();
  BOOST_TEST((s->problem() != nullptr && r->look() != nullptr));
  BOOST_TEST((send(*s, batch(0, 1, 100)).how == sent::failed));
}

BOOST_AUTO_TEST_CASE(the_joins_address_is_used_with_what_was_asked_for) {
  fake_verbs calls;
  auto o = options();
  sender(calls, o);
  BOOST_TEST(calls.addressed.back().hop_limit == 1);
  BOOST_TEST(calls.addressed.back().traffic_class == 0);
  o.ttl = 5;
  o.traffic_class = 104;
  o.service_level = 3;
  sender(calls, o);
  BOOST_TEST(calls.addressed.back().queue_pair == 0xffffffu);
  BOOST_TEST(calls.addressed.back().hop_limit == 5);
  BOOST_TEST(calls.addressed.back().traffic_class == 104);
  BOOST_TEST(calls.addressed.back().service_level == 3);
  BOOST_TEST(calls.open_handles == 0u);
}

BOOST_AUTO_TEST_CASE(rings_are_as_large_as_the_device_allows) {
  fake_verbs calls;
  calls.device_is.requests_max = 100;
  BOOST_TEST(receiver(calls, options(1000))->slots() == 100u);
  calls.device_is.completions_max = 51;
  BOOST_TEST(receiver(calls, options(1000))->slots() == 50u);
}

BOOST_AUTO_TEST_CASE(a_device_that_the_selector_rules_out_or_whose_port_is_down_is_refused_by_name) {
  fake_verbs calls;
  auto o = options();
  o.devices = *device_selector::parse("^fake0");
  const auto refused = verbs_sender::open(calls, o);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().what.find("10.0.0.1 is an address of fake0:1") != std::string::npos);
  calls.device_is.active = false;
  const auto down = verbs_receiver::open(calls, options());
  BOOST_REQUIRE(!down);
  BOOST_TEST(down.error().what.find("fake0:1 is not active") != std::string::npos);
  BOOST_TEST(calls.open_handles == 0u);
}

BOOST_AUTO_TEST_CASE(a_fabric_that_refuses_or_does_not_answer_is_an_error) {
  fake_verbs calls;
  calls.join_status = EINVAL;
  const auto refused = verbs_sender::open(calls, options());
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().what.find("subnet manager refuses") != std::string::npos);
  calls.resolve_status = ENODEV;
  BOOST_TEST((verbs_sender::open(calls, options()).error().code == errc::unsupported));
  calls.silent = true;
  BOOST_TEST(verbs_sender::open(calls, options()).error().os == ETIMEDOUT);
  BOOST_TEST(calls.open_handles == 0u);
}

BOOST_AUTO_TEST_CASE(whatever_fails_while_it_opens_is_an_error_and_nothing_stays_open) {
  for (const bool sends : {true, false}) {
    int nth = 0;
    for (;; ++nth) {
      fake_verbs calls;
      calls.fails_after = nth;
      const auto made = sends ? verbs_sender::open(calls, options()).map([](const auto&) {}) : verbs_receiver::open(calls, options()).map([](const auto&) {});
      BOOST_TEST(calls.open_handles == 0u);
      if (calls.fails_after >= 0) {   // nothing has failed any more
        BOOST_TEST(made.has_value());
        break;
      }
      BOOST_REQUIRE(!made.has_value());
      BOOST_TEST((made.error().code != errc::ok && !made.error().what.empty()));
    }
    BOOST_TEST(nth >= 14);
  }
}

BOOST_DATA_TEST_CASE(whatever_fails_while_it_runs_loses_packets_at_most, bdata::make({EIO, ENOMEM}), code) {
  const std::set<call> kinds{call::send, call::receive, call::poll, call::arm};
  for (int nth = 0; nth < 60; ++nth) {
    fake_verbs calls;
    {
      const auto r = receiver(calls, options(32));
      const auto s = sender(calls, options(32));
      calls.failing = kinds;
      calls.fails_with = code;
      calls.fails_after = nth;
      intake in;
      for (std::uint64_t i = 0; i < 20; ++i) {
        (void)send(*s, batch(10 * i, 10, 700));
        in.take_all(*r);
      }
      BOOST_TEST(std::ranges::is_sorted(in.segments));
      BOOST_TEST((in.segments.size() == 200 || s->problem() != nullptr || r->look() != nullptr || code == ENOMEM));
      if (calls.fails_after >= 0) BOOST_TEST(in.segments.size() == 200u);
    }
    BOOST_TEST(calls.open_handles == 0u);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_for_a_packet) {
  fake_verbs calls;
  const auto r = receiver(calls);
  const auto s = sender(calls);
  const batch all(0, 40, 1000);
  outcome o;
  std::size_t packets = 0;
  const std::function<void(const datagrams&)> handler = [&](const datagrams& d) { packets += d.run_from(0)->count; };
  const std::size_t before = test::bytes_allocated(), of_the_fake = calls.allocated;
  for (int round = 0; round < 10; ++round) {
    o.taken = s->send_batch(all.header_pieces, all.payload_pieces, o.how, &o.error);
    while (r->receive(handler) != 0) {}
  }
  BOOST_TEST(test::bytes_allocated() - before == calls.allocated - of_the_fake);
  BOOST_TEST(packets == 400u);
}

BOOST_AUTO_TEST_SUITE_END()
