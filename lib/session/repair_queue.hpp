// What receivers asked for and was not sent yet: merged, so that a range asked for twice is sent once.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include "lib/model/range_set.hpp"

namespace ddf {

class repair_queue {
 public:
  static constexpr std::uint32_t several = ~std::uint32_t(0);   // more than one receiver asked
  static constexpr std::size_t ranges_max = 1 << 16;            // beyond it requests are dropped: receivers ask again

  /// Notes that `receiver` (or `several`) wants `r`. Output: false when the queue is full.
  /// Cost: O(log n + ranges overlapped).
  bool add(range r, std::uint32_t receiver);
  /// Forgets `r`, e.g. because it is about to be sent anyway.
  void erase(range r);

  struct entry {
    range segments;
    std::uint32_t receiver = several;
  };
  /// The first entry at or after `segment`.
  std::optional<entry> next(std::uint64_t segment = 0) const;
  bool empty() const { return map_.empty(); }
  std::size_t ranges() const { return map_.size(); }
  std::uint64_t count() const { return count_; }   // segments waiting

 private:
  struct value {
    std::uint64_t last;
    std::uint32_t receiver;
  };
  std::map<std::uint64_t, value> map_;   // first -> last, receiver; disjoint
  std::uint64_t count_ = 0;
};

}  // namespace ddf
