// DATA packets that follow each other in all they say: how a first pass arrives, and what costs least to take in at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include "lib/wire/data_header.hpp"

namespace ddf {

struct data_run {
  data_header head;                     // of the first; each later one has a segment and a sequence higher by one, and the same flags
  const std::byte* packets = nullptr;   // the first, with its header
  std::size_t packet_bytes = 0;         // of each; they lie one after the other
  std::uint32_t count = 0;

  std::size_t payload_bytes() const { return packet_bytes - data_header::wire_size; }   // of each
  std::span<const std::byte> payload(std::uint32_t i) const { return {packets + i * packet_bytes + data_header::wire_size, payload_bytes()}; }
  /// `n` of them, from the i-th on. Input: i + n <= count.
  data_run part(std::uint32_t i, std::uint32_t n) const;
};

/// The longest run at the start of `datagrams`, which hold `datagram_bytes` each, the last perhaps fewer. Nothing: the first is
/// not a DATA packet. Cost: two comparisons a packet.
std::optional<data_run> take_run(std::span<const std::byte> datagrams, std::size_t datagram_bytes);

}  // namespace ddf
