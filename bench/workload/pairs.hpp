// Two versions of model weights, as training makes them: the pairs of bench/delta_records.
//
// An optimizer's step is far below half an ulp of most bf16 weights and the ulp doubles with each exponent; that is where the sparsity of
// published updates comes from, and what is simulated. 64 tensors, each with its own scale and update. A seed makes a pair.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string_view>
#include <vector>

#include "codecs/delta/element.hpp"
#include "lib/model/prng.hpp"

namespace ddf::workload {

struct version_pair {
  delta::element element;
  std::vector<std::byte> base, target;
};

struct pair_kind {
  char letter;
  std::string_view name, what;
};

inline constexpr pair_kind pair_kinds[] = {
    {'a', "a", "bf16, one step of reinforcement learning (1.33 % of the elements change)"},
    {'b', "b", "bf16, one step at ten times the rate (8.6 %)"},
    {'c', "c", "bf16, fine-tune drift (71 %)"},
    {'C', "c2", "bf16, drift by 5 % of each tensor's scale (94 %)"},
    {'d', "d", "fp32 master weights and both moments, one AdamW step (100 %)"},
    {'e', "e", "fp32 embedding, 1 % of its rows of 64 move"},
    {'g', "g", "identical"},
    {'h', "h", "two random files"},
    {'l', "laggard", "bf16, 32 steps behind (19 %)"},
};

namespace detail {

class normal_source {   // Box and Muller
 public:
  explicit normal_source(std::uint64_t seed) : random_(seed) {}
  double next() {
    if (has_spare_) return has_spare_ = false, spare_;
    const double r = std::sqrt(-2 * std::log(1 - random_.uniform())), angle = 2 * std::numbers::pi * random_.uniform();
    spare_ = r * std::sin(angle);
    has_spare_ = true;
    return r * std::cos(angle);
  }
  double between(double low, double high) { return low + (high - low) * random_.uniform(); }
  std::uint64_t bits() { return random_.next(); }

 private:
  prng random_;
  double spare_ = 0;
  bool has_spare_ = false;
};

inline std::uint16_t to_bf16(float f) {   // to nearest, ties to even
  const auto bits = std::bit_cast<std::uint32_t>(f);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
void put(std::vector<std::byte>& to, std::size_t index, T value) {   // the benchmark's machines are little-endian
  std::memcpy(to.data() + index * sizeof(T), &value, sizeof(T));
}

}  // namespace detail

/// `bytes` of each version, of which all tensors get an equal share.
inline version_pair make_pair(char letter, std::size_t bytes, std::uint64_t seed = 1, std::size_t tensors = 64) {
  using namespace detail;
  normal_source random(seed);
  version_pair p{letter == 'd' || letter == 'e' ? delta::element::f32 : letter == 'h' ? delta::element::bytes : delta::element::bf16, {}, {}};
  p.base.resize(bytes);
  p.target.resize(bytes);
  if (letter == 'h') {
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) put(p.base, i / 8, random.bits()), put(p.target, i / 8, random.bits());
    return p;
  }
  const std::size_t elements = bytes / width_of(p.element), each = elements / tensors;
  for (std::size_t t = 0; t < tensors; ++t) {
    const double scale = 0.02 * std::exp2(random.between(-1, 1));        // of the weights
    const double rms = std::exp2(random.between(-1, 1));                 // of the optimizer's normalized update
    const std::size_t begin = t * each, end = t + 1 == tensors ? elements : begin + each;
    bool row_moves = false;
    for (std::size_t i = begin; i < end; ++i) {
      const auto w = static_cast<float>(scale * random.next());
      const auto both = [&](double update) {
        put(p.base, i, to_bf16(w));
        put(p.target, i, to_bf16(static_cast<float>(w + update)));
      };
      switch (letter) {
        case 'a': both(2.85e-7 * rms * random.next()); break;
        case 'b': both(2.82e-6 * rms * random.next()); break;
        case 'c': both(1.1e-4 * random.next()); break;
        case 'C': both(0.05 * scale * random.next()); break;
        case 'l': both(8.4e-6 * rms * random.next()); break;
        case 'g': both(0); break;
        case 'e': {
          if (i % 64 == 0) row_moves = random.between(0, 1) < 0.0101;
          put(p.base, i, w);
          put(p.target, i, row_moves ? static_cast<float>(w + 0.05 * scale * random.next()) : w);
          break;
        }
        case 'd': {   // a third each: weights, first and second moments
          const std::size_t part = (i - begin) * 3 / (end - begin);
          const double gradient = 1e-3 * rms * random.next();
          const auto m = static_cast<float>(3e-4 * rms * random.next()), v = static_cast<float>(1e-6 * rms * rms * std::exp2(random.next()));
          const float m1 = static_cast<float>(0.9 * m + 0.1 * gradient), v1 = static_cast<float>(0.999 * v + 0.001 * gradient * gradient);
          put(p.base, i, part == 0 ? w : part == 1 ? m : v);
          put(p.target, i, part == 0 ? static_cast<float>(w - 1e-5 * (m1 / (std::sqrt(v1) + 1e-8) + 0.01 * w)) : part == 1 ? m1 : v1);
          break;
        }
        default: break;
      }
    }
  }
  return p;
}

}  // namespace ddf::workload
