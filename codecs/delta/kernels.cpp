#include "codecs/delta/kernels.hpp"

#include <algorithm>
#include <bit>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/number.hpp"

namespace ddf::delta {
namespace {

template <class U>
change_count changes(const std::byte* base, const std::byte* target, std::size_t n, std::uint64_t* masks) {
  change_count c;
  std::uint64_t carry = 0;
  for (std::size_t at = 0; at < n; at += 64) {
    std::uint64_t mask = 0;
    for (std::size_t i = at; i < std::min(at + 64, n); ++i)
      mask |= std::uint64_t(load<U>(base + i * sizeof(U)) != load<U>(target + i * sizeof(U))) << (i - at);
    c.changed += static_cast<std::uint32_t>(std::popcount(mask));
    c.runs += static_cast<std::uint32_t>(std::popcount(mask & ~(mask << 1 | carry)));
    carry = mask >> 63;
    *masks++ = mask;
  }
  return c;
}

template <class U>
void classify(const class_map& m, const std::byte* base, std::size_t n, std::uint8_t* classes) {
  for (std::size_t i = 0; i < n; ++i) classes[i] = static_cast<std::uint8_t>(m.of(load<U>(base + i * sizeof(U))));
}

void list(const std::uint64_t* masks, std::size_t words, std::uint32_t first, std::uint32_t* indexes) {
  for (std::size_t word = 0; word < words; ++word, first += 64)
    for (std::uint64_t mask = masks[word]; mask != 0; mask &= mask - 1) *indexes++ = first + static_cast<std::uint32_t>(std::countr_zero(mask));
}

template <class U>
void locate(const class_map& m, const std::byte* base, std::size_t n, std::uint32_t first, const std::uint32_t* indexes, std::size_t count, std::uint32_t* places,
            std::uint32_t* seen) {
  const std::uint32_t* const end = indexes + count;
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned c = m.of(load<U>(base + i * sizeof(U)));
    if (indexes != end && *indexes == first + i) *places++ = c << class_bit | seen[c], ++indexes;
    ++seen[c];
  }
}

template <class U>
bool apply(const class_map& m, const std::byte* base, std::byte* target, std::size_t n, const std::uint32_t* places, const std::byte* values,
           const std::uint32_t* ends) {
  std::array<std::uint32_t, classes_max> seen{}, at{};
  for (unsigned c = 1; c < m.count; ++c) at[c] = ends[c - 1];
  for (std::size_t i = 0; i < n; ++i) {
    const U x = load<U>(base + i * sizeof(U));
    const unsigned c = m.of(x);
    const bool changes = at[c] != ends[c] && places[at[c]] == seen[c];
    ++seen[c];
    store(target + i * sizeof(U), changes ? add_zigzag(x, load<U>(values + at[c] * sizeof(U))) : x);
    at[c] += changes;
  }
  for (unsigned c = 0; c < m.count; ++c)
    if (at[c] != ends[c]) return false;
  return true;
}

std::size_t rans_decode(const std::uint32_t* table, unsigned precision, std::uint32_t* state, const std::byte*& at, const std::byte* end,
                        std::uint8_t* symbols, std::size_t count) {
  const std::uint32_t mask = (1u << precision) - 1;
  std::size_t done = 0;
  for (; count - done >= rans_lanes_max && end - at >= 2 * std::ptrdiff_t(rans_lanes_max); done += rans_lanes_max) {
    for (unsigned lane = 0; lane < rans_lanes_max; ++lane) {
      std::uint32_t x = state[lane];
      const std::uint32_t e = table[x & mask];
      symbols[done + lane] = static_cast<std::uint8_t>(e);
      x = ((e >> 8 & 0xfff) + 1) * (x >> precision) + (e >> 20);
      const bool low = x < rans_low;
      const std::uint32_t more = x << 16 | load<std::uint16_t>(at);
      state[lane] = low ? more : x;
      at += low ? 2 : 0;
    }
  }
  return done;
}

}  // namespace

const kernels& scalar_kernels() {
  static constexpr kernels k = {
      .changes = {changes<std::uint8_t>, changes<std::uint16_t>, changes<std::uint32_t>, changes<std::uint64_t>},
      .classify = {classify<std::uint8_t>, classify<std::uint16_t>, classify<std::uint32_t>, classify<std::uint64_t>},
      .locate = {locate<std::uint8_t>, locate<std::uint16_t>, locate<std::uint32_t>, locate<std::uint64_t>},
      .apply = {apply<std::uint8_t>, apply<std::uint16_t>, apply<std::uint32_t>, apply<std::uint64_t>},
      .list = list,
      .rans_decode = rans_decode,
  };
  return k;
}

const kernels& best_kernels() {
  const kernels* const avx2 = avx2_kernels();
  return avx2 != nullptr ? *avx2 : scalar_kernels();
}

}  // namespace ddf::delta
