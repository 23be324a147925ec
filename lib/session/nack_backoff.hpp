// How long a receiver waits before it asks, so that few speak first.
#pragma once
#include <algorithm>
#include <cmath>
#include "lib/model/assert.hpp"
#include "lib/model/time.hpp"

namespace ddf {

/// How long a receiver waits before it sends a NACK, so that few speak first and the rest are suppressed.
///
/// Input:  `uniform` in [0, 1); `max` >= 0; `group_size` >= 1, in receivers, may be a guess.
/// Output: a delay in [0, max]; the larger the group, the rarer a short one.
/// Errors: none; values outside these bounds are programming errors.
/// Cost:   O(1), no allocation.
/// Source: RFC 5401 §3.2.3 (truncated exponential), with lambda = ln(group size) + 1.
inline duration nack_backoff(double uniform, duration max, double group_size) {
  DDF_ASSERT(uniform >= 0 && uniform < 1 && max >= duration::zero() && group_size >= 1);
  const double lambda = std::log(group_size) + 1;
  const double x = uniform * (std::exp(lambda) - 1) + 1;
  return std::chrono::duration_cast<duration>(max * std::clamp(std::log(x) / lambda, 0.0, 1.0));
}

}  // namespace ddf
