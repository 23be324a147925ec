#include "lib/model/object_name.hpp"

#include <algorithm>

namespace ddf {

// Length of the UTF-8 sequence at the start of `s`, 0 when there is no valid one (RFC 3629: no surrogates, no overlong forms).
static std::size_t utf8_length(std::string_view s) {
  const auto b = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto tail = [&](std::size_t i) { return i < s.size() && (b(i) & 0xc0) == 0x80; };
  if (b(0) < 0x80) return 1;
  if (b(0) >= 0xc2 && b(0) <= 0xdf) return tail(1) ? 2 : 0;
  if (b(0) >= 0xe0 && b(0) <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (b(0) == 0xe0 && b(1) < 0xa0) return 0;
    if (b(0) == 0xed && b(1) > 0x9f) return 0;
    return 3;
  }
  if (b(0) >= 0xf0 && b(0) <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (b(0) == 0xf0 && b(1) < 0x90) return 0;
    if (b(0) == 0xf4 && b(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string printable(std::string_view text) {
  static constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    const auto c = static_cast<unsigned char>(text[0]);
    const bool c1 = c == 0xc2 && n == 2 && static_cast<unsigned char>(text[1]) < 0xa0;   // U+0080 to U+009F: terminals obey some
    if (c1) text.remove_prefix(1), out += "\\xc2";
    if (const auto b = static_cast<unsigned char>(text[0]); n == 0 || c < 0x20 || c == 0x7f || c1) {
      out += "\\x";
      out += hex[b >> 4];
      out += hex[b & 15];
      text.remove_prefix(1);
    } else {
      out += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return out;
}

static result<void> check_path(std::string_view name, std::string_view what, std::size_t bytes_max) {
  const auto bad = [&](std::string_view why) {
    return fail(errc::invalid_argument, std::string(what) + " '" + printable(name.substr(0, 80)) + "' " + std::string(why));
  };
  if (name.empty()) return bad("is empty");
  if (name.size() > bytes_max) return bad("is longer than " + std::to_string(bytes_max) + " bytes");
  if (name.find('\0') != std::string_view::npos) return bad("contains a NUL byte");
  if (!is_utf8(name)) return bad("is not UTF-8");
  std::string_view rest = name;
  for (;;) {
    const auto slash = rest.find('/');
    const auto component = rest.substr(0, slash);
    if (component.empty()) return bad("has an empty component (a leading, trailing or double '/')");
    if (component == "." || component == "..") return bad("has a '.' or '..' component");
    if (component.size() > name_bytes_max) return bad("has a component longer than 255 bytes");
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

result<void> check_object_name(std::string_view name) { return check_path(name, "object name", name_bytes_max); }
result<void> check_part_name(std::string_view name) { return check_path(name, "part name", part_name_bytes_max); }

bool name_matches(std::string_view name, std::string_view pattern) {
  // Two saved positions, for the last '*' and the last '**', are enough, since a later one covers what an earlier one of
  // its kind could still try. No recursion, and polynomial: O(name² × pattern) at worst.
  const auto step = [&](std::size_t at) { return std::max<std::size_t>(utf8_length(name.substr(at)), 1); };   // whole characters
  std::size_t n = 0, p = 0;
  std::size_t star_p = std::string_view::npos, star_n = 0;
  std::size_t deep_p = std::string_view::npos, deep_n = 0;
  for (;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      if (p + 1 < pattern.size() && pattern[p + 1] == '*') {
        p += 2;
        deep_p = p, deep_n = n, star_p = std::string_view::npos;
      } else {
        ++p;
        star_p = p, star_n = n;
      }
      continue;
    }
    if (n == name.size() && p == pattern.size()) return true;
    if (n < name.size() && p < pattern.size() && pattern[p] == '?' && name[n] != '/') {
      n += step(n), ++p;
      continue;
    }
    if (n < name.size() && p < pattern.size() && pattern[p] == name[n]) {
      ++n, ++p;
      continue;
    }
    if (star_p != std::string_view::npos && star_n < name.size() && name[star_n] != '/') {
      p = star_p, n = star_n += step(star_n);
      continue;
    }
    if (deep_p != std::string_view::npos && deep_n < name.size()) {
      p = deep_p, n = deep_n += step(deep_n), star_p = std::string_view::npos;
      continue;
    }
    return false;
  }
}

}  // namespace ddf
