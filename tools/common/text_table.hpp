// Columns of text, as the reports for people use them. Pure.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lib/model/object_name.hpp"
#include "tools/common/progress_line.hpp"

namespace ddf::tools {

using row = std::vector<std::string>;

/// Columns as wide as they need to be; the first to the left, the `right` ones after it to the right.
inline std::string table(const std::vector<row>& rows, std::size_t right, std::string_view indent = "") {
  std::vector<std::size_t> widths;
  for (const auto& r : rows) {
    widths.resize(std::max(widths.size(), r.size()));
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], columns_of(r[i]));
  }
  std::string out;
  for (const auto& r : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < r.size(); ++i) {
      const std::string blanks(widths[i] - columns_of(r[i]), ' ');
      line += (i > 0 ? "  " : "");
      line += i > 0 && i <= right ? blanks + r[i] : r[i] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

/// A name that fits in a column: the end of a long one, because that is where names differ.
inline std::string short_name(const std::string& name, std::size_t columns_most = 48) {
  std::string text = printable(name);
  if (columns_of(text) <= columns_most) return text;
  std::size_t at = 0;
  for (auto surplus = columns_of(text) - (columns_most - 3); surplus > 0; --surplus) do
      ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return "..." + text.substr(at);
}

inline std::string seconds_text(double s) { return fmt::format("{:.{}f} s", s, s < 0.0995 ? 4 : s < 9.95 ? 2 : 1); }

/// A share of something, with as many digits as tell it from nothing: "0.0066", "0.42", "1.00".
inline std::string share_text(double share) { return fmt::format("{:.{}f}", share, share < 0.0995 ? 4 : 2); }

inline std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : std::string(between)) + part;
  return out;
}

}  // namespace ddf::tools
