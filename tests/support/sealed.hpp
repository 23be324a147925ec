// Datagrams whose check is right although their content need not be: to reach what stands behind the check.
#pragma once
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <vector>

namespace ddf::test {

/// Sets the length and check fields of a control datagram for its first `length` bytes.
inline void seal(std::vector<std::byte>& datagram, std::size_t length) {
  if (datagram.size() < 16 || length < 16 || length > datagram.size() || length > 65535) return;
  datagram[2] = static_cast<std::byte>(length >> 8);
  datagram[3] = static_cast<std::byte>(length & 0xff);
  for (std::size_t i = 4; i < 8; ++i) datagram[i] = std::byte{0};
  const auto check = static_cast<std::uint32_t>(XXH3_64bits(datagram.data(), length));
  for (std::size_t i = 0; i < 4; ++i) datagram[4 + i] = static_cast<std::byte>(check >> (24 - 8 * i) & 0xff);
}
inline void seal(std::vector<std::byte>& datagram) { seal(datagram, datagram.size()); }

}  // namespace ddf::test
