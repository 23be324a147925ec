#include "lib/model/range_set.hpp"

#include <algorithm>

namespace ddf {

std::uint64_t range_set::insert(std::uint64_t first, std::uint64_t last) {
  if (first >= last) return 0;
  if (!map_.empty()) {   // the common case: in order, at the end
    auto tail = std::prev(map_.end());
    if (tail->second == first) {
      tail->second = last;
      count_ += last - first;
      return last - first;
    }
  }
  auto it = map_.upper_bound(first);
  if (it != map_.begin() && std::prev(it)->second >= first) --it;
  std::uint64_t from = first, to = last, covered = 0;
  while (it != map_.end() && it->first <= last) {
    const std::uint64_t a = std::max(it->first, first), b = std::min(it->second, last);
    covered += b > a ? b - a : 0;
    from = std::min(from, it->first);
    to = std::max(to, it->second);
    it = map_.erase(it);
  }
  map_.emplace_hint(it, from, to);
  const std::uint64_t added = (last - first) - covered;
  count_ += added;
  return added;
}

std::uint64_t range_set::erase(std::uint64_t first, std::uint64_t last) {
  if (first >= last || map_.empty()) return 0;
  auto it = map_.upper_bound(first);
  if (it != map_.begin() && std::prev(it)->second > first) --it;
  std::uint64_t removed = 0;
  while (it != map_.end() && it->first < last) {
    const std::uint64_t a = it->first, b = it->second;
    const std::uint64_t from = std::max(a, first), to = std::min(b, last);
    removed += to - from;
    if (a < from) {
      it->second = from;
      ++it;
    } else {
      it = map_.erase(it);
    }
    if (to < b) it = map_.emplace_hint(it, to, b);
  }
  count_ -= removed;
  return removed;
}

bool range_set::contains(std::uint64_t first, std::uint64_t last) const {
  if (first >= last) return true;
  auto it = map_.upper_bound(first);
  return it != map_.begin() && std::prev(it)->second >= last;
}

std::optional<range> range_set::first_in(std::uint64_t first, std::uint64_t last) const {
  if (first >= last) return std::nullopt;
  auto it = map_.upper_bound(first);
  if (it != map_.begin() && std::prev(it)->second > first) --it;
  if (it == map_.end() || it->first >= last) return std::nullopt;
  return range{std::max(it->first, first), std::min(it->second, last)};
}

bool range_set::intersects(std::uint64_t first, std::uint64_t last) const { return first_in(first, last).has_value(); }

std::optional<range> range_set::first_gap(std::uint64_t first, std::uint64_t last) const {
  auto it = map_.upper_bound(first);
  if (it != map_.begin() && std::prev(it)->second > first) first = std::prev(it)->second;
  if (first >= last) return std::nullopt;
  return range{first, it == map_.end() ? last : std::min(it->first, last)};
}

std::uint64_t range_set::count_in(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t n = 0;
  while (auto r = first_in(first, last)) {
    n += r->size();
    first = r->last;
  }
  return n;
}

std::optional<range> range_set::front() const {
  if (map_.empty()) return std::nullopt;
  return range{map_.begin()->first, map_.begin()->second};
}

std::optional<range> range_set::back() const {
  if (map_.empty()) return std::nullopt;
  return range{map_.rbegin()->first, map_.rbegin()->second};
}

std::vector<range> range_set::to_vector() const {
  std::vector<range> out;
  out.reserve(map_.size());
  for (const auto& [first, last] : map_) out.push_back(range{first, last});
  return out;
}

}  // namespace ddf
