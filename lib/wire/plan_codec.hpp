// The plan of a session as bytes.
#pragma once
#include <cstddef>
#include <span>
#include <vector>
#include "lib/model/session_plan.hpp"

namespace ddf {

/// roots(32), per root: object(32) root(128); then deltas(32), per delta: object(32) base version(64) base root(128) bytes(64)
/// ranges(32), per range of blocks sent whole: first(32) size(32).
std::vector<std::byte> write_plan(const session_plan& p);
/// Errors: invalid_argument, too_large: malformed, or not a plan for this catalogue. Allocates in proportion to the input.
result<session_plan> parse_plan(std::span<const std::byte> bytes, const catalogue& c);

}  // namespace ddf
