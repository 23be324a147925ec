// One of every message, and random ones.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>
#include "codecs/digest.hpp"
#include "lib/model/prng.hpp"
#include "lib/wire/messages.hpp"

namespace ddf::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto b = std::as_bytes(std::span(text.data(), text.size()));
  return {b.begin(), b.end()};
}

/// By names, so that a field more changes nothing here.
inline nack a_nack(session_id session, join_token token, std::vector<range> ranges, nack_space space = nack_space::segments, bool unicast = false) {
  nack n;
  n.session = session, n.token = token, n.space = space, n.unicast = unicast, n.ranges = std::move(ranges);
  return n;
}

/// Every kind of message with every field set to something of its own; the names are those of the golden files.
inline std::vector<std::pair<std::string, message>> samples() {
  const session_id session{0x0123456789abcdef};
  const receiver_id receiver{0xfedcba9876543210};
  const join_token token{0x1122334455667789};
  const auto content = bytes_of("a catalogue"), plan = bytes_of("the plan");
  announce a{session, session_state::streaming, true, true, true, true, 5, 1456, 42, 123456789, 0x100000007, 1000, 2000, 2'900'000, 3, 250, 321,
             static_cast<std::uint32_t>(content.size()), digest_of(content), static_cast<std::uint32_t>(plan.size()), digest_of(plan), content, plan, {{lane_set::all}, 0xabcdef}};
  announce gathering{session, session_state::gathering, false, false, false, false, 31, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1000, limits::catalogue_bytes, digest_of(content), 0, {}, {}, {}, {}};
  catalogue_chunk chunk{session, false, 2000, 1100, std::vector<std::byte>(900, std::byte{0xcc})};
  nack n = a_nack(session, token, {{0, 1}, {5, 9}, {9, 10}, {(std::uint64_t(1) << 48) - 1, std::uint64_t(1) << 48}}, nack_space::segments, true);
  n.sequence = 0x1'0000'0003, n.received = 99;
  const nack c = a_nack(session, token, {{2, 0x1'0000'0002}}, nack_space::catalogue_chunks);
  const nack p = a_nack(session, token, {{0, 3}}, nack_space::plan_chunks);
  join holding{session, receiver, true, false, false, 1, 7, 8, 212'992, 1472, "host-2", {{0, version_id{41}, digest_of(content), true}, {3, version_id{7}, digest_of(plan), false}}, {{1 << static_cast<int>(repair_lane::tcp)}, 5}};
  return {{"announce", a},
          {"announce_gathering", gathering},
          {"catalogue_chunk", chunk},
          {"query", query{receiver}},
          {"join", join{session, receiver, true, true, true, 0x80000001, 77, 88, 212'992, 1472, "host-1", {}, {}}},
          {"join_holding", holding},
          {"plan_chunk", catalogue_chunk{session, true, 1101, 1100, {std::byte{7}}}},
          {"nack_plan", p},
          {"welcome", welcome{session, receiver, token, true, false, refusal::none, 321}},
          {"welcome_refused", welcome{session, receiver, join_token{0}, false, true, refusal::not_multicast, 0}},
          {"status", status{session, token, 0x1'0000'0007, 12345, 678, true}},
          {"nack", n},
          {"nack_catalogue", c},
          {"done", done{session, token, done_state::failed, 9, 1, 2, 3, 4, 5, "blocks keep failing"}},
          {"farewell", farewell{session, receiver}},
          {"repair_notice", repair_notice{session, {{3, 4}, {4, 100}}}},
          {"commit", commit_group{session}},
          {"grant", grant{session, receiver, 42, repair_lane::verbs, bytes_of("10.0.0.1:5"), 0x7f0000001000, 0xfeedfacecafe, {{3, 7}, {9, 1000}}}},
          {"release", release{session, token, false, {1, 42}, {}}},
          {"release_failed", release{session, token, true, {7}, "no device"}},
          {"close", close_session{session, 10, "the source changed"}}};
}

inline std::string random_text(prng& rng, std::size_t most) {
  std::string s(rng.next() % (most + 1), ' ');
  for (char& c : s) c = static_cast<char>(rng.next() & 0xff);
  return s;
}

inline std::vector<range> random_ranges(prng& rng) {
  std::vector<range> out(1 + rng.next() % nack_ranges_max);
  std::uint64_t at = 0;
  for (range& r : out) {
    r.first = at + rng.next() % 50 * (rng.next() % 2);
    r.last = r.first + 1 + (rng.next() % 8 == 0 ? rng.next() % 0xffff'ffff : rng.next() % 20);
    at = r.last;
  }
  return out;
}

inline lane_offer random_offer(prng& rng) { return {{static_cast<std::uint8_t>(rng.next() & lane_set::all)}, rng.next()}; }

/// A message that keeps every rule, of a kind chosen by `kind` modulo 14.
inline message random_message(prng& rng, std::size_t kind) {
  const session_id session{rng.next()};
  const receiver_id receiver{rng.next()};
  const join_token token{rng.next()};
  const auto u32 = [&] { return static_cast<std::uint32_t>(rng.next()); };
  const auto u16 = [&] { return static_cast<std::uint16_t>(rng.next()); };
  const auto u8 = [&] { return static_cast<std::uint8_t>(rng.next()); };
  const auto flag = [&] { return rng.next() % 2 == 0; };
  switch (kind % 14) {
    case 0: {
      announce m;
      m.session = session, m.state = static_cast<session_state>(rng.next() % 4), m.unicast = flag(), m.no_multicast = flag(), m.plans = flag(), m.group_commit = flag();
      m.rail = u8() & 31;
      m.segment_bytes = static_cast<std::uint16_t>(m.state == session_state::gathering && flag() ? 0 : 512 + rng.next() % (65000 - 511));
      m.counter = u32(), m.clock_us = u32(), m.group_size = u32(), m.grtt_us = u32();
      m.sequence = rng.next(), m.bytes = rng.next();
      m.segments = rng.next() >> 16;
      m.bulk_segment = m.segments == 0 ? 0 : rng.next() % (m.segments + 1);
      m.objects = 1 + u16();
      if (flag()) m.catalogue = bytes_of(random_text(rng, 599) + "x");
      if (flag()) m.plan = bytes_of(random_text(rng, 399) + "x");
      m.plan_bytes = m.plan.empty() ? u32() % limits::plan_bytes : static_cast<std::uint32_t>(m.plan.size());
      m.plan_digest = digest_of(m.plan);
      m.catalogue_bytes = m.catalogue.empty() ? 1 + u32() % limits::catalogue_bytes : static_cast<std::uint32_t>(m.catalogue.size());
      m.catalogue_digest = digest_of(m.catalogue);
      m.reads = random_offer(rng);
      return m;
    }
    case 1: {
      catalogue_chunk m;
      m.session = session;
      m.plan = flag();
      m.total = 1 + u32() % (m.plan ? limits::plan_bytes : limits::catalogue_bytes);
      m.offset = static_cast<std::uint32_t>(rng.next() % ((m.total + catalogue_chunk_bytes - 1) / catalogue_chunk_bytes) * catalogue_chunk_bytes);
      m.bytes.resize(std::min<std::size_t>(catalogue_chunk_bytes, m.total - m.offset), static_cast<std::byte>(u8()));
      return m;
    }
    case 2: return query{receiver};
    case 3: {
      join m{session, receiver, flag(), flag(), flag(), u32(), u32(), u32(), u32(), u16(), random_text(rng, host_bytes_max), {}, random_offer(rng)};
      m.held.resize(rng.next() % (held_versions_max + 1));
      for (held_version& h : m.held) h = {static_cast<std::uint32_t>(rng.next() % limits::objects), version_id{rng.next()}, digest_of(bytes_of(random_text(rng, 8))), flag()};
      return m;
    }
    case 4: return welcome{session, receiver, token, flag(), flag(), static_cast<refusal>(rng.next() % 5), u32()};
    case 5: return status{session, token, rng.next(), rng.next(), rng.next(), flag()};
    case 6: {
      nack m = a_nack(session, token, random_ranges(rng), static_cast<nack_space>(rng.next() % 3), flag());
      m.sequence = rng.next(), m.received = rng.next();
      return m;
    }
    case 7: return done{session, token, static_cast<done_state>(rng.next() % 4), u8(), u32(), u32(), rng.next(), rng.next(), rng.next(), random_text(rng, reason_bytes_max)};
    case 8: return farewell{session, receiver};
    case 9: return repair_notice{session, random_ranges(rng)};
    case 10: return commit_group{session};
    case 11: {
      grant m{session, receiver, rng.next() | 1, static_cast<repair_lane>(2 + rng.next() % 3), bytes_of(random_text(rng, fabric_address_bytes_max - 1) + "x"), rng.next(), rng.next(), random_ranges(rng)};
      if (m.segments.size() > grant_ranges_max) m.segments.resize(grant_ranges_max);
      return m;
    }
    case 12: {
      release m{session, token, flag(), {}, random_text(rng, reason_bytes_max)};
      m.ids.resize(1 + rng.next() % released_max);
      for (std::uint64_t& id : m.ids) id = rng.next();
      return m;
    }
    default: return close_session{session, u8(), random_text(rng, reason_bytes_max)};
  }
}

}  // namespace ddf::test
