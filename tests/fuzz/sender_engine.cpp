// The sender engine under any sequence of calls: packets raw, valid, or valid with fields of the fuzzer's choice; time;
// results. It never breaks an invariant, its output keeps the rules of the wire, its timers move, and once finished it stays so.
#include <map>
#include <set>

#include "lib/session/sender.hpp"
#include "tests/support/catalogues.hpp"
#include "tests/support/fuzz_input.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/sealed.hpp"

using namespace ddf;
using namespace std::chrono_literals;

namespace {

constexpr session_id this_session{42};

sender_options options_from(test::fuzz_input& in) {
  sender_options o;
  o.session = this_session;
  const unsigned first = in.u8(), objects = 1 + first % 3, reads = first / 3;
  for (unsigned i = 0; i < objects; ++i) {
    const std::uint64_t units = in.u16();
    const std::uint64_t size = units * (in.u8() % 4);
    o.objects.push_back(i == 1 ? test::folder("d", {size, 0, 1}) : test::file("f" + std::to_string(i), size));
    o.tables_known.push_back(in.flag());
  }
  const unsigned shape = in.u8();
  o.rails = {{1472, 28, "a"}};
  if (shape & 1) o.rails.push_back({9000, 48, "b"});
  o.multicast = static_cast<multicast_use>(shape / 2 % 3);
  o.serve = (shape & 8) != 0;
  o.expect = shape / 16 % 4;
  o.quorum = shape / 64;
  const unsigned times = in.u8();
  o.deadline = std::chrono::milliseconds(times % 4 * 700);
  o.linger = std::chrono::milliseconds(times / 4 % 4 * 300);
  o.wait = std::chrono::milliseconds(times / 16 % 4 * 100);
  o.rate_bytes_per_s = std::array<std::uint64_t, 4>{0, 1, 1'000'000, ~std::uint64_t(0)}[times / 64];
  o.receivers_max = 6;
  o.reads = {{static_cast<std::uint8_t>(reads & lane_set::all)}, reads & 1};
  o.reads_required = (reads & 0x60) == 0x60;
  o.read_bytes_least = reads & 2 ? 0 : 16 << 10;
  o.grants_max = 5;
  o.read_after = o.read_after_tcp = reads & 4 ? 0 : 1000;
  o.rate_loop_max = 3;
  return o;
}

class run {
 public:
  explicit run(test::fuzz_input& input) : in(input), rng(in.u8()), options(options_from(in)), engine(options, rng, now) {}

  void go() {
    drain();
    for (int steps = 0; !in.empty() && steps < 3000; ++steps) {
      const std::size_t before = in.u8();
      step(before);
      drain();
      check();
    }
    // Left alone it comes to its end or waits for somebody, and does not spin.
    for (int i = 0; i < 200 && engine.next_timeout() != never; ++i) {
      now = std::max(now, engine.next_timeout());
      serve_timers();
      check();
    }
  }

 private:
  path from() {
    const unsigned n = in.u8() % 8;
    path p;
    p.peer.address = {10, 0, 0, static_cast<std::uint8_t>(n)};
    p.peer.port = 7;
    p.rail = n % 2;
    return p;
  }
  join_token token_of(const path& p) {
    const auto it = tokens.find(p.peer);
    return it == tokens.end() || in.u8() % 16 == 0 ? join_token{in.u8()} : it->second;
  }
  std::uint64_t segment() {
    switch (in.u8() % 4) {
      case 0: return in.u8();
      case 1: return engine.segments().segments() - in.u8() % 3;
      case 2: return in.u16();
      default: return in.u64() >> 16;
    }
  }
  std::vector<range> ranges() {
    std::vector<range> out;
    const unsigned n = 1 + in.u8() % 4;
    std::uint64_t at = 0;
    for (unsigned i = 0; i < n; ++i) {
      const std::uint64_t first = std::max(at, segment());
      const std::uint64_t size = in.u8() % 8 == 0 ? 1 + std::uint64_t(in.u32()) : 1 + in.u8();
      if (first >> 48 != 0) break;
      out.push_back({first, first + size});
      at = first + size;
    }
    if (out.empty()) out.push_back({0, 1});
    return out;
  }
  void say(const path& p, const message& m, std::size_t pad = 0) { engine.handle_datagram(now, p, write_message(m, pad)); }

  void step(std::size_t op) {
    const path p = from();
    switch (op >= 250 ? 12 + op % 2 : op % 12) {
      case 0: engine.handle_datagram(now, p, in.bytes(in.u8())); break;
      case 1: {
        auto d = in.bytes(in.u8());
        d.resize(std::max<std::size_t>(d.size(), 16));
        d[0] = static_cast<std::byte>(0x10 | (in.u8() & 15));
        for (std::size_t i = 0; i < 8; ++i) d[8 + i] = static_cast<std::byte>(this_session.value >> (56 - 8 * i) & 0xff);
        test::seal(d);
        d.resize(in.flag() ? d.size() : 1200);
        engine.handle_datagram(now, p, d);
        break;
      }
      case 2: {
        prng r(in.u16());
        const auto kind = in.u8();
        say(p, test::random_message(r, kind), 1200);
        break;
      }
      case 3:
      case 4: {
        join j;
        j.session = this_session;
        const unsigned flags = in.u8();
        j.receiver = receiver_id{flags & 64 ? in.u8() : p.peer.address[3]};
        j.ready = flags & 1, j.asks_only = flags & 2, j.deaf = (flags & 12) == 12;
        j.rails = flags / 16 % 4;
        j.buffer_bytes = flags & 128 ? in.u32() : 212'992;
        j.datagram_bytes = flags & 128 ? in.u16() : 1472;
        j.echo_us = flags & 128 ? in.u32() : 0;
        j.host = "h";
        if (!(flags & 2)) j.reads = {{lane_set::all}, 1};
        say(p, j, flags & 32 && in.flag() ? 0 : 256);
        break;
      }
      case 5: {
        status s;
        s.session = this_session, s.token = token_of(p);
        const auto sent = engine.count().group_packets;
        s.sequence = in.flag() ? sent : in.u16();
        s.received = in.flag() ? s.sequence : in.u64();
        s.deaf = in.u8() % 32 == 0;
        say(p, s);
        break;
      }
      case 6:
      case 7: {
        nack n = test::a_nack(this_session, token_of(p), {});   // one choice a statement: the order of arguments is the compiler's
        n.ranges = ranges();
        n.space = in.u8() % 8 == 0 ? nack_space::catalogue_chunks : nack_space::segments;
        n.unicast = in.flag();
        n.sequence = in.flag() ? engine.count().group_packets : in.u16();
        n.received = in.flag() ? n.sequence : in.u16();
        say(p, n);
        break;
      }
      case 8: {
        done d;
        d.session = this_session, d.token = token_of(p);
        d.state = static_cast<done_state>(in.u8() % 3);
        d.reason = test::random_text(rng, 20);
        say(p, d);
        break;
      }
      case 12: {
        release r;
        r.session = this_session, r.token = token_of(p);
        r.failed = in.u8() % 8 == 0;
        for (unsigned i = 0, n = 1 + in.u8() % 3; i < n; ++i) r.ids.push_back(in.u8() % 32);
        say(p, r);
        break;
      }
      case 13:
        if (!asked.empty()) {
          const auto id = asked.begin()->first;
          asked.erase(id);
          if (in.u8() % 8 == 0) engine.handle_granted(now, id, fail(errc::network, "no"));
          else engine.handle_granted(now, id, sender::granted_memory{{std::byte{1}}, id, 1});
        }
        break;
      case 9:
        switch (in.u8() % 8) {
          case 0: engine.handle_queue_full(now); break;
          case 1: engine.stop(now, {errc::interrupted, 0, "stopped"}); break;
          default: engine.handle_digests_ready(now, static_cast<std::uint32_t>(in.u8() % options.objects.size())); break;
        }
        break;
      default: {
        const unsigned how = in.u8();
        if (how % 2 == 0 && engine.next_timeout() != never) now = std::max(now, engine.next_timeout());
        else now += std::chrono::microseconds(std::uint64_t(1) << (how / 2 % 24));
        serve_timers();
        break;
      }
    }
  }

  void serve_timers() {   // one timer may start another for this very moment, a few times at most
    for (int i = 0; i < 4; ++i) {
      engine.handle_timeout(now);
      drain();
      if (engine.next_timeout() > now) return;
    }
    FUZZ_CHECK(engine.next_timeout() > now);
  }
  void drain() {
    std::size_t actions = 0;
    while (const auto a = engine.poll_action(now)) {
      FUZZ_CHECK(++actions < 200'000);
      if (const auto* m = std::get_if<send_message>(&*a)) {
        FUZZ_CHECK(m->datagram.size() <= 9000);
        const auto parsed = parse_message(m->datagram);
        FUZZ_CHECK(parsed.has_value());
        FUZZ_CHECK(!ended || std::holds_alternative<farewell>(*parsed));
        FUZZ_CHECK(!m->to.group || (m->to.rails != 0 && m->to.rails < 1u << options.rails.size() && options.multicast != multicast_use::off));
        if (const auto* w = std::get_if<welcome>(&*parsed); w && w->token.value != 0) tokens[m->to.peer.peer] = w->token;
      } else if (const auto* s = std::get_if<send_segments>(&*a)) {
        FUZZ_CHECK(!ended);
        FUZZ_CHECK(s->count >= 1 && s->count <= options.batch_segments);
        for (std::uint32_t i = 0; i < s->count; ++i) FUZZ_CHECK(s->segments[i] < engine.segments().segments());
        FUZZ_CHECK(!s->to.group || options.multicast != multicast_use::off);
      } else if (const auto* g = std::get_if<grant_segments>(&*a)) {
        FUZZ_CHECK(!ended && g->id > last_grant);
        last_grant = g->id;
        std::uint64_t bytes = 0, at = 0;
        for (const range& r : g->segments) {
          FUZZ_CHECK(at <= r.first && r.first < r.last && r.last <= engine.segments().segments());
          bytes += engine.segments().load_of(r.first, r.last).bytes;
          at = r.last;
        }
        FUZZ_CHECK(bytes == g->bytes && bytes != 0 && bytes <= options.grant_bytes && g->segments.size() <= grant_ranges_max);
        open.insert(g->id);
        asked[g->id] = true;
        FUZZ_CHECK(open.size() <= options.grants_max);
      } else if (const auto* r = std::get_if<release_grant>(&*a)) {
        FUZZ_CHECK(open.erase(r->id) == 1);
      } else if (std::holds_alternative<sender_finished>(*a)) {
        FUZZ_CHECK(!ended && open.empty());
        ended = true;
      } else if (const auto* d = std::get_if<prepare_digests>(&*a)) {
        FUZZ_CHECK(d->object < options.objects.size());
      }
    }
    FUZZ_CHECK(engine.finished() == ended);
  }
  void check() {
    FUZZ_CHECK(engine.receivers().size() <= options.receivers_max);
    FUZZ_CHECK(engine.receivers_complete() <= engine.receivers_joined());
    FUZZ_CHECK(engine.bulk_segment() <= engine.segments().segments());
    FUZZ_CHECK(!ended || engine.next_timeout() == never);
    FUZZ_CHECK(engine.count().dropped.size() < 40);
  }

  test::fuzz_input& in;
  prng rng;
  sender_options options;
  time_point now{1s};
  sender engine;
  std::map<endpoint, join_token> tokens;
  std::map<std::uint64_t, bool> asked;   // grants that the shell has not answered
  std::set<std::uint64_t> open;
  std::uint64_t last_grant = 0;
  bool ended = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::fuzz_input in(data, size);
  run(in).go();
  return 0;
}
