#include "transports/verbs/device_selector.hpp"

#include <algorithm>
#include <charconv>

#include "lib/model/object_name.hpp"

namespace ddf {

static tl::unexpected<error> refused(std::string_view text, const std::string& why) {
  return fail(errc::invalid_argument, "device '" + printable(std::string(text)) + "': " + why + "; give names as in mlx5_0, mlx5_0:1,mlx5_1, =mlx5_0 (this name alone) or ^mlx5_2 (all but that); ibv_devices lists them");
}

result<device_selector> device_selector::parse(std::string_view text) {
  device_selector s;
  std::string_view left = text;
  if (left.starts_with('^')) s.excludes_ = true, left.remove_prefix(1);
  if (left.starts_with('=')) s.exact_ = true, left.remove_prefix(1);
  while (!left.empty()) {
    const auto comma = left.find(',');
    const std::string_view one = left.substr(0, comma);
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    if (one.empty()) continue;   // as NCCL does
    const auto colon = one.find(':');
    entry e{std::string(one.substr(0, colon)), {}};
    if (e.name.empty()) return refused(text, "a name is missing");
    if (e.name.find_first_of("^= \t") != std::string::npos) return refused(text, "^ and = stand once, before all names");
    if (colon != std::string_view::npos) {
      const std::string_view digits = one.substr(colon + 1);
      unsigned port = 0;
      const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
      if (wrong != std::errc{} || end != digits.data() + digits.size() || port == 0 || port > 255) return refused(text, "a port is a number from 1 to 255");
      e.port = port;
    }
    s.entries_.push_back(std::move(e));
  }
  if (s.entries_.empty() && !text.empty()) return refused(text, "it names no device");
  return s;
}

bool device_selector::matches(std::string_view device, unsigned port) const {
  if (entries_.empty()) return true;
  const bool listed = std::ranges::any_of(entries_, [&](const entry& e) {
    return (exact_ ? device == e.name : device.starts_with(e.name)) && (!e.port || *e.port == port);
  });
  return listed != excludes_;
}

}  // namespace ddf
