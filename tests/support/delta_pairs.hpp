// Small pairs of base and target for the tests of delta records.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element.hpp"
#include "codecs/delta/number.hpp"
#include "lib/model/prng.hpp"

namespace ddf::test {

inline std::vector<delta::element> every_element() {
  std::vector<delta::element> all;
  for (std::uint8_t e = 0; e <= delta::element_last; ++e) all.push_back(static_cast<delta::element>(e));
  return all;
}

inline std::vector<std::byte> random_bytes(prng& random, std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (auto& b : bytes) b = static_cast<std::byte>(random.next() & 0xff);
  return bytes;
}

/// Elements whose exponents lie near one another, as weights' do, where the element has one; else small numbers.
inline std::vector<std::byte> weights(prng& random, delta::element e, std::size_t bytes) {
  std::vector<std::byte> out = random_bytes(random, bytes);
  const unsigned width = static_cast<unsigned>(delta::width_of(e));
  for (std::size_t i = 0; i + width <= bytes; i += width) {
    std::uint64_t v = random.next() >> (64 - 8 * width);
    const auto halvings = static_cast<unsigned>(std::countr_zero(random.next() | 1u << 12));   // half in the first octave, a quarter in the next ...
    const auto exponent = [&](unsigned at, unsigned bits, unsigned top) {
      v &= ~(((std::uint64_t(1) << bits) - 1) << at);
      v |= std::uint64_t(top > halvings ? top - halvings : 0) << at;
    };
    switch (e) {
      case delta::element::f8_e4m3: exponent(3, 4, 10); break;
      case delta::element::f8_e5m2: exponent(2, 5, 15); break;
      case delta::element::f16: exponent(10, 5, 12); break;
      case delta::element::bf16: exponent(7, 8, 122); break;
      case delta::element::f32: exponent(23, 8, 122); break;
      case delta::element::f64: exponent(52, 11, 1020); break;
      default: v = random.next() % 50; break;
    }
    for (unsigned b = 0; b < width; ++b) out[i + b] = static_cast<std::byte>(v >> 8 * b & 0xff);
  }
  return out;
}

enum class change { none, one, sparse, runs, half, drift, all_small, random, shift };
inline constexpr change every_change[] = {change::none, change::one, change::sparse, change::runs, change::half, change::drift, change::all_small, change::random, change::shift};

inline std::vector<std::byte> changed(prng& random, delta::element e, const std::vector<std::byte>& base, change how) {
  std::vector<std::byte> target = base;
  const std::size_t width = delta::width_of(e), n = base.size() / width;
  if (how == change::random) return random_bytes(random, base.size());
  if (how == change::shift) {
    const std::size_t by = 1 + random.next() % 100;
    for (std::size_t i = base.size(); i-- != 0;) target[i] = i >= by ? base[i - by] : static_cast<std::byte>(random.next() & 0xff);
    return target;
  }
  const auto add = [&](std::size_t i, std::int64_t d) {
    delta::with_width(e, [&]<class U>(U) {
      std::byte* const p = target.data() + i * sizeof(U);
      delta::store(p, static_cast<U>(delta::load<U>(p) + static_cast<U>(d)));
    });
  };
  const auto small = [&]() -> std::int64_t {
    const std::int64_t size = random.next() % 10 != 0 ? 1 : static_cast<std::int64_t>(random.next() % 1000);
    return random.next() % 2 != 0 ? size : -size;
  };
  if (how == change::one && !target.empty()) target[random.next() % target.size()] ^= std::byte{0x80};
  bool in_run = false;
  for (std::size_t i = 0; i < n; ++i) switch (how) {
      case change::sparse: if (random.next() % 60 == 0) add(i, small()); break;
      case change::half: if (random.next() % 2 == 0) add(i, small()); break;
      case change::drift: add(i, static_cast<std::int64_t>(random.next() % 41) - 20); break;
      case change::all_small: add(i, random.next() % 2 != 0 ? 1 : -1); break;
      case change::runs:
        if (i % 16 == 0) in_run = random.next() % 20 == 0;
        if (in_run) add(i, static_cast<std::int64_t>(random.next() % 100000));
        break;
      default: break;
    }
  if (how != change::none && base.size() % width != 0 && random.next() % 2 == 0) target.back() ^= std::byte{1};
  return target;
}

}  // namespace ddf::test
