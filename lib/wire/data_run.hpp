// DATA packets that follow each other in all they say: how a first pass arrives, and what costs least to take in at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include "lib/wire/data_header.hpp"

namespace ddf {

struct data_run {
  data_header head;                      // of the first; each later one has a segment and a sequence higher by one, and the same flags
  const std::byte* payloads = nullptr;   // the first one's
  std::size_t payload_bytes = 0;         // of each
  std::size_t stride = 0;                // from one payload to the next
  std::uint32_t count = 0;

  std::size_t packet_bytes() const { return payload_bytes + data_header::wire_size; }   // of each
  std::size_t bytes() const { return count * payload_bytes; }
  std::span<const std::byte> payload(std::uint32_t i) const { return {payloads + i * stride, payload_bytes}; }
  /// Hands over the payloads with their place in the run, in bytes; all at once when nothing lies between them.
  template <class Handler>
  void each_piece(Handler handle) const {
    if (stride == payload_bytes) return handle(std::size_t(0), std::span(payloads, bytes()));
    for (std::uint32_t i = 0; i < count; ++i) handle(i * payload_bytes, payload(i));
  }
  /// `n` of them, from the i-th on. Input: i + n <= count.
  data_run part(std::uint32_t i, std::uint32_t n) const;
};

/// Where packets of one size lie: each a header and a payload, the headers and the payloads each at equal distances.
struct packet_array {
  const std::byte* headers = nullptr;
  std::size_t header_stride = 0;
  const std::byte* payloads = nullptr;
  std::size_t payload_stride = 0;
  std::size_t payload_bytes = 0;   // of each
  std::size_t count = 0;
};

/// The longest run at the start of `packets`. Nothing: the first is not a DATA packet. Cost: two comparisons a packet.
std::optional<data_run> take_run(const packet_array& packets);
/// The same of `datagrams` that lie one behind the other and hold `datagram_bytes` each, the last perhaps fewer.
std::optional<data_run> take_run(std::span<const std::byte> datagrams, std::size_t datagram_bytes);

}  // namespace ddf
