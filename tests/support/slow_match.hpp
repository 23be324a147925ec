// name_matches() as its definition reads: recursive, exponential, obvious.
#pragma once
#include <string_view>
#include "lib/model/object_name.hpp"

namespace ddf::test {

inline std::size_t character_bytes(std::string_view s) {   // of the first character; a byte that starts none counts as one
  for (std::size_t n = 1; n <= 4 && n <= s.size(); ++n)
    if (is_utf8(s.substr(0, n))) return n;
  return 1;
}

inline bool slow_match(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.starts_with("**")) {
    for (;;) {
      if (slow_match(name, pattern.substr(2))) return true;
      if (name.empty()) return false;
      name.remove_prefix(character_bytes(name));
    }
  }
  if (pattern.starts_with('*')) {
    for (;;) {
      if (slow_match(name, pattern.substr(1))) return true;
      if (name.empty() || name[0] == '/') return false;
      name.remove_prefix(character_bytes(name));
    }
  }
  if (name.empty()) return false;
  if (pattern.starts_with('?')) return name[0] != '/' && slow_match(name.substr(character_bytes(name)), pattern.substr(1));
  return name[0] == pattern[0] && slow_match(name.substr(1), pattern.substr(1));
}

}  // namespace ddf::test
