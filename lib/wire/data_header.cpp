#include "lib/wire/data_header.hpp"

namespace ddf {

std::optional<packet_type> type_of(std::span<const std::byte> datagram) {
  if (datagram.empty()) return std::nullopt;
  const auto first = std::to_integer<unsigned>(datagram[0]);
  const unsigned type = first & 15;
  if (first >> 4 != protocol_version || type > static_cast<unsigned>(packet_type::release)) return std::nullopt;
  return static_cast<packet_type>(type);
}

std::optional<data_header> parse_data_header(std::span<const std::byte> d) {
  if (d.size() <= data_header::wire_size) return std::nullopt;   // a segment has at least one byte
  return parse_data_header(d.first<data_header::wire_size>());
}

std::optional<data_header> parse_data_header(std::span<const std::byte, data_header::wire_size> d) {
  if (std::to_integer<unsigned>(d[0]) != (protocol_version << 4 | static_cast<unsigned>(packet_type::data))) return std::nullopt;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(d[i]); };
  const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3)); };
  data_header h;
  h.flags = std::to_integer<std::uint8_t>(d[1]);
  h.segment = (byte(2) << 8 | byte(3)) << 32 | word(4);
  h.session_tag = word(8);
  h.sequence = word(12);
  return h;
}

void write_data_header(const data_header& h, std::span<std::byte, data_header::wire_size> out) {
  const auto word = [&](std::size_t i, std::uint32_t v) {
    for (std::size_t k = 0; k < 4; ++k) out[i + k] = static_cast<std::byte>(v >> (24 - 8 * k) & 0xff);
  };
  out[0] = static_cast<std::byte>(protocol_version << 4 | static_cast<unsigned>(packet_type::data));
  out[1] = static_cast<std::byte>(h.flags);
  out[2] = static_cast<std::byte>(h.segment >> 40 & 0xff);
  out[3] = static_cast<std::byte>(h.segment >> 32 & 0xff);
  word(4, static_cast<std::uint32_t>(h.segment));
  word(8, h.session_tag);
  word(12, h.sequence);
}

std::uint64_t unwrap(std::uint32_t low, std::uint64_t near) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
  if (distance < 0 && near < static_cast<std::uint64_t>(-static_cast<std::int64_t>(distance))) return low;
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

}  // namespace ddf
