// Time as the engines see it: handed in by whoever drives them, never read.
#pragma once
#include <chrono>

namespace ddf {

struct engine_clock {   // has no now(): only a shell knows the time
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<engine_clock>;
  static constexpr bool is_steady = true;
};
using duration = engine_clock::duration;
using time_point = engine_clock::time_point;

inline constexpr time_point never = time_point::max();

inline double seconds(duration d) { return std::chrono::duration<double>(d).count(); }
inline duration from_seconds(double s) {   // clamped: an absurd rate must not overflow a timer
  constexpr double longest = 1e9;
  s = s < 0 ? 0 : s > longest ? longest : s;
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(s));
}

}  // namespace ddf
