#include "codecs/delta/estimate.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element_class.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/magnitude.hpp"
#include "codecs/delta/number.hpp"

namespace ddf::delta {
namespace {

constexpr std::size_t sample_stretches = 16, stretch_elements = 256;

// Calls f for a few stretches of neighbours all over n elements; returns how many elements these were.
template <class F>
std::size_t for_sample(std::size_t n, F&& f) {
  if (n <= sample_stretches * stretch_elements) {
    for (std::size_t i = 0; i < n; ++i) f(i);
    return n;
  }
  for (std::size_t s = 0; s < sample_stretches; ++s) {
    const std::size_t begin = (n - stretch_elements) * s / (sample_stretches - 1);
    for (std::size_t i = begin; i < begin + stretch_elements; ++i) f(i);
  }
  return sample_stretches * stretch_elements;
}

// The entropy of what was counted, in 1/4096 bits. A sample looks more regular than what it is of: that is put right (Miller, Madow).
std::uint64_t entropy_4096(const histogram& h) {
  std::uint64_t total = 0, sum = 0, used = 0;
  for (const std::uint32_t count : h) {
    if (count == 0) continue;
    total += count;
    sum += std::uint64_t(count) * log2_4096(count);
    ++used;
  }
  return total == 0 ? 0 : total * log2_4096(total) - sum + (used - 1) * 2954;
}

share share_of(std::uint64_t bits_4096, std::size_t elements, std::size_t width) {
  return elements == 0 ? full_share : static_cast<share>(std::min<std::uint64_t>(bits_4096 / (8 * width * elements), 2 * full_share));
}

}  // namespace

change_sample sample_changes(const pair_view& p) {
  std::uint64_t changed = 0, following = 0;
  std::size_t last = ~std::size_t(0);
  const std::size_t taken = with_width(p.element, [&]<class U>(U) {
    return for_sample(p.n, [&](std::size_t i) {
      if (load<U>(p.base + i * sizeof(U)) == load<U>(p.target + i * sizeof(U))) return;
      ++changed;
      following += last + 1 == i && i != 0;
      last = i;
    });
  });
  if (taken == 0) return {};
  return {static_cast<share>(changed * full_share / taken), static_cast<share>(following * full_share / taken)};
}

share sample_dense(const pair_view& p) {
  const class_map m = choose_classes(p.element, p.base, p.n, classes_max);
  std::array<histogram, classes_max> seen{};
  std::uint64_t bits = 0;
  const std::size_t taken = with_width(p.element, [&]<class U>(U) {
    return for_sample(p.n, [&](std::size_t i) {
      const U base = load<U>(p.base + i * sizeof(U));
      const unsigned symbol = magnitude<U>::symbol(zigzag_difference(base, load<U>(p.target + i * sizeof(U))));
      ++seen[m.of(base)][symbol];
      bits += magnitude<U>::more_bits(symbol) * std::uint64_t(4096);
    });
  });
  for (unsigned c = 0; c < m.count; ++c) bits += entropy_4096(seen[c]);
  return share_of(bits, taken, width_of(p.element));
}

share sample_planes(element e, const std::byte* target, std::size_t n) {
  std::array<histogram, 8> seen{};
  const int rotation = map_of(e).exponent_bits != 0 ? 1 : 0;
  const std::size_t taken = with_width(e, [&]<class U>(U) {
    return for_sample(n, [&](std::size_t i) {
      const U v = std::rotl(load<U>(target + i * sizeof(U)), rotation);
      for (unsigned byte = 0; byte < sizeof(U); ++byte) ++seen[byte][v >> 8 * byte & 0xff];
    });
  });
  std::uint64_t bits = 0;
  for (std::size_t byte = 0; byte < width_of(e); ++byte) bits += std::min(entropy_4096(seen[byte]), std::uint64_t(8 * 4096) * taken);
  return share_of(bits, taken, width_of(e));
}

bool sample_moved(std::span<const std::byte> base, std::span<const std::byte> target) {
  constexpr std::size_t keys = 128, windows = 4, window_bytes = 16 << 10, slots = 2048;
  if (base.size() < 64 || target.size() < 64) return true;   // as quickly tried
  const auto slot_of = [](std::uint64_t key) { return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> 53); };
  static_assert(slots == std::size_t(1) << (64 - 53));
  std::array<std::uint32_t, slots> at{};   // 1 + where in the base
  for (std::size_t k = 0; k < keys; ++k) {
    const std::size_t offset = (base.size() - 8) * k / (keys - 1);
    at[slot_of(load<std::uint64_t>(base.data() + offset))] = static_cast<std::uint32_t>(offset + 1);
  }
  for (std::size_t window = 0; window < windows; ++window) {
    const std::size_t begin = target.size() / windows * window, end = std::min(begin + window_bytes, target.size() - 7);
    for (std::size_t i = begin; i < end; ++i) {
      const auto key = load<std::uint64_t>(target.data() + i);
      if (const std::uint32_t found = at[slot_of(key)]; found != 0 && load<std::uint64_t>(base.data() + found - 1) == key) return true;
    }
  }
  return false;
}

}  // namespace ddf::delta
