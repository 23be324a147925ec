#include "lib/store/object_bytes.hpp"

#include <algorithm>

namespace ddf {

object_bytes::object_bytes(const manifest& m, part_reader read, part_view_of view) : begins_{0}, read_(std::move(read)), view_(std::move(view)) {
  for (const part& p : m.parts) begins_.push_back(begins_.back() + p.size);
}

std::size_t object_bytes::part_at(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, offset) - begins_.begin()) - 1;   // empty parts are passed over
}

result<std::span<const std::byte>> object_bytes::at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& room) const {
  if (offset > size() || bytes > size() - offset) return fail(errc::integrity, "bytes past the end of an object are asked for");
  if (view_ && bytes != 0) {
    const std::size_t p = part_at(offset);
    if (offset + bytes <= begins_[p + 1])
      if (const auto seen = view_(static_cast<std::uint32_t>(p), offset - begins_[p], bytes); !seen.empty()) return seen;
  }
  if (room.size() < bytes) room.resize(bytes);
  const auto into = std::span(room).first(bytes);
  if (auto ok = read(offset, into); !ok) return tl::unexpected(ok.error());
  return std::span<const std::byte>(into);
}

result<void> object_bytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size() || out.size() > size() - offset) return fail(errc::integrity, "bytes past the end of an object are asked for");
  while (!out.empty()) {
    const std::size_t p = part_at(offset);
    const std::size_t n = std::min<std::uint64_t>(out.size(), begins_[p + 1] - offset);
    if (auto ok = read_(static_cast<std::uint32_t>(p), offset - begins_[p], out.first(n)); !ok) return ok;
    out = out.subspan(n);
    offset += n;
  }
  return {};
}

}  // namespace ddf
