#include "lib/wire/data_run.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include <vector>

#include "lib/model/prng.hpp"
#include "tests/support/engines.hpp"

using namespace ddf;

static void append(std::vector<std::byte>& out, const data_header& h, std::size_t bytes, std::uint64_t fill) {
  const std::size_t at = out.size();
  out.resize(at + data_header::wire_size + bytes, static_cast<std::byte>(fill & 0xff));
  write_data_header(h, std::span<std::byte, data_header::wire_size>(out.data() + at, data_header::wire_size));
}

// Runs taken one after the other are the packets, each once and with its own header, and none could be longer.
RC_BOOST_PROP(runs_are_the_packets_they_were_taken_from, (std::uint64_t seed)) {
  prng rng(seed);
  const std::size_t bytes = 1 + rng.next() % 40, count = 1 + rng.next() % 30;
  data_header h{static_cast<std::uint8_t>(rng.next() % 4), rng.next() % 4 == 0 ? (std::uint64_t(1) << 48) - 3 : rng.next() % 1000, 7,
                rng.next() % 4 == 0 ? 0xffff'fffdu : 0};
  std::vector<data_header> sent;
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < count; ++i) {
    sent.push_back(h);
    append(all, h, i + 1 == count && rng.next() % 2 ? 1 + rng.next() % bytes : bytes, rng.next());
    ++h.segment;
    ++h.sequence;
    switch (rng.next() % 12) {
      case 0: h.segment += 2; break;
      case 1: h.sequence += 1; break;
      case 2: h.flags ^= 1; break;
      case 3: h.session_tag ^= 1; break;
      default: break;
    }
    h.segment &= 0xffff'ffff'ffff;
  }
  const std::size_t packet = data_header::wire_size + bytes;
  std::vector<data_header> got;
  for (std::size_t at = 0; at < all.size();) {
    const auto run = take_run(std::span(all).subspan(at), packet);
    RC_ASSERT(run.has_value());
        for (std::uint32_t i = 0; i < run->count; ++i) {
      const data_header one = run->part(i, 1).head;
      RC_ASSERT(*parse_data_header(std::span(all).subspan(at + i * packet)) == one);
      RC_ASSERT(run->payload(i).data() == all.data() + at + i * packet + data_header::wire_size);
      got.push_back(one);
    }
    at += run->count * run->packet_bytes();
  }
  RC_ASSERT((got == sent));
}

// What a receiver does with packets does not depend on how many it is given at once.
RC_BOOST_PROP(a_run_is_taken_as_its_packets_would_be, (std::uint64_t seed)) {
  prng rng(seed);
  const std::size_t size = 1 + rng.next() % 300'000;
  const catalogue c{test::file("f", size)};
  test::lone_receiver one, many;
  one.join(c);
  many.join(c);
  const layout l(c, 1456);
  std::vector<std::byte> disk_one(size), disk_many(size);
  const auto watch = [](std::vector<receiver_action> actions, std::vector<std::byte>& disk, std::vector<std::vector<std::byte>>& said) {
    for (const auto& a : actions) {
      if (const auto* p = std::get_if<place_segments>(&a))
        p->run.each_piece([&](std::size_t at, std::span<const std::byte> bytes) { std::ranges::copy(bytes, disk.begin() + static_cast<std::ptrdiff_t>(p->offset + at)); });
      if (const auto* m = std::get_if<send_message>(&a)) said.push_back(m->datagram);
    }
  };
  std::vector<std::vector<std::byte>> said_one, said_many;
  std::uint32_t sequence = 0;
  std::uint64_t next = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> packets;   // a super-packet: all of one size but the last
    std::uint64_t from = rng.next() % 4 == 0 ? rng.next() % l.segments() : next;
    const bool repair = rng.next() % 4 == 0;
    for (std::size_t n = 1 + rng.next() % 40; n-- != 0 && from < l.segments(); ++from) {
      if (rng.next() % 16 == 0) ++from, ++sequence;
      if (from >= l.segments()) break;
      const segment_extent e = l.segment(from);
      append(packets, {static_cast<std::uint8_t>((repair ? data_header::repair : 0) | (rng.next() % 20 == 0 ? 1 : 0)), from, static_cast<std::uint32_t>(test::this_session.value), sequence++}, e.bytes, from);
      if (e.bytes < 1456) {
        ++from;
        break;
      }
    }
    if (!repair) next = std::max(next, from);
    const std::size_t packet = data_header::wire_size + 1456;
    for (std::size_t at = 0; at < packets.size(); at += packet) one.engine.handle_datagram(one.now, test::at(1), true, std::span(packets).subspan(at, std::min(packet, packets.size() - at)));
    for (std::size_t at = 0; at < packets.size();) {
      const auto run = take_run(std::span(packets).subspan(at), packet);
      many.engine.handle_run(many.now, test::at(1), true, *run);
      at += run->count * run->packet_bytes();
    }
    watch(one.drain(), disk_one, said_one);
    watch(many.drain(), disk_many, said_many);
    const duration pause = std::chrono::microseconds(rng.next() % 5000);
    watch(one.run(pause), disk_one, said_one);
    watch(many.run(pause), disk_many, said_many);
  }
  RC_ASSERT((disk_one == disk_many));   // in brackets: they are too long to print
  RC_ASSERT((said_one == said_many));
  RC_ASSERT(one.engine.count().segments == many.engine.count().segments);
  RC_ASSERT(one.engine.count().bytes == many.engine.count().bytes);
  RC_ASSERT(one.engine.count().duplicates == many.engine.count().duplicates);
  RC_ASSERT((one.engine.count().dropped == many.engine.count().dropped));
}
