// A sender or a receiver engine alone, with a clock that the test turns.
#pragma once
#include <cstdio>
#include <string>
#include <utility>
#include <vector>
#include "lib/model/assert.hpp"
#include "lib/session/receiver.hpp"
#include "lib/session/sender.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "tests/support/catalogues.hpp"

namespace ddf::test {

using namespace std::chrono_literals;

inline constexpr session_id this_session{0x1234567890abcdef};

inline path at(std::uint8_t host, std::uint16_t port = 1000) {
  path p;
  p.peer.address = {10, 0, 0, host};
  p.peer.port = port;
  return p;
}

class lone_sender {
 public:
  explicit lone_sender(catalogue c = {file("f", 200'000)}, sender_options o = {}) : options_(prepare(std::move(c), std::move(o))), engine(options_, rng_, now) {}

  std::vector<sender_action> drain() {
    std::vector<sender_action> out;
    while (auto a = engine.poll_action(now)) {
      DDF_ASSERT(out.size() < 1'000'000);
      out.push_back(std::move(*a));
    }
    return out;
  }
  std::vector<sender_action> hear(path from, const message& m, std::size_t pad_to = 0) {
    engine.handle_datagram(now, from, write_message(m, pad_to));
    return drain();
  }
  /// Turns the clock to `until`, stopping at each timer.
  std::vector<sender_action> run(duration d) {
    std::vector<sender_action> out;
    const time_point until = now + d;
    std::size_t turns = 0;
    for (;;) {
      for (auto& a : drain()) out.push_back(std::move(a));
      const time_point next = engine.next_timeout();
      if (next > until) break;
      DDF_ASSERT(++turns < 1'000'000);   // a timer that does not move
      now = std::max(now, next);
      engine.handle_timeout(now);
    }
    now = until;
    engine.handle_timeout(now);
    for (auto& a : drain()) out.push_back(std::move(a));
    return out;
  }
  join a_join(std::uint64_t receiver, bool ready = true) const {
    join j;
    j.session = options_.session;
    j.receiver = receiver_id{receiver};
    j.ready = ready;
    j.rails = 1;
    j.buffer_bytes = 212'992;
    j.datagram_bytes = 1472;
    j.host = "host-" + std::to_string(receiver);
    return j;
  }
  /// Joins as an honest receiver would; what it was told.
  welcome join_from(path from, std::uint64_t receiver, bool ready = true) {
    welcome w;
    for (const auto& m : messages(hear(from, a_join(receiver, ready), 256)))
      if (const auto* x = std::get_if<welcome>(&m)) w = *x;
    return w;
  }
  static std::vector<message> messages(const std::vector<sender_action>& actions) {
    std::vector<message> out;
    for (const auto& a : actions)
      if (const auto* s = std::get_if<send_message>(&a)) {
        auto m = parse_message(s->datagram);
        DDF_ASSERT(m.has_value());
        out.push_back(std::move(*m));
      }
    return out;
  }
  static std::uint64_t segments_in(const std::vector<sender_action>& actions, std::optional<bool> to_group = {}) {
    std::uint64_t n = 0;
    for (const auto& a : actions)
      if (const auto* s = std::get_if<send_segments>(&a); s && (!to_group || s->to.group == *to_group)) n += s->count;
    return n;
  }
  /// Bytes of datagrams to one address.
  std::uint64_t bytes_to(const std::vector<sender_action>& actions, path to) const {
    std::uint64_t n = 0;
    for (const auto& a : actions) {
      if (const auto* m = std::get_if<send_message>(&a); m && !m->to.group && m->to.peer.peer == to.peer) n += m->datagram.size();
      if (const auto* s = std::get_if<send_segments>(&a); s && !s->to.group && s->to.peer.peer == to.peer)
        for (std::uint32_t i = 0; i < s->count; ++i) n += engine.segments().segment(s->segments[i]).bytes + data_header::wire_size;
    }
    return n;
  }
  const sender_options& options() const { return options_; }

 private:
  static sender_options prepare(catalogue c, sender_options o) {
    o.session = this_session;
    o.objects = std::move(c);
    if (o.rails.empty()) o.rails = {{1472, 28, "eth0"}};
    if (o.tables_known.empty()) o.tables_known.assign(o.objects.size(), true);
    return o;
  }
  prng rng_{1};
  sender_options options_;

 public:
  time_point now{1s};
  sender engine;
};

class lone_receiver {
 public:
  explicit lone_receiver(receiver_options o = {}) : engine(prepare(std::move(o)), this_session, at(1), rng_, now) {}

  std::vector<receiver_action> drain() {
    std::vector<receiver_action> out;
    while (auto a = engine.poll_action(now)) {
      DDF_ASSERT(out.size() < 1'000'000);
      out.push_back(std::move(*a));
    }
    return out;
  }
  std::vector<receiver_action> hear(const message& m, bool to_group = true, path from = at(1)) {
    engine.handle_datagram(now, from, to_group, write_message(m));
    return drain();
  }
  std::vector<receiver_action> run(duration d) {
    std::vector<receiver_action> out;
    const time_point until = now + d;
    std::size_t turns = 0;
    for (;;) {
      for (auto& a : drain()) out.push_back(std::move(a));
      const time_point next = engine.next_timeout();
      if (next > until) break;
      DDF_ASSERT(++turns < 100'000);
      now = std::max(now, next);
      engine.handle_timeout(now);
    }
    now = until;
    engine.handle_timeout(now);
    for (auto& a : drain()) out.push_back(std::move(a));
    return out;
  }
  static announce an_announce(const catalogue& c, session_state state = session_state::gathering) {
    announce a;
    a.session = this_session;
    a.state = state;
    a.counter = 1;
    a.clock_us = 1;
    a.objects = static_cast<std::uint32_t>(c.size());
    a.group_size = 1;
    a.grtt_us = 1000;
    a.catalogue = write_catalogue(c);
    a.catalogue_bytes = static_cast<std::uint32_t>(a.catalogue.size());
    a.catalogue_digest = digest_of(a.catalogue);
    if (state != session_state::gathering) {
      a.segment_bytes = 1456;
      a.segments = layout(c, 1456).segments();
    }
    return a;
  }
  /// Hears of a session, opens what it wants and joins.
  void join(const catalogue& c, opened_object opened = {}) {
    hear(an_announce(c));
    for (std::uint32_t o = 0; o < c.size(); ++o) engine.handle_opened(now, o, opened);
    run(50ms);
    hear(welcome{this_session, receiver_id{7}, join_token{99}, true, false, refusal::none, 100}, false);
    hear(an_announce(c, session_state::streaming));
  }
  std::vector<receiver_action> data(std::uint64_t segment, std::span<const std::byte> payload, std::uint8_t flags = 0, bool to_group = true) {
    packet_.resize(data_header::wire_size + payload.size());
    write_data_header({flags, segment, static_cast<std::uint32_t>(this_session.value), sequence_++}, std::span<std::byte, data_header::wire_size>(packet_.data(), data_header::wire_size));
    std::copy(payload.begin(), payload.end(), packet_.begin() + data_header::wire_size);
    engine.handle_datagram(now, at(1), to_group, packet_);
    return drain();
  }

 private:
  static receiver_options prepare(receiver_options o) {
    o.id = receiver_id{7};
    o.host = "me";
    return o;
  }
  prng rng_{1};
  std::vector<std::byte> packet_;
  std::uint32_t sequence_ = 0;

 public:
  time_point now{1s};
  receiver engine;
};

template <class Action, class Actions>
std::size_t count_of(const Actions& actions) {
  std::size_t n = 0;
  for (const auto& a : actions) n += std::holds_alternative<Action>(a);
  return n;
}

}  // namespace ddf::test
