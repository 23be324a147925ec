// Classes of elements by the exponent of their base: the larger it is, the coarser the steps, the rarer and smaller a change.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element.hpp"

namespace ddf::delta {

inline constexpr unsigned classes_max = 16;

/// Which class a base element is of: how far its exponent is below `top`, in steps of 2^coarse, in [0, count).
/// Source: P(change) is about |update| / ulp(base), and the ulp doubles with each exponent.
struct class_map {
  std::uint8_t exponent_at = 0, exponent_bits = 0;   // of the element; no bits: everything is class 0
  std::uint16_t top = 0;
  std::uint8_t coarse = 0, count = 1;

  template <std::unsigned_integral U>
  unsigned exponent(U x) const {
    return static_cast<unsigned>(x >> exponent_at) & ((1u << exponent_bits) - 1);
  }
  template <std::unsigned_integral U>
  unsigned of(U x) const {
    const unsigned e = exponent(x);
    return std::min(e >= top ? 0 : (top - e) >> coarse, count - 1u);
  }
};

/// The map of an element without classes: what read() and choose_classes() start from.
class_map map_of(element e);

/// A map with at most `count_max` classes that tells the exponents of n elements of a base apart; looks at 4,096 of them at most.
class_map choose_classes(element e, const std::byte* base, std::size_t n, unsigned count_max);

void write_classes(bit_writer& bits, const class_map& m);
bool read_classes(bit_reader& bits, class_map& m);   // m: of map_of()

}  // namespace ddf::delta
