// The value of a digest; codecs/digest.hpp computes it.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace ddf {

enum class digest_algorithm : std::uint8_t { xxh3_128 = 1 };   // against accidents; not a defence against attackers

struct digest {
  static constexpr std::size_t size = 16;   // bytes
  std::array<std::byte, size> bytes{};
  auto operator<=>(const digest&) const = default;
};

}  // namespace ddf
