// The delta of one block of a target: a sequence of records, each with the place of its base.
//
// Each record begins with a byte of three fields, from the low bit:
//
//   length : 2    0 a varint follows; 1 the rest of the block; 2 512 KiB; 3 as the record before it that was no keep
//   base   : 2    0 where the base of the record before it ended; 1 a signed varint follows: the distance from there; 2 none
//   element: 4    as in element.hpp; 15 a keep, which is no more than this byte and its varints and may be of any length
//
// then the varints of length and distance, and unless it is a keep: the number of bytes of the record as a varint (absent when
// the record makes the rest of the block: it is all that is left) and these bytes, as in record.hpp.
// docs/delta-format.md says it in full.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "codecs/delta/align.hpp"
#include "codecs/delta/record.hpp"

namespace ddf::delta {

class base_bytes {   // random access to a base that does not change meanwhile
 public:
  virtual ~base_bytes() = default;
  virtual std::uint64_t size() const = 0;
  /// The bytes at an offset: a view where they are in memory, else read into `room`. Thread-safe.
  virtual result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& room) const = 0;
};

/// How blocks were made, for `--explain`: sums over every block that was encoded with the same account.
struct account {
  struct line {
    std::uint64_t records = 0;
    std::uint64_t target_bytes = 0;
    std::uint64_t payload_bytes = 0;   // with framing
    bool operator==(const line&) const = default;
  };
  std::array<line, 8> by_operation;   // index: operation
  std::uint64_t framing_bytes = 0;    // of all payload_bytes
  std::uint64_t no_base_bytes = 0;    // of all target_bytes: those without a base

  line& of(operation o) { return by_operation[static_cast<std::size_t>(o)]; }
  const line& of(operation o) const { return by_operation[static_cast<std::size_t>(o)]; }
  line total() const;
  account& operator+=(const account& other);
};

/// Appends the payload of a block to `out`; nothing at all when the block is the base at the same offset.
/// Input:  `target` are the bytes of the object from `offset` on, up to 4 GiB; `regions` as align() gave them for the whole
///         target (found by binary search).
/// Errors: those of reading the base; invalid_argument when the regions are not this target's and this base's.
/// Cost:   that of the records; reads each byte of the base once, record by record, and holds no more than one in memory.
result<void> encode_block(workspace& w, std::uint64_t offset, std::span<const std::byte> target, std::span<const region> regions,
                          const base_bytes& base, profile p, std::vector<std::byte>& out, account* made = nullptr);

/// Makes a block.
/// Errors: integrity for a payload that does not make exactly `target.size()` bytes or reaches outside the base, then `target`
///         holds anything; those of reading the base.
/// Cost:   that of the records; memory for one record's base where the base is not in memory. Nothing is allocated by a length
///         that the payload claims.
result<void> apply_block(workspace& w, std::uint64_t offset, std::span<const std::byte> payload, const base_bytes& base, std::span<std::byte> target);

}  // namespace ddf::delta
