// A zigzag difference as a symbol, which is entropy-coded, and further bits, which are not.
//
// Small values are symbols of their own. Above, a symbol stands for the highest bits and how many follow: 2^m symbols an octave.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

namespace ddf::delta {

template <std::unsigned_integral U>
struct magnitude {
  static constexpr unsigned kept_bits = sizeof(U) == 8 ? 2 : 3;   // m: below the highest bit; all fits in 256 symbols

  static constexpr unsigned symbol(U v) {
    if constexpr (sizeof(U) == 1) return v;
    const auto more = static_cast<unsigned>(std::bit_width(static_cast<U>(v >> kept_bits | 1))) - 1;
    return (more << kept_bits) + static_cast<unsigned>(v >> more);
  }
  /// How many bits follow the symbol; more than the type holds when there is no such symbol.
  static constexpr unsigned more_bits(unsigned symbol) {
    if constexpr (sizeof(U) == 1) return 0;
    return symbol < (2u << kept_bits) ? 0 : (symbol >> kept_bits) - 1;
  }
  static constexpr unsigned more_bits_max = 8 * sizeof(U) - 1 - kept_bits;
  static constexpr U value(unsigned symbol, U more) {
    if constexpr (sizeof(U) == 1) return static_cast<U>(symbol);
    const unsigned bits = more_bits(symbol);
    const unsigned high = bits == 0 ? symbol : (1u << kept_bits) + (symbol & ((1u << kept_bits) - 1));
    return static_cast<U>(static_cast<U>(U(high) << bits) | more);
  }
};

}  // namespace ddf::delta
