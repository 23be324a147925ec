// The delta of one block of a target: a sequence of records, each with the place of its base.
#pragma once
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

/// Appends the payload of a block to `out`: nothing at all when the block equals the base at the same offset… decided by the caller.
/// Input:  `target` are the bytes of the object from `offset` on; `regions` as align() gave them for the whole target (found by binary search).
/// Errors: those of reading the base.
result<void> encode_block(workspace& w, std::uint64_t offset, std::span<const std::byte> target, std::span<const region> regions,
                          const base_bytes& base, profile p, std::vector<std::byte>& out);

/// Makes a block. Errors: integrity for a payload that does not make exactly `target.size()` bytes or reaches outside the base; those of reading the base.
result<void> apply_block(workspace& w, std::uint64_t offset, std::span<const std::byte> payload, const base_bytes& base, std::span<std::byte> target);

}  // namespace ddf::delta
