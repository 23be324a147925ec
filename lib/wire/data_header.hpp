// The header of a DATA packet: one segment, on the bulk lane or as a repair.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ddf {

inline constexpr std::uint8_t protocol_version = 1;

enum class packet_type : std::uint8_t {
  data = 0, announce = 1, catalogue_chunk = 2, query = 3, join = 4, welcome = 5, status = 6, nack = 7,
  done = 8, farewell = 9, repair_notice = 10, close = 11, commit = 12, grant = 13, release = 14,
};

/// The type of a packet of our protocol version; nothing for anything else. Cost: O(1).
std::optional<packet_type> type_of(std::span<const std::byte> datagram);

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |version| type 0|     flags     |      segment (high 16)        |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                      segment (low 32)                         |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                         session tag                           |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                         sequence                              |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                         payload ...                           |
struct data_header {
  static constexpr std::size_t wire_size = 16;   // bytes; small, since every 1,500 bytes pay for it
  enum flag : std::uint8_t {
    confirm = 1,        // receivers in the rate loop answer this packet with a STATUS
    repair = 2,         // sent before: its segment number says nothing about gaps
    unicast = 4,        // on the repair lane: `sequence` counts the packets sent to this receiver alone
    drained = 8,        // a repair, and nothing more is queued for whom it is sent to: what was asked for and is not here is lost
    authenticated = 128 // a 16-byte tag ends the packet (reserved: dropped by receivers that hold no key)
  };
  std::uint8_t flags = 0;
  std::uint64_t segment = 0;        // 48 bits; the session's segment number
  std::uint32_t session_tag = 0;    // low 32 bits of the session id
  std::uint32_t sequence = 0;       // low 32 bits of the count of packets sent to the group before this one
  bool operator==(const data_header&) const = default;
};

/// Of the first bytes of a packet. Nothing: another type or version.
std::optional<data_header> parse_data_header(std::span<const std::byte, data_header::wire_size> header);
/// Nothing: not a DATA packet, or one without a payload.
std::optional<data_header> parse_data_header(std::span<const std::byte> datagram);
void write_data_header(const data_header& h, std::span<std::byte, data_header::wire_size> out);

/// The full counter whose low 32 bits are `low`, nearest to `near`: wrapped numbers exist on the wire and nowhere else.
std::uint64_t unwrap(std::uint32_t low, std::uint64_t near);

}  // namespace ddf
