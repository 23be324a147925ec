#include "lib/session/repair_queue.hpp"

#include <algorithm>

namespace ddf {

void repair_queue::erase(range r) {
  if (r.first >= r.last || map_.empty()) return;
  auto it = map_.upper_bound(r.first);
  if (it != map_.begin() && std::prev(it)->second.last > r.first) --it;
  while (it != map_.end() && it->first < r.last) {
    const std::uint64_t a = it->first;
    const value v = it->second;
    const std::uint64_t from = std::max(a, r.first), to = std::min(v.last, r.last);
    count_ -= to - from;
    if (a < from) {
      it->second.last = from;
      ++it;
    } else {
      it = map_.erase(it);
    }
    if (to < v.last) it = map_.emplace_hint(it, to, value{v.last, v.receiver});
  }
}

bool repair_queue::add(range r, std::uint32_t receiver) {
  if (r.first >= r.last) return true;
  if (map_.size() >= ranges_max) return false;
  auto it = map_.upper_bound(r.first);
  if (it != map_.begin() && std::prev(it)->second.last > r.first) --it;
  std::uint64_t at = r.first;
  while (at < r.last) {
    if (it == map_.end() || it->first >= r.last) {   // free up to the end
      it = map_.emplace_hint(it, at, value{r.last, receiver});
      count_ += r.last - at;
      break;
    }
    if (it->first > at) {   // free up to the next entry
      const std::uint64_t next = it->first;
      map_.emplace_hint(it, at, value{next, receiver});
      count_ += next - at;
      at = next;
    }
    // An entry that covers `at`: the overlap is wanted by both.
    value& v = it->second;
    const std::uint64_t end = std::min(v.last, r.last);
    if (v.receiver != receiver && v.receiver != several) {
      const value old = v;
      if (it->first < at) {
        v.last = at;
        ++it;
        it = map_.emplace_hint(it, at, value{end, several});
      } else {
        v.last = end;
        v.receiver = several;
      }
      if (end < old.last) {
        ++it;
        it = map_.emplace_hint(it, end, value{old.last, old.receiver});
        return true;
      }
    }
    at = end;
    ++it;
  }
  return true;
}

std::optional<repair_queue::entry> repair_queue::next(std::uint64_t segment) const {
  auto it = map_.upper_bound(segment);
  if (it != map_.begin() && std::prev(it)->second.last > segment) --it;
  if (it == map_.end()) return std::nullopt;
  return entry{{std::max(it->first, segment), it->second.last}, it->second.receiver};
}

}  // namespace ddf
