// Rates, sizes and times as people write them. Pure; exact, because every value is an integer times a unit.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <ddf/error.hpp>

namespace ddf::tools {

inline constexpr std::uint64_t rate_bits_per_s_min = 1'000;
inline constexpr std::uint64_t rate_bits_per_s_max = 1'600'000'000'000;
inline constexpr std::chrono::nanoseconds time_max = std::chrono::hours(24 * 365);

namespace detail {

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

/// A decimal number, and what follows it. `scaled` refuses what does not fit in 64 bits.
struct quantity {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;     // in units of 1 / fraction_of
  std::uint64_t fraction_of = 1;  // a power of ten, at most 10^6
  std::string_view unit;

  /// The number times `multiplier`, rounded down. Precondition: multiplier <= 2^43.
  std::optional<std::uint64_t> scaled(std::uint64_t multiplier) const {
    std::uint64_t value = 0;
    if (__builtin_mul_overflow(whole, multiplier, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, fraction * multiplier / fraction_of, &value)) return std::nullopt;
    return value;
  }
};

/// Reads DIGITS[.DIGITS][SPACE]UNIT. Output: none for anything else, a sign included; a number beyond 64 bits is
/// the largest there is, so that its range check answers.
inline std::optional<quantity> read_quantity(std::string_view text) {
  const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  if (!digit(0)) return std::nullopt;
  quantity q;
  std::size_t i = 0;
  for (; digit(i); ++i) {
    const auto value = static_cast<std::uint64_t>(text[i] - '0');
    if (__builtin_mul_overflow(q.whole, std::uint64_t{10}, &q.whole) ||
        __builtin_add_overflow(q.whole, value, &q.whole)) {
      while (digit(i)) ++i;
      q.whole = std::numeric_limits<std::uint64_t>::max();
      break;
    }
  }
  if (i < text.size() && text[i] == '.') {
    if (!digit(++i)) return std::nullopt;
    for (; digit(i); ++i) {
      if (q.fraction_of == 1'000'000) return std::nullopt;  // more than six decimals: a typing error, not a wish
      q.fraction = q.fraction * 10 + static_cast<std::uint64_t>(text[i] - '0');
      q.fraction_of *= 10;
    }
  }
  if (i < text.size() && text[i] == ' ') ++i;
  q.unit = text.substr(i);
  if (q.unit.empty() && !text.empty() && text.back() == ' ') return std::nullopt;
  return q;
}

struct prefix {
  std::uint64_t multiplier = 1;
  bool binary = false;  // "Ki", "Mi", ...
  std::string_view rest;
};

/// Takes k, M, G or T, in either case, and the "i" behind it, from the front of a unit.
inline prefix take_prefix(std::string_view unit, std::uint64_t step) {
  static constexpr std::string_view letters = "kmgt";
  prefix p{.rest = unit};
  const auto power = unit.empty() ? std::string_view::npos : letters.find(lower(unit.front()));
  if (power == std::string_view::npos) return p;
  p.rest.remove_prefix(1);
  if (!p.rest.empty() && p.rest.front() == 'i') {
    p.rest.remove_prefix(1);
    p.binary = true;
    step = 1024;
  }
  for (std::size_t n = 0; n <= power; ++n) p.multiplier *= step;
  return p;
}

inline tl::unexpected<error> unusable(std::string_view text, std::string_view allowed) {
  return fail(errc::invalid_argument, fmt::format("read '{}'; allowed: {}", text, allowed));
}

}  // namespace detail

inline constexpr std::string_view rate_allowed =
    "1 kbit/s to 1.6 Tbit/s, as in 10G, 400Mbit, 1.5Gbit (bits per second) or 80MB/s, 80MiB/s (bytes per second)";

/// A rate: "10G", "400Mbit", "1.5Gbit/s", "100000000" are bits per second; "80MB/s", "80MiB/s" are bytes per second.
///
/// Output: bytes per second, from 125 to 2 * 10^11.
/// Errors: invalid_argument with what was read and what is allowed.
inline result<std::uint64_t> parse_rate(std::string_view text) {
  const auto q = detail::read_quantity(text);
  if (!q) return detail::unusable(text, rate_allowed);
  const auto p = detail::take_prefix(q->unit, 1000);
  const auto unit = detail::lower(p.rest);
  bool bytes = false;
  if (!unit.empty() && unit != "bit" && unit != "bits" && unit != "bit/s" && unit != "bits/s") {
    // A lone letter decides: b is a bit, B is a byte.
    if (unit != "b" && unit != "b/s" && unit != "bps") return detail::unusable(text, rate_allowed);
    bytes = p.rest.front() == 'B';
  }
  const auto value = q->scaled(bytes ? p.multiplier * 8 : p.multiplier);
  if (!value || *value < rate_bits_per_s_min || *value > rate_bits_per_s_max)
    return detail::unusable(text, rate_allowed);
  return *value / 8;
}

/// A size: "64MiB", "64M", "1G", "512k" count in 1024s; "64MB" counts in 1000s; a bare number is bytes.
///
/// Output: bytes. Errors: invalid_argument with what was read and what is allowed, also beyond 2^64 - 1.
inline result<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::string_view allowed = "bytes, as in 65536, 512k, 64MiB, 64M, 1G (1024s) or 64MB (1000s)";
  const auto q = detail::read_quantity(text);
  if (!q) return detail::unusable(text, allowed);
  const bool decimal = detail::take_prefix(q->unit, 1000).rest == "B" && !detail::take_prefix(q->unit, 1000).binary;
  const auto p = detail::take_prefix(q->unit, decimal ? 1000 : 1024);
  if (!p.rest.empty() && p.rest != "B") return detail::unusable(text, allowed);
  if (p.multiplier == 1 && q->fraction != 0) return detail::unusable(text, allowed);
  const auto value = q->scaled(p.multiplier);
  if (!value) return detail::unusable(text, allowed);
  return *value;
}

inline constexpr std::string_view time_allowed =
    "0 to 365d, as in 250ms, 30s, 2m, 1h, 1d, 50us; a bare number is seconds";

/// A time: "30s", "250ms", "2m", "1h", "1d", "50us", "100ns"; a bare number is seconds.
///
/// Output: 0 to 365 days. Errors: invalid_argument with what was read and what is allowed.
inline result<std::chrono::nanoseconds> parse_time(std::string_view text) {
  struct named {
    std::string_view unit;
    std::uint64_t nanoseconds;
  };
  static constexpr std::array<named, 10> units{{{"", 1'000'000'000},
                                                {"ns", 1},
                                                {"us", 1'000},
                                                {"µs", 1'000},
                                                {"ms", 1'000'000},
                                                {"s", 1'000'000'000},
                                                {"m", 60'000'000'000},
                                                {"min", 60'000'000'000},
                                                {"h", 3'600'000'000'000},
                                                {"d", 86'400'000'000'000}}};
  const auto q = detail::read_quantity(text);
  if (!q) return detail::unusable(text, time_allowed);
  for (const auto& u : units) {
    if (u.unit != q->unit) continue;
    // A day has more nanoseconds than `scaled` takes; the fraction counts in microseconds, the rest of a unit.
    std::uint64_t value = 0;
    if (__builtin_mul_overflow(q->whole, u.nanoseconds, &value)) break;
    if (value > static_cast<std::uint64_t>(time_max.count())) break;
    value += u.nanoseconds >= q->fraction_of ? q->fraction * (u.nanoseconds / q->fraction_of)
                                             : q->fraction * u.nanoseconds / q->fraction_of;
    if (value > static_cast<std::uint64_t>(time_max.count())) break;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(value));
  }
  return detail::unusable(text, time_allowed);
}

/// A whole number from `least` to `most`, in decimal digits only.
inline result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto q = detail::read_quantity(text);
  const bool digits = q && q->unit.empty() && q->fraction_of == 1;
  // The largest number stands for all beyond it, so it is believed only when it is what the text says.
  const bool beyond = q && q->whole == std::numeric_limits<std::uint64_t>::max() && text != "18446744073709551615";
  if (!digits || beyond || q->whole < least || q->whole > most)
    return detail::unusable(text, fmt::format("a whole number from {} to {}", least, most));
  return q->whole;
}

/// "512 B", "64.0 MiB", "1.50 GiB".
inline std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t i = 0;
  while (value >= 1023.95 && i + 1 < units.size()) value /= 1024, ++i;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : 1, units[i]);
}

/// "980 bit/s", "1.03 Gbit/s", "400 Mbit/s".
inline std::string rate_text(double bytes_per_s) {
  static constexpr std::array<std::string_view, 5> units{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  double value = bytes_per_s > 0 ? bytes_per_s * 8 : 0;
  std::size_t i = 0;
  while (value >= 999.5 && i + 1 < units.size()) value /= 1000, ++i;
  return fmt::format("{:.{}f} {}", value, i == 0 || value >= 99.95 ? 0 : value < 9.995 ? 2 : 1, units[i]);
}

/// A duration on a clock: "0:07", "12:34", "1:02:03".
inline std::string clock_text(double seconds) {
  const auto s = static_cast<std::uint64_t>(seconds > 0 ? (seconds < 3.15e9 ? seconds : 3.15e9) : 0);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace ddf::tools
