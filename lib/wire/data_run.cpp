#include "lib/wire/data_run.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ddf {

data_run data_run::part(std::uint32_t i, std::uint32_t n) const {
  data_run r = *this;
  r.head.segment += i;
  r.head.sequence += i;
  r.packets += i * packet_bytes;
  r.count = n;
  return r;
}

static std::uint64_t big_endian_word(const std::byte* at) {
  std::uint64_t w;
  std::memcpy(&w, at, sizeof w);
  return std::endian::native == std::endian::little ? __builtin_bswap64(w) : w;
}

std::optional<data_run> take_run(std::span<const std::byte> datagrams, std::size_t datagram_bytes) {
  const std::size_t size = std::min(datagram_bytes, datagrams.size());
  const auto head = parse_data_header(datagrams.first(size));
  if (!head) return std::nullopt;
  data_run r{*head, datagrams.data(), size, 1};
  // Both halves of the header end in what counts up. A number that wraps ends a run: the carry changes what stands above it.
  const std::uint64_t first = big_endian_word(r.packets), second = big_endian_word(r.packets + 8);
  for (std::size_t left = datagrams.size() / size; r.count < left; ++r.count) {
    const std::byte* at = r.packets + r.count * size;
    if (big_endian_word(at) != first + r.count || big_endian_word(at + 8) != second + r.count) break;
  }
  return r;
}

}  // namespace ddf
