// How long a record would be, from a sample of its elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/delta/operations.hpp"

namespace ddf::delta {

/// A size in 1/4096 of the elements' own: above 4096 when it does not pay.
using share = std::uint32_t;
inline constexpr share full_share = 4096;

/// Elements of a sample that differ, and those of them that follow another.
struct change_sample {
  share changed = 0, following = 0;
};
change_sample sample_changes(const pair_view& p);
/// What dense and planes would need; the tables they send are not counted.
share sample_dense(const pair_view& p);
share sample_planes(element e, const std::byte* target, std::size_t n);

/// Whether some of the target's bytes are those of the base elsewhere, as far as a few windows show.
bool sample_moved(std::span<const std::byte> base, std::span<const std::byte> target);

}  // namespace ddf::delta
