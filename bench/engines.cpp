// What a packet costs in the engines, without any input or output.
//
// receive_segment: one DATA packet through the receiver, in order, digest included. send_batch: one burst of the first pass
// out of the sender, with so many receivers known: must not grow with them.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "codecs/digest.hpp"
#include "lib/session/receiver.hpp"
#include "lib/session/sender.hpp"
#include "lib/wire/catalogue_codec.hpp"

namespace {

using namespace std::chrono_literals;
using namespace ddf;

constexpr std::uint32_t segment_bytes = 1456;

catalogue one_object(std::uint64_t bytes) {
  manifest m;
  m.name = "bench/object";
  m.block_bytes = block_bytes_for(bytes);
  m.parts = {part{.name = "", .size = bytes, .mode = 0644, .directory = false}};
  return {m};
}

endpoint address(std::uint16_t port) {
  endpoint e;
  e.address = {10, 0, 0, 1};
  e.port = port;
  return e;
}

void receive_segment(benchmark::State& state) {
  const catalogue objects = one_object(64 << 20);
  const std::vector<std::byte> encoded = write_catalogue(objects);
  const layout l(objects, segment_bytes);
  std::vector<std::byte> packet(data_header::wire_size + segment_bytes, std::byte{7});
  std::uint64_t checksum = 0, segments = 0;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(l.segments() - 1))) {
    state.PauseTiming();
    time_point now{1h};
    prng rng(1);
    receiver r({.id = receiver_id{1}, .host = "bench"}, session_id{42}, {address(7700), 0}, rng, now);
    announce a;
    a.session = session_id{42};
    a.state = session_state::streaming;
    a.segment_bytes = segment_bytes;
    a.segments = l.segments();
    a.bytes = objects[0].size();
    a.objects = 1;
    a.catalogue_bytes = static_cast<std::uint32_t>(encoded.size());
    a.catalogue_digest = digest_of(encoded);
    a.catalogue = encoded;
    r.handle_datagram(now, {address(7700), 0}, true, write_message(a));
    while (auto action = r.poll_action(now))
      if (const auto* open = std::get_if<open_object>(&*action)) r.handle_opened(now, open->object, opened_object{});
    state.ResumeTiming();
    for (std::uint64_t s = 0; s + 1 < l.segments(); ++s) {   // without the digest table: nothing is committed
      data_header h;
      h.segment = s;
      h.session_tag = 42;
      h.sequence = static_cast<std::uint32_t>(s);
      write_data_header(h, std::span(packet).first<data_header::wire_size>());
      const segment_extent e = l.segment(s);
      r.handle_datagram(now, {address(7700), 0}, true, std::span(packet).first(data_header::wire_size + e.bytes));
      if (s % 44 == 43)
        while (auto action = r.poll_action(now)) checksum += action->index();
    }
    segments += r.count().segments;
  }
  benchmark::DoNotOptimize(checksum);
  state.SetBytesProcessed(static_cast<std::int64_t>(segments) * segment_bytes);
  state.SetItemsProcessed(static_cast<std::int64_t>(segments));
}
BENCHMARK(receive_segment);

void send_batch(benchmark::State& state) {
  const auto receivers = static_cast<std::uint16_t>(state.range(0));
  std::uint64_t checksum = 0, packets = 0;
  time_point now{1h};
  prng rng(2);
  sender_options o;
  o.session = session_id{42};
  o.objects = one_object(1ull << 40);
  o.rails = {{1472, 28, "bench0"}};
  o.wait = 1ms;
  sender s(std::move(o), rng, now);
  while (s.poll_action(now)) {}
  for (std::uint16_t i = 0; i < receivers; ++i) {
    join j;
    j.session = session_id{42};
    j.receiver = receiver_id{std::uint64_t(i) + 1};
    j.ready = true;
    j.rails = 1;
    j.buffer_bytes = 32 << 20;
    j.datagram_bytes = 1472;
    j.host = "bench";
    s.handle_datagram(now, {address(static_cast<std::uint16_t>(1000 + i)), 0}, write_message(j, 256));
  }
  now += 10ms;
  s.handle_timeout(now);
  std::vector<std::pair<path, join_token>> tokens;
  while (auto a = s.poll_action(now)) {
    const auto* m = std::get_if<send_message>(&*a);
    if (m == nullptr || m->to.group) continue;
    const auto parsed = parse_message(m->datagram);
    if (const auto* w = parsed ? std::get_if<welcome>(&*parsed) : nullptr; w != nullptr && w->in_rate_loop) tokens.emplace_back(m->to.peer, w->token);
  }
  for (auto _ : state) {
    auto a = s.poll_action(now);
    if (a) {
      if (const auto* batch = std::get_if<send_segments>(&*a)) packets += batch->count, checksum += batch->segments[0];
      continue;
    }
    state.PauseTiming();   // the window is shut: everybody confirms
    now += 1ms;
    for (const auto& [where, token] : tokens) s.handle_datagram(now, where, write_message(status{session_id{42}, token, s.count().group_packets, s.count().group_packets, 0, false}));
    state.ResumeTiming();
  }
  benchmark::DoNotOptimize(checksum);
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
}
BENCHMARK(send_batch)->Arg(1)->Arg(32)->Arg(1000)->Arg(4000);

void digest_block_bytes(benchmark::State& state) {
  const std::vector<std::byte> block(static_cast<std::size_t>(state.range(0)), std::byte{3});
  std::byte checksum{};
  for (auto _ : state) checksum ^= digest_of(block).bytes[0];
  benchmark::DoNotOptimize(checksum);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(digest_block_bytes)->Arg(64 << 10)->Arg(1 << 20);

}  // namespace

BENCHMARK_MAIN();
