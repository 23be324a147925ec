// Repairs that were sent and may still be on their way: asked for again too early, they are not sent twice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>
#include "lib/model/range_set.hpp"
#include "lib/model/time.hpp"

namespace ddf {

class answer_log {
 public:
  static constexpr std::size_t entries_max = 8192;   // beyond it the oldest are forgotten: at worst a repair is sent twice

  /// `r` left at `when`, the last of it with `sequence` (of the lane it left by).
  void add(time_point when, range r, std::uint64_t sequence);
  /// Forgets what left before `when`: it has arrived or is lost.
  void forget_before(time_point when);
  /// The pieces of `r` that are not on their way to a receiver which has heard the lane up to (not including) `heard`:
  /// what left earlier than that and is asked for is lost. Appended to `out`. Cost: O(log n + entries touched).
  void not_on_the_way(range r, std::uint64_t heard, std::vector<range>& out) const;
  std::size_t entries() const { return map_.size(); }

 private:
  struct value {
    std::uint64_t last, sequence;
    time_point when;
  };
  std::map<std::uint64_t, value> map_;                       // first -> …; disjoint, the newest wins
  std::deque<std::pair<time_point, std::uint64_t>> order_;   // when, first: oldest in front
};

}  // namespace ddf
