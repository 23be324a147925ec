// The slow, obvious model of a range_set: every number by itself.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <vector>
#include "lib/model/range_set.hpp"

namespace ddf::test {

class number_set {
 public:
  std::uint64_t insert(std::uint64_t first, std::uint64_t last) {
    std::uint64_t added = 0;
    for (std::uint64_t n = first; n < last; ++n) added += numbers_.insert(n).second;
    return added;
  }
  std::uint64_t erase(std::uint64_t first, std::uint64_t last) {
    std::uint64_t removed = 0;
    for (std::uint64_t n = first; n < last; ++n) removed += numbers_.erase(n);
    return removed;
  }
  bool has(std::uint64_t n) const { return numbers_.contains(n); }
  std::uint64_t count() const { return numbers_.size(); }
  std::uint64_t count_in(std::uint64_t first, std::uint64_t last) const {
    std::uint64_t n = 0;
    for (; first < last; ++first) n += has(first);
    return n;
  }
  std::optional<range> first_where(std::uint64_t first, std::uint64_t last, bool present) const {
    while (first < last && has(first) != present) ++first;
    if (first >= last) return std::nullopt;
    range r{first, first};
    while (r.last < last && has(r.last) == present) ++r.last;
    return r;
  }
  std::vector<range> to_vector() const {
    std::vector<range> out;
    for (const std::uint64_t n : numbers_) {
      if (!out.empty() && out.back().last == n) ++out.back().last;
      else out.push_back({n, n + 1});
    }
    return out;
  }

 private:
  std::set<std::uint64_t> numbers_;
};

/// What differs between the two over [0, end): empty when nothing does.
inline const char* difference(const range_set& real, const number_set& model, std::uint64_t end) {
  if (real.to_vector() != model.to_vector()) return "to_vector";
  if (real.count() != model.count()) return "count";
  if (real.ranges() != model.to_vector().size()) return "ranges";
  if (real.empty() != (model.count() == 0)) return "empty";
  const auto all = model.to_vector();
  if (real.front() != (all.empty() ? std::nullopt : std::optional(all.front()))) return "front";
  if (real.back() != (all.empty() ? std::nullopt : std::optional(all.back()))) return "back";
  for (std::uint64_t a = 0; a <= end; ++a)
    for (std::uint64_t b = a; b <= end; ++b) {
      if (real.count_in(a, b) != model.count_in(a, b)) return "count_in";
      if (real.contains(a, b) != (model.count_in(a, b) == b - a)) return "contains";
      if (real.intersects(a, b) != (model.count_in(a, b) != 0)) return "intersects";
      if (real.first_in(a, b) != model.first_where(a, b, true)) return "first_in";
      if (real.first_gap(a, b) != model.first_where(a, b, false)) return "first_gap";
    }
  return "";
}

}  // namespace ddf::test
