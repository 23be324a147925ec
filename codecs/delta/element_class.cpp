#include "codecs/delta/element_class.hpp"

#include <array>

#include "codecs/delta/number.hpp"

namespace ddf::delta {

class_map map_of(element e) {
  const auto exponent = [](std::uint8_t at, std::uint8_t bits) { return class_map{.exponent_at = at, .exponent_bits = bits}; };
  switch (e) {
    case element::f8_e4m3: return exponent(3, 4);
    case element::f8_e5m2: return exponent(2, 5);
    case element::f16: return exponent(10, 5);
    case element::bf16: return exponent(7, 8);
    case element::f32: return exponent(23, 8);
    case element::f64: return exponent(52, 11);
    case element::bytes: case element::i8: case element::i16: case element::i32: case element::i64: break;
  }
  return {};
}

class_map choose_classes(element e, const std::byte* base, std::size_t n, unsigned count_max) {
  class_map m = map_of(e);
  if (m.exponent_bits == 0 || n == 0 || count_max <= 1) return m;
  std::array<std::uint32_t, 2048> seen{};
  // Stretches of 64, since what costs are the cache lines.
  const std::size_t step = std::max<std::size_t>(64, n / 64);
  std::uint32_t samples = 0;
  with_width(e, [&]<class U>(U) {
    for (std::size_t at = 0; at < n; at += step)
      for (std::size_t i = at; i < std::min(at + 64, n); ++i, ++samples) ++seen[m.exponent(load<U>(base + i * sizeof(U)))];
  });
  // Few large ones share the first class, few small ones the last.
  int top = (1 << m.exponent_bits) - 1;
  for (std::uint32_t above = 0; top > 0 && above + seen[top] <= samples / 64; --top) above += seen[top];
  int bottom = 0;
  for (std::uint32_t below = 0; bottom < top && below + seen[bottom] <= samples / 512; ++bottom) below += seen[bottom];
  const auto wanted = static_cast<unsigned>(top - bottom) + 1;
  while (m.coarse < 3 && (wanted + (1u << m.coarse) - 1) >> m.coarse > count_max) ++m.coarse;
  m.top = static_cast<std::uint16_t>(top);
  m.count = static_cast<std::uint8_t>(std::min(count_max, (wanted + (1u << m.coarse) - 1) >> m.coarse));
  return m;
}

void write_classes(bit_writer& bits, const class_map& m) {
  if (m.exponent_bits == 0) return;
  bits.put(m.count - 1u, 4);
  bits.put(m.coarse, 2);
  bits.put(m.top, m.exponent_bits);
}

bool read_classes(bit_reader& bits, class_map& m) {
  if (m.exponent_bits == 0) return true;
  bits.refill();
  m.count = static_cast<std::uint8_t>(1 + bits.take(4));
  m.coarse = static_cast<std::uint8_t>(bits.take(2));
  m.top = static_cast<std::uint16_t>(bits.take(m.exponent_bits));
  return bits.intact();
}

}  // namespace ddf::delta
