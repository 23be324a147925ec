// A set of 64-bit numbers kept as disjoint half-open ranges.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ddf {

struct range {   // half-open
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  auto operator<=>(const range&) const = default;
  std::uint64_t size() const { return last - first; }
};

class range_set {
 public:
  using const_iterator = std::map<std::uint64_t, std::uint64_t>::const_iterator;   // first -> last

  /// Adds [first, last). Output: how many numbers were new. Cost: O(log n) amortised; O(1) when it extends the last range.
  std::uint64_t insert(std::uint64_t first, std::uint64_t last);
  /// Removes [first, last). Output: how many numbers were there. Cost: O(log n + ranges removed).
  std::uint64_t erase(std::uint64_t first, std::uint64_t last);

  bool contains(std::uint64_t number) const { return contains(number, number + 1); }
  bool contains(std::uint64_t first, std::uint64_t last) const;
  bool intersects(std::uint64_t first, std::uint64_t last) const;

  /// The first range of [first, last) that is in the set, clipped to it.
  std::optional<range> first_in(std::uint64_t first, std::uint64_t last) const;
  /// The first range of [first, last) that is not in the set, clipped to it.
  std::optional<range> first_gap(std::uint64_t first, std::uint64_t last) const;
  /// How many numbers of [first, last) are in the set. Cost: O(log n + ranges touched).
  std::uint64_t count_in(std::uint64_t first, std::uint64_t last) const;

  std::uint64_t count() const { return count_; }
  std::size_t ranges() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  void clear() { map_.clear(), count_ = 0; }
  std::optional<range> front() const;
  std::optional<range> back() const;
  const_iterator begin() const { return map_.begin(); }
  const_iterator end() const { return map_.end(); }
  std::vector<range> to_vector() const;
  bool operator==(const range_set& o) const { return map_ == o.map_; }

 private:
  std::map<std::uint64_t, std::uint64_t> map_;
  std::uint64_t count_ = 0;
};

}  // namespace ddf
