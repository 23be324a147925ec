// A delta as it is sent: a head, an index of the target's blocks, and the payloads of those that it makes.
//
//  head (64 bytes, big-endian):
//    magic "ddfdelt1" | target root (128) | base root (128) | target bytes (64) | base bytes (64) | index bytes (32) | zero (32)
//  index: groups of blocks in the order of the digest table, each varint(count << 2 | kind), then
//    keep   zigzag varint: first block of the base, less the one expected (after the last kept; 0 at first); its digests are the base's
//    patch  per block: varint payload bytes, digest of the result (128)
//    whole  per block: digest (128); the block is sent as it is, outside the delta
//  payloads, one after the other, in the order of the blocks (codecs/delta/block.hpp)
//
// Varints are little-endian groups of seven bits, at most ten bytes, the shortest form. A group holds all the blocks that it can: one
// list of blocks has one index.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/digest.hpp"

namespace ddf::delta {

struct stream_row {
  enum class kind : std::uint8_t { keep = 0, patch = 1, whole = 2 } by = kind::keep;
  std::uint64_t base_row = 0;              // keep
  std::uint64_t offset = 0, bytes = 0;     // patch: its payload in the stream
  digest result;
};

struct stream_head {
  static constexpr std::size_t wire_size = 64;
  digest target_root, base_root;
  std::uint64_t target_bytes = 0, base_bytes = 0;
  std::uint32_t index_bytes = 0;
};

/// The most that an index of so many blocks takes: each a group of its own, with the longest length and a digest.
constexpr std::uint64_t index_bytes_max(std::uint64_t rows) { return rows * (1 + 10 + digest::size); }

/// Head and index. Sets `index_bytes` and the offsets of the rows' payloads. Input: `rows` with `bytes` of each payload.
std::vector<std::byte> write_stream_head(stream_head& h, std::vector<stream_row>& rows);

/// Errors: integrity. Input: the first bytes of a stream.
result<stream_head> parse_stream_head(std::span<const std::byte> first);

/// Errors: integrity when it is not an index of `rows` blocks whose payloads fill a stream of `stream_bytes`, or keeps blocks the
/// base has not; stale_base when the base has fewer digests than it must. Allocates in proportion to `rows`, which the caller has bounded.
result<std::vector<stream_row>> parse_stream_index(const stream_head& h, std::span<const std::byte> index, std::span<const digest> base_rows, std::uint64_t rows,
                                                   std::uint64_t stream_bytes);

}  // namespace ddf::delta
