// The receiver engine under any sequence of calls, with a disk behind it: what it commits is what the sender has, byte for
// byte, however packets are lost, damaged or made up. Its writes stay inside its objects, its timers move, and once finished it stays so.
#include <deque>
#include <map>

#include "lib/session/receiver.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "tests/support/catalogues.hpp"
#include "tests/support/fuzz_input.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/sealed.hpp"

using namespace ddf;
using namespace std::chrono_literals;

namespace {

constexpr session_id this_session{42};

struct world {   // what the sender has; made once
  catalogue c{test::file("f", 3 * 65536 + 100), test::folder("d", {70'000, 0, 5}), test::file("e", 0)};
  layout l{c, 60'000};
  std::vector<std::vector<std::vector<std::byte>>> parts;   // object, part
  std::vector<std::vector<std::byte>> tables;

  world() {
    prng rng(1);
    for (std::uint32_t o = 0; o < c.size(); ++o) {
      auto& p = parts.emplace_back();
      for (const part& x : c[o].parts) {
        auto& bytes = p.emplace_back(x.size);
        for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next() & 0xff);
      }
      std::vector<digest> rows;
      for (std::uint64_t b = l.object(o).first_block; b < l.object(o).table_block; ++b) {
        const block_extent e = l.block(b);
        rows.push_back(block_digest(std::span(p[e.part]).subspan(e.offset, e.bytes)));
      }
      const digest root = root_digest(c[o].name, c[o].size(), rows);
      auto& t = tables.emplace_back(root.bytes.begin(), root.bytes.end());
      for (const digest& d : rows) t.insert(t.end(), d.bytes.begin(), d.bytes.end());
    }
  }
  std::span<const std::byte> segment(std::uint64_t s) const {
    const segment_extent e = l.segment(s);
    return std::span(e.table ? tables[e.object] : parts[e.object][e.part]).subspan(e.offset, e.bytes);
  }
};

const world& the_world() {
  static const world w;
  return w;
}

receiver_options options_from(test::fuzz_input& in) {
  receiver_options o;
  o.id = receiver_id{7};
  o.host = "h";
  const unsigned shape = in.u8();
  o.multicast = shape % 8 == 7 ? multicast_use::off : shape % 8 == 6 ? multicast_use::require : multicast_use::attempt;
  if (shape & 8) o.buffer_bytes = in.u32();
  if ((shape & 0x30) == 0x30) o.bytes_max = in.u32();
  o.reads.lanes.add(repair_lane::tcp);
  if ((shape & 0xc0) == 0xc0) o.wanted = [](const manifest& m) { return m.name == "d"; };
  return o;
}

class run {
 public:
  explicit run(test::fuzz_input& input) : in(input), rng(in.u8()), engine(options_from(in), this_session, sender(), rng, now) {
    for (const auto& parts : w.parts) {
      auto& mine = disk.emplace_back();
      for (const auto& p : parts) mine.emplace_back(p.size(), std::byte{0xee});
    }
  }

  void go() {
    for (int steps = 0; !in.empty() && steps < 3000; ++steps) {
      step(in.u8());
      drain();
    }
    while (!work.empty()) answer(0), drain();
    for (int i = 0; i < 3000 && engine.next_timeout() != never; ++i) {
      now = std::max(now, engine.next_timeout());
      serve_timers();
      while (!work.empty()) answer(0), drain();
    }
    FUZZ_CHECK(engine.finished() && ended);   // the sender is silent: it ends
  }

 private:
  static path sender() {
    path p;
    p.peer.address = {10, 0, 0, 1};
    p.peer.port = 7;
    return p;
  }
  path from() {
    path p = sender();
    if (in.u8() % 32 == 0) p.peer.address[3] = in.u8();
    return p;
  }
  void say(const message& m, bool to_group) { engine.handle_datagram(now, from(), to_group, write_message(m)); }

  announce an_announce() {
    announce a;
    a.session = this_session;
    const unsigned shape = in.u8();
    a.state = static_cast<session_state>(shape % 4);
    a.no_multicast = (shape & 0x70) == 0x70;
    a.unicast = (shape & 12) == 12;
    a.counter = in.u8();
    a.clock_us = 1;
    a.objects = static_cast<std::uint32_t>(w.c.size());
    a.group_size = in.flag() ? 1 : in.u32();
    a.grtt_us = in.flag() ? 500 : in.u32();
    const auto bytes = write_catalogue(w.c);
    if (!(shape & 128)) a.catalogue = bytes;
    a.catalogue_bytes = static_cast<std::uint32_t>(bytes.size());
    a.catalogue_digest = digest_of(bytes);
    a.sequence = in.flag() ? sequence : in.u16();
    if (a.state != session_state::gathering) {
      a.segment_bytes = 60'000;
      a.segments = w.l.segments();
      a.bulk_segment = in.flag() ? a.segments : in.u8() % (a.segments + 1);
    }
    return a;
  }

  void data() {
    const unsigned shape = in.u8();
    const std::uint64_t s = shape & 1 ? next++ % w.l.segments() : in.u8() % w.l.segments();
    const auto payload = w.segment(s);
    packet.assign(data_header::wire_size, std::byte{0});
    packet.insert(packet.end(), payload.begin(), payload.end());
    if ((shape & 0x18) == 0x18) packet[data_header::wire_size + in.u16() % payload.size()] ^= std::byte{4};
    if ((shape & 0xe0) == 0xe0) packet.resize(data_header::wire_size + 1 + in.u16() % payload.size());
    const bool to_group = !(shape & 2);
    const data_header h{static_cast<std::uint8_t>((shape & 4 ? data_header::repair : 0) | (to_group ? 0 : data_header::unicast) | (in.u8() & 9)), s, this_session.value,
                        in.u8() % 16 == 0 ? in.u32() : sequence++};
    write_data_header(h, std::span<std::byte, data_header::wire_size>(packet.data(), data_header::wire_size));
    engine.handle_datagram(now, from(), to_group, packet);
  }

  // Several that arrive as one, as the runtime takes them apart.
  void several() {
    const unsigned shape = in.u8();
    const std::uint64_t first = shape & 1 ? next % w.l.segments() : in.u8() % w.l.segments();
    const bool to_group = !(shape & 2);
    const std::size_t size = data_header::wire_size + w.segment(first).size();
    packet.clear();
    for (std::uint64_t s = first; s < std::min(first + 2 + (shape >> 4), w.l.segments()); ++s) {
      const auto payload = w.segment(s);
      if (data_header::wire_size + payload.size() > size) break;
      const std::size_t at = packet.size();
      packet.resize(at + data_header::wire_size);
      write_data_header({static_cast<std::uint8_t>((shape & 4 ? data_header::repair : 0) | (to_group ? 0 : data_header::unicast)), s, this_session.value, sequence++},
                        std::span<std::byte, data_header::wire_size>(packet.data() + at, data_header::wire_size));
      packet.insert(packet.end(), payload.begin(), payload.end());
      if (data_header::wire_size + payload.size() < size) break;
    }
    if (shape & 1) next = first + packet.size() / size;
    if (shape & 8) packet[in.u16() % packet.size()] ^= std::byte{4};
    const path whom = from();
    for (std::size_t at = 0; at < packet.size();) {
      const auto rest = std::span(packet).subspan(at);
      if (const auto taken = take_run(rest, size)) {
        engine.handle_run(now, whom, to_group, *taken);
        at += taken->count * taken->packet_bytes();
      } else {
        engine.handle_datagram(now, whom, to_group, rest.first(std::min(size, rest.size())));
        at += size;
      }
    }
  }

  // What was granted, as it lies in the sender's memory, or damaged on the way.
  void granted() {
    grant g;
    g.session = this_session, g.receiver = receiver_id{7}, g.id = 1 + in.u8() % 8, g.fabric = {std::byte{1}};
    if (in.u8() % 16 == 0) g.lane = repair_lane::verbs;
    std::uint64_t at = 0;
    for (unsigned i = 0, n = 1 + in.u8() % 3; i < n; ++i) {
      const std::uint64_t first = at + in.u8() % 8, last = first + 1 + in.u8() % 16;
      g.segments.push_back({first, last});
      at = last;
    }
    grants[g.id] = g.segments;
    say(g, false);
  }
  void answer_read() {
    const auto [id, bytes] = reads.front();
    reads.pop_front();
    const unsigned how = in.u8();
    if (how > 220) return engine.handle_read(now, id, fail(errc::network, "gone"));
    std::vector<std::byte> content;
    for (const range& r : grants[id])   // as it is now: the same id may have been granted anew
      for (std::uint64_t s = r.first; s < r.last && s < w.l.segments(); ++s) {
        const auto payload = w.segment(s);
        content.insert(content.end(), payload.begin(), payload.end());
      }
    content.resize(bytes, std::byte{0xbb});
    if (how > 180 && bytes != 0) content[in.u16() % bytes] ^= std::byte{4};
    engine.handle_read(now, id, std::span<const std::byte>(content));
    drain();
  }

  void step(unsigned op) {
    switch (op >= 250 ? 16 + op % 2 : op % 16) {
      case 0: {
        const auto d = in.bytes(in.u8());
        const bool to_group = in.flag();
        engine.handle_datagram(now, from(), to_group, d);
        break;
      }
      case 1: {
        auto d = in.bytes(in.u8());
        d.resize(std::max<std::size_t>(d.size(), 16));
        d[0] = static_cast<std::byte>(0x10 | (in.u8() & 15));
        for (std::size_t i = 0; i < 8; ++i) d[8 + i] = static_cast<std::byte>(this_session.value >> (56 - 8 * i) & 0xff);
        test::seal(d);
        const bool to_group = in.flag();
        engine.handle_datagram(now, from(), to_group, d);
        break;
      }
      case 2: {
        const bool to_group = in.u8() % 4 != 0;
        say(an_announce(), to_group);
        break;
      }
      case 3: {
        welcome m;
        m.session = this_session, m.receiver = receiver_id{7}, m.token = join_token{5};
        const unsigned shape = in.u8();
        m.in_rate_loop = shape & 1, m.left_rate_loop = (shape & 6) == 6;
        m.refused = shape > 250 ? static_cast<refusal>(shape % 5) : refusal::none;
        m.rtt_us = in.flag() ? 100 : in.u32();
        say(m, false);
        break;
      }
      case 4: {
        const auto bytes = write_catalogue(w.c);
        say(catalogue_chunk{this_session, false, static_cast<std::uint32_t>(bytes.size()), 0, bytes}, in.flag());
        break;
      }
      case 5: {
        const std::uint64_t first = in.u8() % w.l.segments();
        say(repair_notice{this_session, {{first, first + 1 + in.u8()}}}, true);
        break;
      }
      case 6:
        if (in.u8() % 8 == 0) say(close_session{this_session, in.u8(), "bye"}, true);
        else say(farewell{this_session, receiver_id{7}}, false);
        break;
      case 7:
        if (in.u8() % 16 == 0) engine.stop(now, {errc::interrupted, 0, "stopped"});
        else if (const auto o = in.u8() % w.c.size(); in.u8() % 16 == 0 && opened[o]) engine.handle_store_error(now, static_cast<std::uint32_t>(o), {errc::io, 28, "full"}), failed[o] = true;
        break;
      case 8:
      case 9:
      case 10: data(); break;
      case 11: several(); break;
      case 16: granted(); break;
      case 17:
        if (!reads.empty()) answer_read();
        break;
      case 12:
      case 13:
        if (!work.empty()) answer(in.u8());
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
      FUZZ_CHECK(++actions < 100'000);
      if (const auto* m = std::get_if<send_message>(&*a)) {
        FUZZ_CHECK(m->datagram.size() <= control_bytes_max);
        FUZZ_CHECK(parse_message(m->datagram).has_value());
        FUZZ_CHECK(!m->to.group);
      } else if (const auto* o = std::get_if<open_object>(&*a)) {
        FUZZ_CHECK(o->object < w.c.size() && !asked[o->object]);
        asked[o->object] = true;
        work.push_back({job::open, o->object, {}});
      } else if (const auto* p = std::get_if<place_segments>(&*a)) {
        FUZZ_CHECK(opened[p->object] && !committed[p->object]);
        auto& file = disk[p->object].at(p->part);
        FUZZ_CHECK(p->offset <= file.size() && p->run.bytes() <= file.size() - p->offset);
        p->run.each_piece([&](std::size_t at, std::span<const std::byte> bytes) { std::ranges::copy(bytes, file.begin() + static_cast<std::ptrdiff_t>(p->offset + at)); });
      } else if (const auto* d = std::get_if<digest_block>(&*a)) {   // read now, answered later
        const block_extent e = w.l.block(d->block);
        FUZZ_CHECK(!e.table && opened[e.object]);
        work.push_back({job::digest, d->block, block_digest(std::span(disk[e.object][e.part]).subspan(e.offset, e.bytes))});
      } else if (const auto* x = std::get_if<commit_object>(&*a)) {
        FUZZ_CHECK(opened[x->object] && !committed[x->object] && !failed[x->object]);
        committed[x->object] = true;
        FUZZ_CHECK(disk[x->object] == w.parts[x->object]);   // the point of it all
        work.push_back({job::commit, x->object, {}});
      } else if (const auto* r = std::get_if<read_segments>(&*a)) {
        FUZZ_CHECK(r->lane == repair_lane::tcp && r->bytes <= grant_bytes_max && reads.size() < 64);
        reads.emplace_back(r->id, r->bytes);
      } else if (std::holds_alternative<receiver_finished>(*a)) {
        FUZZ_CHECK(!ended);
        ended = true;
      }
    }
    FUZZ_CHECK(engine.finished() == ended);
    FUZZ_CHECK(!ended || engine.next_timeout() == never);
  }

  void answer(unsigned choice) {
    const job j = work.front();
    work.pop_front();
    const auto o = static_cast<std::uint32_t>(j.number);
    switch (j.what) {
      case job::open:
        if (choice > 250) {
          failed[o] = true;
          engine.handle_opened(now, o, fail(errc::io, "no", 13));
        } else {
          opened[o] = true;
          opened_object r;
          if (choice & 1) {   // an earlier transfer left these, right or not
            const std::uint64_t first = choice / 2 % 4;
            r.resumable.insert(first, first + 1 + choice / 8 % 4);
            if (choice & 128) disk[o] = w.parts[o];
          }
          if ((choice & 0x70) == 0x70) {
            r.current.emplace();
            std::copy_n(w.tables[o].begin(), digest::size, r.current->bytes.begin());
          }
          engine.handle_opened(now, o, std::move(r));
        }
        break;
      case job::digest:
        if (choice > 250) engine.handle_block_digest(now, j.number, fail(errc::io, "unreadable", 5));
        else engine.handle_block_digest(now, j.number, j.value);
        break;
      case job::commit:
        if (choice > 250) engine.handle_committed(now, o, fail(errc::io, "full", 28));
        else engine.handle_committed(now, o, {});
        break;
    }
  }

  struct job {
    enum { open, digest, commit } what;
    std::uint64_t number = 0;
    ddf::digest value;
  };
  test::fuzz_input& in;
  const world& w = the_world();
  prng rng;
  time_point now{1s};
  receiver engine;
  std::vector<std::vector<std::vector<std::byte>>> disk;
  std::deque<job> work;
  std::map<std::uint64_t, std::vector<range>> grants;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> reads;   // id, bytes
  std::array<bool, 3> asked{}, opened{}, committed{}, failed{};
  std::vector<std::byte> packet;
  std::uint32_t sequence = 0;
  std::uint64_t next = 0;
  bool ended = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::fuzz_input in(data, size);
  run(in).go();
  return 0;
}
