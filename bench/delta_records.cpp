// What records cost, of the pairs in workload/pairs.hpp, beside what memory allows in the same run.
//
// bytes_per_second counts the new version. Counters: ratio = bytes of all records / bytes of the version; bits_per_change = bits of all records /
// elements that differ. Baselines: read (one stream), copy (memcpy), both on memory of the same size.
// DDF_BENCH_PAIR_BYTES sets the size of a version (64 MiB); DDF_BENCH_SMOKE makes it 1 MiB.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bench/workload/pairs.hpp"
#include "codecs/delta/bits.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/record.hpp"
#include "codecs/delta/workspace.hpp"

namespace {

using namespace ddf;
using namespace ddf::delta;

constexpr std::size_t record_bytes = record_target_bytes_max;

std::size_t pair_bytes() {
  if (std::getenv("DDF_BENCH_SMOKE") != nullptr) return 1 << 20;
  const char* wanted = std::getenv("DDF_BENCH_PAIR_BYTES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 64 << 20;
}

// The last pair stays: benchmarks of one pair follow one another.
const workload::version_pair& pair_of(char letter) {
  static std::pair<char, workload::version_pair> kept;
  if (kept.first != letter) kept = {letter, workload::make_pair(letter, pair_bytes(), 1, pair_bytes() < (64 << 20) ? std::max<std::size_t>(1, pair_bytes() >> 20) : 64)};
  return kept.second;
}

std::uint64_t changed_elements(const workload::version_pair& p) {
  return with_width(p.element, [&]<class U>(U) {
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < p.base.size() / sizeof(U); ++i) changed += load<U>(p.base.data() + i * sizeof(U)) != load<U>(p.target.data() + i * sizeof(U));
    return changed;
  });
}

struct records {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> ends;
  std::span<const std::byte> operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::span(bytes).subspan(begin, ends[i] - begin);
  }
};

// Calls f(index, offset, bytes) for each record of a version.
template <class F>
void for_each_record(std::size_t size, F&& f) {
  for (std::size_t at = 0, i = 0; at < size; at += record_bytes, ++i) f(i, at, std::min(record_bytes, size - at));
}

void encode_all(workspace& w, const workload::version_pair& p, profile f, records& r) {
  r.bytes.clear();
  r.ends.clear();
  for_each_record(p.base.size(), [&](std::size_t, std::size_t at, std::size_t n) {
    encode_record(w, p.element, std::span(p.base).subspan(at, n), std::span(p.target).subspan(at, n), f, r.bytes);
    r.ends.push_back(r.bytes.size());
  });
}

void report(benchmark::State& state, const workload::version_pair& p, const records& r) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(p.base.size()));
  state.counters["ratio"] = static_cast<double>(r.bytes.size()) / static_cast<double>(p.base.size());
  std::map<int, int> operations;
  for (std::size_t i = 0; i < r.ends.size(); ++i) ++operations[std::to_integer<int>(r[i][0])];
  std::string label;
  for (const auto& [operation, count] : operations) label += (label.empty() ? "op " : " ") + std::to_string(operation) + "x" + std::to_string(count);
  state.SetLabel(label);
}

void encode(benchmark::State& state, char letter, profile f) {
  const auto& p = pair_of(letter);
  workspace w;
  records r;
  for (auto _ : state) {
    encode_all(w, p, f, r);
    benchmark::DoNotOptimize(r.bytes.data());
  }
  report(state, p, r);
  const std::uint64_t changed = changed_elements(p);
  state.counters["changed"] = static_cast<double>(changed) * static_cast<double>(width_of(p.element)) / static_cast<double>(p.base.size());
  if (changed != 0) state.counters["bits_per_change"] = static_cast<double>(r.bytes.size()) * 8 / static_cast<double>(changed);
}

void decode(benchmark::State& state, char letter, profile f) {
  const auto& p = pair_of(letter);
  workspace w;
  records r;
  encode_all(w, p, f, r);
  std::vector<std::byte> made(p.base.size());
  bool good = true;
  for (auto _ : state)
    for_each_record(p.base.size(), [&](std::size_t i, std::size_t at, std::size_t n) {
      good &= decode_record(w, p.element, std::span(p.base).subspan(at, n), r[i], std::span(made).subspan(at, n));
    });
  if (!good || made != p.target) state.SkipWithError("decoded wrongly");
  report(state, p, r);
}

// There and back: the delta of one direction and then of the other, so that every application is one.
void in_place(benchmark::State& state, char letter, profile f) {
  const auto& p = pair_of(letter);
  const workload::version_pair back{p.element, p.target, p.base};
  workspace w;
  records there, again;
  encode_all(w, p, f, there);
  encode_all(w, back, f, again);
  std::vector<std::byte> bytes = p.base;
  bool good = true, at_base = true;
  for (auto _ : state) {
    const records& r = at_base ? there : again;
    for_each_record(bytes.size(), [&](std::size_t i, std::size_t at, std::size_t n) {
      good &= decode_record_in_place(w, p.element, r[i], std::span(bytes).subspan(at, n));
    });
    at_base = !at_base;
  }
  if (!good || bytes != (at_base ? p.base : p.target)) state.SkipWithError("decoded wrongly");
  report(state, p, there);
}

void memory_read(benchmark::State& state) {
  const std::vector<std::uint64_t> from(pair_bytes() / 8, 1);
  std::uint64_t checksum = 0;
  for (auto _ : state) {
    std::uint64_t sums[8] = {};
    for (std::size_t i = 0; i + 8 <= from.size(); i += 8)
      for (std::size_t j = 0; j < 8; ++j) sums[j] += from[i + j];
    for (const std::uint64_t s : sums) checksum += s;
    benchmark::DoNotOptimize(checksum);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size() * 8));
}

void memory_copy(benchmark::State& state) {
  const std::vector<std::byte> from(pair_bytes(), std::byte{1});
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memory_read", memory_read);
  benchmark::RegisterBenchmark("memory_copy", memory_copy);
  for (const auto& kind : workload::pair_kinds)
    for (const profile f : {profile::tight, profile::fast}) {
      const std::string end = "/" + std::string(kind.name) + (f == profile::tight ? "/tight" : "/fast");
      benchmark::RegisterBenchmark(("encode" + end).c_str(), encode, kind.letter, f);
      benchmark::RegisterBenchmark(("decode" + end).c_str(), decode, kind.letter, f);
      benchmark::RegisterBenchmark(("in_place" + end).c_str(), in_place, kind.letter, f);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
