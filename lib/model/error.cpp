#include <ddf/error.hpp>

#include <array>
#include <cstring>

namespace ddf {

std::string_view name(errc code) {
  static constexpr std::array<std::string_view, 18> names{
      "ok",        "invalid_argument", "io",        "network",        "no_sender", "no_receiver",
      "sender_lost", "receiver_lost",  "incomplete", "integrity",     "source_changed", "refused",
      "too_large", "no_multicast",     "interrupted", "unsupported",
      "stale_base", "unknown_version"};
  const auto i = static_cast<std::size_t>(code);
  return i < names.size() ? names[i] : "unknown";
}

std::string describe(const error& e) {
  std::string text = e.what.empty() ? std::string(name(e.code)) : e.what;
  if (e.os != 0) {
    std::array<char, 128> buffer{};
    text += ": ";
    text += ::strerror_r(e.os, buffer.data(), buffer.size());   // the GNU form: returns the text
  }
  return text;
}

}  // namespace ddf
