// The progress display as a line of text. Pure.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <ddf/options.hpp>

#include "lib/model/object_name.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {

inline std::string_view phase_name(enum progress::phase phase) {
  switch (phase) {
    case progress::phase::discovering: return "discovering";
    case progress::phase::sending: return "sending";
    case progress::phase::receiving: return "receiving";
    case progress::phase::repairing: return "repairing";
    case progress::phase::committing: return "committing";
    case progress::phase::lingering: return "lingering";
    case progress::phase::finished: return "finished";
  }
  return "unknown";
}

/// How many columns `text` takes: one for each character that is not a continuation byte. Wide and combining
/// characters are counted wrong; they occur in object names only, which stand last and are cut first.
inline std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// One line: phase, bar, percent, rate, time left, receivers, NACKs, object; what does not fit in `columns` is left
/// out, the least important first. Input: `seconds` since the program started.
inline std::string progress_line(const progress& p, bool sender, double seconds, std::size_t columns) {
  const bool waiting = p.phase == progress::phase::discovering;
  const bool known = p.bytes_total > 0;
  const double part = known ? std::min(1.0, static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes_total)) : 0;

  std::vector<std::string> fields;  // the most important first
  if (waiting) {
    fields.push_back(fmt::format("waiting for {}  {}", sender ? "receivers" : "a sender", clock_text(seconds)));
  } else {
    fields.push_back(fmt::format("{:<10}", phase_name(p.phase)));
    if (known) fields.push_back(fmt::format("{:3.0f}%", std::floor(part * 100)));  // never 100 % before the end
    if (p.bytes_per_s > 0) fields.push_back(fmt::format("{:>11}", rate_text(p.bytes_per_s)));
    if (known && p.bytes_per_s > 0 && p.bytes_done < p.bytes_total)
      fields.push_back("ETA " +
                       clock_text(std::ceil(static_cast<double>(p.bytes_total - p.bytes_done) / p.bytes_per_s)));
  }
  if (sender)
    fields.push_back(waiting ? fmt::format("{} joined", p.receivers_joined)
                             : fmt::format("{}/{} receivers", p.receivers_complete, p.receivers_joined));
  if (p.nacks > 0) fields.push_back(fmt::format("{} NACK{}", p.nacks, p.nacks == 1 ? "" : "s"));
  if (!waiting && !p.current.empty()) fields.push_back(printable(p.current));

  if (columns_of(fields[0]) > columns) return fields[0].substr(0, columns);  // ASCII, so bytes are columns
  constexpr std::size_t bar_least = 12, bar_most = 40;
  std::size_t used = 0, count = 0;
  for (; count < fields.size(); ++count) {
    const auto width = columns_of(fields[count]) + (count > 0 ? 2 : 0);
    if (used + width > columns) break;
    used += width;
  }
  std::string bar;
  if (!waiting && known && count > 1) {
    // What stands last makes room for the bar; phase, percent and rate do not.
    while (count > 3 && used + 2 + bar_least > columns) used -= columns_of(fields[--count]) + 2;
    if (used + 2 + bar_least <= columns) {
      const auto width = std::min(bar_most, columns - used - 2) - 2;
      const auto filled = static_cast<std::size_t>(std::floor(part * static_cast<double>(width)));
      bar = "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
    }
  }
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) line += "  ";
    line += fields[i];
    if (i == 0 && !bar.empty()) line += "  " + bar;
  }
  return line;
}

}  // namespace ddf::tools
