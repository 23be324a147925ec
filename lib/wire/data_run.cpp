#include "lib/wire/data_run.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ddf {

data_run data_run::part(std::uint32_t i, std::uint32_t n) const {
  data_run r = *this;
  r.head.segment += i;
  r.head.sequence += i;
  r.payloads += i * stride;
  r.count = n;
  return r;
}

static std::uint64_t big_endian_word(const std::byte* at) {
  std::uint64_t w;
  std::memcpy(&w, at, sizeof w);
  return std::endian::native == std::endian::little ? __builtin_bswap64(w) : w;
}

std::optional<data_run> take_run(const packet_array& packets) {
  if (packets.count == 0 || packets.payload_bytes == 0) return std::nullopt;   // a segment has at least one byte
  const auto head = parse_data_header(std::span<const std::byte, data_header::wire_size>(packets.headers, data_header::wire_size));
  if (!head) return std::nullopt;
  data_run r{*head, packets.payloads, packets.payload_bytes, packets.payload_stride, 1};
  // Both halves of the header end in what counts up; a number that would wrap ends a run.
  const std::uint64_t first = big_endian_word(packets.headers), second = big_endian_word(packets.headers + 8);
  const std::uint64_t most = std::min((std::uint64_t(1) << 48) - head->segment, (std::uint64_t(1) << 32) - head->sequence);
  for (const std::uint64_t left = std::min<std::uint64_t>(packets.count, most); r.count < left; ++r.count) {
    const std::byte* at = packets.headers + r.count * packets.header_stride;
    if (big_endian_word(at) != first + r.count || big_endian_word(at + 8) != second + r.count) break;
  }
  return r;
}

std::optional<data_run> take_run(std::span<const std::byte> datagrams, std::size_t datagram_bytes) {
  const std::size_t size = std::min(datagram_bytes, datagrams.size());
  if (size <= data_header::wire_size) return std::nullopt;
  const std::byte* at = datagrams.data();
  return take_run({at, size, at + data_header::wire_size, size, size - data_header::wire_size, datagrams.size() / size});
}

}  // namespace ddf
