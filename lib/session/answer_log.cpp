#include "lib/session/answer_log.hpp"

#include <algorithm>

namespace ddf {

void answer_log::add(time_point when, range r, std::uint64_t sequence) {
  auto it = map_.upper_bound(r.first);
  if (it != map_.begin() && std::prev(it)->second.last > r.first) --it;
  while (it != map_.end() && it->first < r.last) {   // cut what it replaces
    const std::uint64_t a = it->first;
    const value v = it->second;
    it = map_.erase(it);
    if (a < r.first) {
      map_.emplace(a, value{r.first, v.sequence, v.when});
    }
    if (v.last > r.last) {
      map_.emplace(r.last, value{v.last, v.sequence, v.when});
      order_.emplace_back(v.when, r.last);
      break;
    }
  }
  map_[r.first] = value{r.last, sequence, when};
  order_.emplace_back(when, r.first);
  while (map_.size() > entries_max || order_.size() > 2 * entries_max) {
    const auto [t, first] = order_.front();
    order_.pop_front();
    if (const auto old = map_.find(first); old != map_.end() && old->second.when <= t) map_.erase(old);
  }
}

void answer_log::forget_before(time_point when) {
  while (!order_.empty() && order_.front().first < when) {
    const auto [t, first] = order_.front();
    order_.pop_front();
    if (const auto old = map_.find(first); old != map_.end() && old->second.when <= t) map_.erase(old);
  }
}

void answer_log::not_on_the_way(range r, std::uint64_t heard, std::vector<range>& out) const {
  auto it = map_.upper_bound(r.first);
  if (it != map_.begin() && std::prev(it)->second.last > r.first) --it;
  std::uint64_t at = r.first;
  for (; it != map_.end() && it->first < r.last; ++it) {
    if (it->second.sequence < heard) continue;
    if (it->first > at) out.push_back({at, it->first});
    at = std::max(at, it->second.last);
  }
  if (at < r.last) out.push_back({at, r.last});
}

}  // namespace ddf
