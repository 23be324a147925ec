// A record makes up to 1 MiB of a target from as much of a base: the operations of a delta.
//
// A record is one operation byte and a payload. Its length, the length of what it makes, the element and the bytes of the
// base are known to who decodes it, so none of them is repeated in the record.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "codecs/delta/element.hpp"

namespace ddf::delta {

inline constexpr std::size_t record_target_bytes_max = 1 << 20;
inline constexpr std::size_t record_overhead_bytes_max = 24;   // a record is never longer than what it makes plus this

enum class operation : std::uint8_t {
  keep = 0,          // the target is the base
  replace = 1,       // the bytes themselves
  sparse_context = 2,   // changed elements by position within the classes of the base's exponent
  sparse_fast = 3,      // changed elements by byte gaps and small differences
  gather = 4,           // runs of changed elements
  dense = 5,            // every element's difference, split by the base's exponent
  planes = 6,           // no base: exponent and mantissa apart
  prefix = 7,           // zstd with the base as prefix
};

/// tight: fewest bytes. fast: encodes and applies faster, for links above some 20 Gbit/s; touches only what changes.
enum class profile : std::uint8_t { tight = 0, fast = 1 };

/// Working memory of one thread, kept between calls.
class workspace;

/// Appends one record to `out`.
/// Input:  `target` 1 to record_target_bytes_max bytes; `base` as many, or empty when there is none. Lengths need not be
///         multiples of the element's width: what is left over at the end is coded too.
/// Output: the same bytes on every machine and compiler; at most target.size() + record_overhead_bytes_max.
/// Cost:   a and b of bench/delta: one pass at 0.35 or more of half the read rate. No allocation once `w` is warm.
void encode_record(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> target, profile p, std::vector<std::byte>& out);

/// Makes the target. Output: false when the record is not one for this base and length; then `target` holds anything.
/// Reads nothing outside the spans and writes nothing outside `target`, whatever the record holds.
bool decode_record(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> record, std::span<std::byte> target);

/// The same where base and target are one memory: only elements that change are written. Not idempotent: a second call, or one
/// that returned false, leaves bytes that are neither version.
bool decode_record_in_place(workspace& w, element e, std::span<const std::byte> record, std::span<std::byte> bytes);

}  // namespace ddf::delta
