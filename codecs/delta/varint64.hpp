// Numbers of up to 64 bits, 7 a byte, the low ones first, a set high bit for "more follows". One number has one form.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ddf::delta {

inline void put_varint64(std::vector<std::byte>& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::byte>(v | 0x80));
  out.push_back(static_cast<std::byte>(v));
}

/// Takes a number off the front of `in`; nothing when it is cut short, exceeds 64 bits or ends in a needless zero.
inline std::optional<std::uint64_t> take_varint64(std::span<const std::byte>& in) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto b = static_cast<std::uint8_t>(in[i]);
    if (i == 9 && b > 1) return std::nullopt;
    v |= static_cast<std::uint64_t>(b & 0x7f) << (7 * i);
    if (b < 0x80) {
      if (b == 0 && i > 0) return std::nullopt;
      in = in.subspan(i + 1);
      return v;
    }
  }
  return std::nullopt;
}

/// Differences modulo 2^64, so that small ones of either sign are short.
constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }
constexpr std::uint64_t unzigzag(std::uint64_t v) { return v >> 1 ^ (0 - (v & 1)); }

}  // namespace ddf::delta
