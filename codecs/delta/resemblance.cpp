#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "codecs/delta/align.hpp"

namespace ddf::delta {

double resemblance(const std::vector<tensor>& base, const read_function& read_base, const std::vector<tensor>& target, const read_function& read_target) {
  constexpr std::size_t samples = 64, sample_bytes = 4096;
  std::unordered_map<std::string_view, const tensor*> by_name;
  for (const tensor& t : base) by_name.emplace(t.name, &t);
  std::vector<std::pair<const tensor*, const tensor*>> partners;
  std::uint64_t bytes = 0, matched = 0;
  for (const tensor& t : target) {
    bytes += t.bytes;
    const auto it = by_name.find(t.name);
    if (it == by_name.end() || it->second->element != t.element || it->second->bytes != t.bytes || t.bytes == 0) continue;
    matched += t.bytes;
    partners.emplace_back(it->second, &t);
  }
  if (matched == 0) return 0;
  // Samples at equal distances through what is matched, so that large tensors have more of them.
  std::vector<std::byte> a(sample_bytes), b(sample_bytes);
  std::uint64_t compared = 0, equal = 0, passed = 0;
  std::size_t taken = 0;
  for (const auto& [old, now] : partners) {
    for (; taken < samples && taken * matched / samples < passed + now->bytes; ++taken) {
      const std::uint64_t at = std::max(taken * matched / samples, passed) - passed;
      const std::size_t n = std::min<std::uint64_t>(sample_bytes, now->bytes - at);
      if (!read_base(old->offset + at, std::span(a).first(n)) || !read_target(now->offset + at, std::span(b).first(n))) return 0;
      for (std::size_t i = 0; i < n; ++i) equal += a[i] == b[i];
      compared += n;
    }
    passed += now->bytes;
  }
  return static_cast<double>(matched) / static_cast<double>(bytes) * static_cast<double>(equal) / static_cast<double>(std::max<std::uint64_t>(compared, 1));
}

}  // namespace ddf::delta
