// What the bytes of a part are made of. Deltas use the width and the place of the exponent; nothing is ever computed in floating point.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ddf::delta {

enum class element : std::uint8_t { bytes = 0, i8 = 1, f8_e4m3 = 2, f8_e5m2 = 3, i16 = 4, f16 = 5, bf16 = 6, i32 = 7, f32 = 8, i64 = 9, f64 = 10 };
inline constexpr std::uint8_t element_last = 10;

/// Bytes of one element: 1, 2, 4 or 8; little-endian in memory and on the wire.
constexpr std::size_t width_of(element e) {
  switch (e) {
    case element::bytes: case element::i8: case element::f8_e4m3: case element::f8_e5m2: return 1;
    case element::i16: case element::f16: case element::bf16: return 2;
    case element::i32: case element::f32: return 4;
    case element::i64: case element::f64: return 8;
  }
  return 1;
}

}  // namespace ddf::delta
