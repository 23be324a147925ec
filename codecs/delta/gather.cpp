// gather: stretches of changed elements, for rows, experts and whatever else changes together.
//
// Payload: varint count of runs; a byte u: what follows counts units of 2^u elements; varint count and bytes (entropy.hpp) of one
// varint a run, the units skipped before it; the same of the units in it, less one; then all elements of the runs as dense.
// The last run may reach beyond the last element.
#include <algorithm>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/operations.hpp"

namespace ddf::delta {
namespace {

constexpr unsigned unit_log_max = 6;
constexpr std::uint32_t bridge_elements = 5;   // so few unchanged elements cost less than a run more

// Each aligned group of 2^log bits is set when one of it is.
std::uint64_t widen(std::uint64_t mask, unsigned log) {
  constexpr std::uint64_t low[unit_log_max] = {0x5555555555555555, 0x1111111111111111, 0x0101010101010101, 0x0001000100010001, 0x0000000100000001, 1};
  for (unsigned l = 0; l < log; ++l) mask = (mask | mask >> (1u << l)) & low[l];
  for (unsigned l = log; l-- != 0;) mask |= mask << (1u << l);
  return mask;
}

unsigned choose_unit(std::span<const std::uint64_t> masks) {
  std::uint64_t cost[unit_log_max + 1] = {};   // in bits, but for what all have in common
  std::uint64_t before[unit_log_max + 1] = {};
  for (const std::uint64_t mask : masks) {
    if (mask == 0) {
      std::fill(std::begin(before), std::end(before), 0);
      continue;
    }
    for (unsigned log = 0; log <= unit_log_max; ++log) {
      const std::uint64_t m = widen(mask, log);
      cost[log] += 12 * static_cast<unsigned>(std::popcount(m & ~(m << 1 | before[log]))) + 2 * static_cast<unsigned>(std::popcount(m ^ mask));
      before[log] = m >> 63;
    }
  }
  return static_cast<unsigned>(std::min_element(std::begin(cost), std::end(cost)) - cost);
}

void push_varint(std::vector<std::uint8_t>& out, std::uint32_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::uint8_t>(v | 0x80));
  out.push_back(static_cast<std::uint8_t>(v));
}

struct run {
  std::uint32_t begin, end;
};

// Calls f for each run, in order.
template <class F>
void for_each_run(std::span<const std::uint64_t> masks, unsigned unit_log, std::size_t n, F&& f) {
  run r{0, 0};
  for (std::size_t word = 0; word < masks.size(); ++word)
    for (std::uint64_t m = masks[word] == 0 ? 0 : widen(masks[word], unit_log); m != 0;) {
      const int first = std::countr_zero(m), length = std::countr_one(m >> first);
      const auto begin = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(first);
      if (r.end == 0 || begin - r.end > bridge_elements) {
        if (r.end != 0) f(r);
        r.begin = begin;
      }
      r.end = begin + static_cast<std::uint32_t>(length);
      m = first + length == 64 ? 0 : m >> (first + length) << (first + length);
    }
  r.end = std::min(r.end, static_cast<std::uint32_t>(n));
  if (r.end != 0) f(r);
}

bool take_stream(workspace& w, std::span<const std::byte>& in, std::size_t runs, std::vector<std::uint8_t>& stream) {
  const auto bytes = take_varint(in);
  if (!bytes || *bytes > 4 * runs) return false;
  stream.resize(*bytes);
  return entropy_decode(w, in, stream);
}

}  // namespace

void encode_gather(workspace& w, const pair_view& p, std::vector<std::byte>& out) {
  const std::span<const std::uint64_t> masks(w.change_masks.data(), (p.n + 63) / 64);
  const unsigned unit_log = choose_unit(masks);
  const std::size_t width = width_of(p.element);
  std::byte* base = at_least(w.packed_base, p.n * width);
  std::byte* target = at_least(w.packed_target, p.n * width);
  std::size_t runs = 0, elements = 0;
  std::uint32_t end = 0;
  w.skips.clear();
  w.runs.clear();
  for_each_run(masks, unit_log, p.n, [&](const run& r) {
    push_varint(w.skips, (r.begin - end) >> unit_log);
    push_varint(w.runs, (r.end - r.begin - 1) >> unit_log);
    std::memcpy(base + elements * width, p.base + r.begin * width, (r.end - r.begin) * width);
    std::memcpy(target + elements * width, p.target + r.begin * width, (r.end - r.begin) * width);
    elements += r.end - r.begin;
    end = r.end;
    ++runs;
  });
  put_varint(out, runs);
  out.push_back(static_cast<std::byte>(unit_log));
  for (const auto* stream : {&w.skips, &w.runs}) {
    put_varint(out, stream->size());
    entropy_encode(w, *stream, out);
  }
  encode_dense(w, {p.element, base, target, elements}, out);
}

bool decode_gather(workspace& w, element e, const std::byte* base, std::span<const std::byte> in, std::byte* target, std::size_t n) {
  const auto runs = take_varint(in);
  if (!runs || *runs > n || in.empty()) return false;
  const auto unit_log = std::to_integer<unsigned>(in[0]);
  in = in.subspan(1);
  if (unit_log > unit_log_max || !take_stream(w, in, *runs, w.skips) || !take_stream(w, in, *runs, w.runs)) return false;

  const std::size_t width = width_of(e);
  const auto walk = [&](auto&& f) {   // f(first element, elements); false when they do not fit
    auto skips = std::as_bytes(std::span(w.skips)), lengths = std::as_bytes(std::span(w.runs));
    std::uint64_t at = 0;
    for (std::uint32_t r = 0; r < *runs; ++r) {
      const auto skip = take_varint(skips), length = take_varint(lengths);
      if (!skip || !length) return false;
      at += std::uint64_t(*skip) << unit_log;
      if (at >= n) return false;
      const std::uint64_t count = std::min<std::uint64_t>((std::uint64_t(*length) + 1) << unit_log, n - at);
      f(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
      at += count;
    }
    return skips.empty() && lengths.empty();
  };
  std::size_t elements = 0;
  if (!walk([&](std::size_t, std::size_t count) { elements += count; })) return false;
  std::byte* const packed = at_least(w.packed_base, elements * width);
  std::byte* to = packed;
  walk([&](std::size_t at, std::size_t count) {
    std::memcpy(to, base + at * width, count * width);
    to += count * width;
  });
  if (!decode_dense(w, e, packed, in, packed, elements)) return false;
  if (target != base) std::memcpy(target, base, n * width);
  const std::byte* from = packed;
  walk([&](std::size_t at, std::size_t count) {
    std::memcpy(target + at * width, from, count * width);
    from += count * width;
  });
  return true;
}

}  // namespace ddf::delta
