// Rice codes: numbers that are small more often than large, by one parameter and without a table.
//
// A number v with parameter k: v >> k zeros and a one, then the lower k bits. From 24 zeros on there is no one; the number follows whole.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "codecs/delta/bits.hpp"

namespace ddf::delta {

inline constexpr unsigned rice_zeros_max = 24;

/// `whole_bits`: what any of the numbers fits in, up to 64.
inline void put_rice(bit_writer& bits, std::uint64_t v, unsigned k, unsigned whole_bits) {
  const std::uint64_t zeros = v >> k;
  if (zeros >= rice_zeros_max) {
    bits.put(0, rice_zeros_max);
    bits.put_wide(v, whole_bits);
    return;
  }
  bits.put(std::uint64_t(1) << zeros, static_cast<unsigned>(zeros) + 1);
  bits.put_wide(v & ((std::uint64_t(1) << k) - 1), k);
}

inline std::uint64_t get_rice(bit_reader& bits, unsigned k, unsigned whole_bits) {
  bits.refill();
  const auto zeros = static_cast<unsigned>(std::countr_zero(bits.peek() | std::uint64_t(1) << rice_zeros_max));
  if (zeros == rice_zeros_max) {
    bits.drop(rice_zeros_max);
    return bits.get_wide(whole_bits);
  }
  bits.drop(zeros + 1);
  return std::uint64_t(zeros) << k | (k <= bit_reader::once_bits_max - rice_zeros_max - 1 ? bits.take(k) : bits.get_wide(k));
}

struct rice_choice {
  unsigned k = 0;
  std::uint64_t bits = 0;   // of all numbers
};

/// The parameter that makes `count` numbers number(0), number(1), ... shortest: of three near their mean.
template <class Number>
rice_choice choose_rice(std::size_t count, unsigned whole_bits, Number&& number) {
  if (count == 0) return {};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::min(number(i), std::uint64_t(1) << 44);   // 2^20 of them fit
  const unsigned near = static_cast<unsigned>(std::bit_width(sum / count + 1)) - 1, first = near == 0 ? 0 : near - 1;
  const std::uint64_t most = rice_zeros_max + whole_bits;   // what follows whole is counted as so many zeros
  std::uint64_t low = count, middle = count, high = count;  // zeros, and the one behind them
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t v = number(i) >> first;
    low += std::min(v, most);
    middle += std::min(v >> 1, most);
    high += std::min(v >> 2, most);
  }
  rice_choice best{first, low + count * first};
  for (const rice_choice& other : {rice_choice{first + 1, middle + count * (first + 1)}, rice_choice{first + 2, high + count * (first + 2)}})
    if (other.bits < best.bits) best = other;
  return best;
}

}  // namespace ddf::delta
