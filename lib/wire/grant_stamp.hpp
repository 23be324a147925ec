// What stands before and behind the segments of a grant in memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include "lib/model/ids.hpp"

namespace ddf {

/// Session (64) and grant (64), big-endian. Who reads too late, when the memory holds another grant, or reads from a process that has
/// taken the place of the one that granted, finds another stamp.
using grant_stamp = std::array<std::byte, 16>;
grant_stamp stamp_of(session_id session, std::uint64_t grant);

}  // namespace ddf
