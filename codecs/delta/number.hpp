// Elements as integers: never anything but the bits.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codecs/delta/element.hpp"

namespace ddf::delta {

/// Calls f with a zero of the unsigned type of that width.
template <class F>
auto with_width(element e, F&& f) {
  switch (width_of(e)) {
    case 1: return f(std::uint8_t(0));
    case 2: return f(std::uint16_t(0));
    case 4: return f(std::uint32_t(0));
    default: return f(std::uint64_t(0));
  }
}

/// The difference modulo 2^w, small numbers of either sign as small ones: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4.
template <std::unsigned_integral U>
constexpr U zigzag_difference(U base, U target) {
  const U d = static_cast<U>(target - base);
  const U sign = static_cast<U>(-(d >> (8 * sizeof(U) - 1)));
  return static_cast<U>(static_cast<U>(d << 1) ^ sign);
}

template <std::unsigned_integral U>
constexpr U add_zigzag(U base, U zigzag) {
  return static_cast<U>(base + static_cast<U>((zigzag >> 1) ^ static_cast<U>(-(zigzag & 1))));
}

/// log2(v) in 1/4096, for v >= 1, truncated. In integers, so that every machine chooses alike.
constexpr std::uint32_t log2_4096(std::uint64_t v) {
  unsigned whole = 0;
  while (v >> whole > 1) ++whole;
  std::uint64_t x = whole <= 31 ? v << (31 - whole) : v >> (whole - 31);   // 1 <= x / 2^31 < 2
  std::uint32_t r = whole;
  for (int i = 0; i < 12; ++i) {
    x = x * x >> 31;
    r = r << 1 | static_cast<std::uint32_t>(x >> 32);
    if (x >> 32) x >>= 1;
  }
  return r;
}

}  // namespace ddf::delta
