// The slow, obvious model of a repair_queue: for every segment, who wants it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include "lib/session/repair_queue.hpp"

namespace ddf::test {

class wanted_by {
 public:
  void add(range r, std::uint32_t receiver) {
    for (std::uint64_t s = r.first; s < r.last; ++s) {
      const auto [it, fresh] = wants_.try_emplace(s, receiver);
      if (!fresh && it->second != receiver) it->second = repair_queue::several;
    }
  }
  void erase(range r) {
    for (std::uint64_t s = r.first; s < r.last; ++s) wants_.erase(s);
  }
  const std::map<std::uint64_t, std::uint32_t>& segments() const { return wants_; }

 private:
  std::map<std::uint64_t, std::uint32_t> wants_;
};

inline std::string difference(const repair_queue& real, const wanted_by& model, std::uint64_t end) {
  std::map<std::uint64_t, std::uint32_t> seen;
  std::uint64_t last = 0;
  for (auto e = real.next(); e; e = real.next(e->segments.last)) {
    if (e->segments.first >= e->segments.last || e->segments.first < last) return "entries are not ascending";
    last = e->segments.last;
    for (std::uint64_t s = e->segments.first; s < e->segments.last; ++s) seen[s] = e->receiver;
  }
  if (seen != model.segments()) return "segments";
  if (real.count() != seen.size()) return "count";
  if (real.empty() != seen.empty()) return "empty";
  for (std::uint64_t s = 0; s <= end; ++s) {
    const auto e = real.next(s);
    const auto it = model.segments().lower_bound(s);
    if (e.has_value() != (it != model.segments().end())) return "next";
    if (e && (e->segments.first != it->first || e->receiver != it->second)) return "next";
  }
  return {};
}

}  // namespace ddf::test
