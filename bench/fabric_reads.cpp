// What reads through fabric_endpoint cost beside a bare loop on the same provider, with equal pieces and an equal window.
//
// Each iteration brings a batch both ways, in turns. bytes_per_second counts ours; counters: bare (bytes/s), ratio = ours / bare,
// cpu_ratio = the process's CPU time likewise, bare / ours (the serving side is the same thread of ours in both).
// DDF_BENCH_SMOKE makes batches of 1 MiB.
#include <benchmark/benchmark.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <vector>

#include "transports/fabric/fabric_endpoint.hpp"
#include "transports/fabric/fabric_handles.hpp"
#include "transports/fabric/process_memory.hpp"

namespace {

using namespace ddf;
using namespace std::chrono_literals;

constexpr std::size_t window = 16;   // operations on their way to one peer; a quarter of the endpoint's

std::size_t batch_bytes() { return std::getenv("DDF_BENCH_SMOKE") != nullptr ? 1 << 20 : 64 << 20; }

double now(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct spent {
  double seconds = 0, cpu = 0;
  template <class F>
  void during(F&& f) {
    const double t = now(CLOCK_MONOTONIC), c = now(CLOCK_PROCESS_CPUTIME_ID);
    f();
    seconds += now(CLOCK_MONOTONIC) - t;
    cpu += now(CLOCK_PROCESS_CPUTIME_ID) - c;
  }
};

// What remote_read says, without any of what we do about it.
class bare_reader {
 public:
  bare_reader(std::span<std::byte> target, const fabric_endpoint& peer) : target_(target) {
    auto info = find_provider(libfabric(), repair_lane::tcp, "127.0.0.1", 0);
    handles_ = std::move(*fabric_handles::open(libfabric(), std::move(*info), 64, 16));
    libfabric().mr_reg(handles_->domain, target, FI_READ, 1, &region_);
    libfabric().av_insert(handles_->av, handles_->native_address(peer.address()).data(), &peer_);
  }
  ~bare_reader() { ::fi_close(&region_->fid); }

  void read(const fabric_memory& from, std::size_t bytes, std::size_t piece) {
    std::size_t posted = 0, done = 0;
    std::array<fabric_completion, 32> completions;
    while (done < bytes) {
      while (posted < bytes && posted - done < window * piece) {
        const std::size_t n = std::min(piece, bytes - posted);
        void* const descriptor = handles_->local_descriptors ? ::fi_mr_desc(region_) : nullptr;
        if (libfabric().read(handles_->endpoint, target_.data() + posted, n, descriptor, peer_, from.address() + posted, from.key(), reinterpret_cast<void*>(n)) != 0) break;
        posted += n;
      }
      const ssize_t n = libfabric().cq_read(handles_->cq, completions);
      for (ssize_t i = 0; i < n; ++i) done += reinterpret_cast<std::size_t>(completions[static_cast<std::size_t>(i)].context);
    }
  }

 private:
  const std::span<std::byte> target_;
  std::unique_ptr<fabric_handles> handles_;
  fid_mr* region_ = nullptr;
  std::uint64_t peer_ = 0;
};

void read_ours(fabric_endpoint& e, fabric_memory& into, const fabric_endpoint& peer, const fabric_memory& from, std::size_t bytes, std::size_t each) {
  std::atomic<std::size_t> left = (bytes + each - 1) / each;
  std::promise<void> all;
  for (std::size_t at = 0; at < bytes; at += each) {
    remote_read r;
    r.peer.assign(peer.address().begin(), peer.address().end());
    r.address = from.address() + at;
    r.key = from.key();
    r.into = &into;
    r.offset = at;
    r.bytes = std::min(each, bytes - at);
    r.deadline = 60s;
    e.read(std::move(r), [&](result<void> outcome) {
      if (!outcome) std::abort();
      if (--left == 0) all.set_value();
    });
  }
  all.get_future().wait();
}

void reads(benchmark::State& state, repair_lane lane) {
  const auto each = static_cast<std::size_t>(state.range(0));
  const std::size_t piece = std::min(each, fabric_piece_bytes), bytes = std::max(each, std::min(batch_bytes(), 4096 * each));
  if (const auto there = find_fabric(lane, "127.0.0.1"); !there) return state.SkipWithError(describe(there.error()).c_str());
  fabric_options o;
  o.lane = lane;
  o.local_address = "127.0.0.1";
  const auto reader = *fabric_endpoint::open(o), source = *fabric_endpoint::open(o);
  std::vector<std::byte> from(bytes), ours(bytes), bare(bytes);
  for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  const auto source_memory = *source->register_memory(from), memory = *reader->register_memory(ours);
  std::optional<bare_reader> other;
  if (lane == repair_lane::tcp) other.emplace(bare, *source);
  const auto process = parse_process_name(source->address().subspan(1));
  const auto read_bare = [&] {
    if (other) return other->read(*source_memory, bytes, piece);
    for (std::size_t at = 0; at < bytes; at += piece) {
      const iovec to{bare.data() + at, std::min(piece, bytes - at)}, remote{from.data() + at, std::min(piece, bytes - at)};
      libfabric().process_read(process->pid, {&to, 1}, {&remote, 1});
    }
  };
  spent of_ours, of_bare;
  read_bare();   // connects
  read_ours(*reader, *memory, *source, *source_memory, each, each);
  for (auto _ : state) {
    of_bare.during(read_bare);
    const double before = of_ours.seconds;
    of_ours.during([&] { read_ours(*reader, *memory, *source, *source_memory, bytes, each); });
    state.SetIterationTime(of_ours.seconds - before);
  }
  if (ours != from || bare != from) state.SkipWithError("what was read differs");
  const double n = static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  state.counters["bare"] = benchmark::Counter(n * static_cast<double>(bytes) / of_bare.seconds, benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
  state.counters["ratio"] = of_bare.seconds / of_ours.seconds;
  state.counters["cpu_ratio"] = of_bare.cpu / of_ours.cpu;
}

BENCHMARK_CAPTURE(reads, tcp, repair_lane::tcp)->RangeMultiplier(16)->Range(4096, 16 << 20)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(reads, shm, repair_lane::shm)->RangeMultiplier(16)->Range(4096, 16 << 20)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
