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
  // Both halves of the header end in what counts up; a number that would wrap ends a run.
  const std::uint64_t first = big_endian_word(r.packets), second = big_endian_word(r.packets + 8);
  const std::uint64_t most = std::min((std::uint64_t(1) << 48) - head->segment, (std::uint64_t(1) << 32) - head->sequence);
  for (const std::uint64_t left = std::min<std::uint64_t>(datagrams.size() / size, most); r.count < left; ++r.count) {
    const std::byte* at = r.packets + r.count * size;
    if (big_endian_word(at) != first + r.count || big_endian_word(at + 8) != second + r.count) break;
  }
  return r;
}

}  // namespace ddf
