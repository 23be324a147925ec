// Finds where bytes of a base stand in a target in which they moved.
//
// Anchors are 8-byte keys sampled from the base. Read at every byte of a window of the target they vote for a shift: how far
// from the target's bytes the base's are. A shift is a proposal; who uses it looks at both sides first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "codecs/delta/tensor_map.hpp"

namespace ddf::delta {

using shift = std::uint64_t;   // base offset less target offset, modulo 2^64

/// An 8-byte key that tells places apart: nothing when it repeats itself after four bytes or fewer, as constants do.
std::optional<std::uint64_t> key_at(std::span<const std::byte> bytes, std::size_t at);

class anchors {
 public:
  static constexpr std::uint64_t spacing_bytes_max_small = 128 << 10;   // up to count_max of these
  static constexpr std::size_t count_max = 1 << 15;

  struct extent {
    std::uint64_t offset = 0, bytes = 0;
  };

  /// Samples one key per 128 KiB of these extents; more in small bases, fewer in those over 4 GiB. Errors: those of reading.
  static result<anchors> sample(const read_function& read, std::span<const extent> base);

  /// What a window of a target should have so that some 16 anchors lie in it, up to 4 MiB.
  std::size_t window_bytes() const;

  /// The shifts that most anchors in `window` agree on, best first; at least two anchors each, at most three shifts.
  /// Cost: one look into the filter per byte.
  std::vector<shift> vote(std::uint64_t target_offset, std::span<const std::byte> window) const;

 private:
  struct anchor {
    std::uint64_t key, offset;
  };
  std::size_t slot(std::uint64_t key) const { return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - filter_bits_)); }

  std::vector<anchor> anchors_;        // ascending by key, each key once
  std::vector<std::uint64_t> filter_;  // a bit per slot: whether an anchor may have the key
  unsigned filter_bits_ = 16;
  std::uint64_t spacing_ = spacing_bytes_max_small;
};

}  // namespace ddf::delta
