#include "lib/model/manifest.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>

#include "lib/model/object_name.hpp"

namespace ddf {

static std::uint64_t blocks_of(std::uint64_t bytes, std::uint32_t block_bytes) {
  return bytes / block_bytes + (bytes % block_bytes != 0);
}

std::uint64_t manifest::size() const {
  std::uint64_t sum = 0;
  for (const part& p : parts) sum += p.size;
  return sum;
}

std::uint64_t manifest::blocks() const {
  std::uint64_t sum = 0;
  for (const part& p : parts) sum += blocks_of(p.size, block_bytes);
  return sum;
}

std::vector<block_place> block_places(const manifest& m) {
  std::vector<block_place> out;
  out.reserve(m.blocks());
  std::uint64_t begin = 0;
  for (std::uint32_t p = 0; p < m.parts.size(); ++p) {
    const std::uint64_t size = m.parts[p].size;
    for (std::uint64_t at = 0; at < size; at += m.block_bytes) out.push_back({p, at, begin + at, std::min<std::uint64_t>(m.block_bytes, size - at)});
    begin += size;
  }
  return out;
}

std::uint32_t block_bytes_for(std::uint64_t object_bytes) {
  const std::uint64_t target = object_bytes / 64;
  if (target <= limits::block_bytes_min) return limits::block_bytes_min;
  if (target >= limits::block_bytes_max) return limits::block_bytes_max;
  return static_cast<std::uint32_t>(std::bit_ceil(target));
}

// A folder's parts must not need one path to be both a file and a folder, nor one path twice.
static result<void> check_tree(const manifest& m) {
  std::unordered_set<std::string_view> leaves, folders;
  for (const part& p : m.parts) {
    if (!leaves.insert(p.name).second) return fail(errc::invalid_argument, "part '" + printable(p.name) + "' is there twice");
    const std::string_view name = p.name;
    for (auto slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1))
      folders.insert(name.substr(0, slash));
  }
  for (const part& p : m.parts)
    if (!p.directory && folders.contains(p.name))
      return fail(errc::invalid_argument, "part '" + printable(p.name) + "' is both a file and a folder");
  return {};
}

static result<void> check_manifest(const manifest& m) {
  if (auto ok = check_object_name(m.name); !ok) return ok;
  const auto bad = [&](std::string_view why) { return fail(errc::invalid_argument, "object '" + printable(m.name) + "': " + std::string(why)); };
  if (m.version.value == 0) return bad("version 0 is not a version (they start at 1)");
  if (m.algorithm != digest_algorithm::xxh3_128) return bad("unknown digest algorithm (a newer sender?)");
  if (m.element_bytes == 0 || m.element_bytes > 16) return bad("element width is not 1 to 16 bytes");
  if (!std::has_single_bit(m.block_bytes) || m.block_bytes < limits::block_bytes_min || m.block_bytes > limits::block_bytes_max)
    return bad("block size is not a power of two from 64 KiB to 4 MiB");
  if (!m.base.empty())
    if (auto ok = check_object_name(m.base); !ok) return ok;
  std::uint64_t sum = 0;
  for (const part& p : m.parts) {
    if (p.size > limits::object_bytes || (sum += p.size) > limits::object_bytes) return fail(errc::too_large, "object '" + printable(m.name) + "' is larger than 1 PiB");
    if (p.directory && p.size != 0) return bad("a folder has no bytes of its own");
    if (p.mode > 07777) return bad("permission bits out of range");
    if (m.kind == object_kind::folder || (m.kind == object_kind::memory && (m.parts.size() > 1 || !p.name.empty())))
      if (auto ok = check_part_name(p.name); !ok) return ok;
  }
  if (m.kind == object_kind::file && (m.parts.size() != 1 || !m.parts[0].name.empty() || m.parts[0].directory))
    return bad("a file has exactly one unnamed part");
  return m.kind == object_kind::file ? result<void>{} : check_tree(m);
}

result<void> check_catalogue(const catalogue& c) {
  if (c.empty()) return fail(errc::invalid_argument, "a session carries at least one object");
  if (c.size() > limits::objects) return fail(errc::too_large, "more than 65,536 objects in one session: send folders, or several times");
  std::uint64_t parts = 0, blocks = 0;
  std::unordered_set<std::string_view> names;
  for (const manifest& m : c) {
    if ((parts += m.parts.size()) > limits::parts) return fail(errc::too_large, "more than 1,048,576 parts in one session: send several times");
    if (auto ok = check_manifest(m); !ok) return ok;
    if ((blocks += m.blocks()) > limits::blocks) return fail(errc::too_large, "more than 64 TiB (2^24 blocks) in one session: send several times");
    if (!names.insert(m.name).second) return fail(errc::invalid_argument, "two objects are named '" + printable(m.name) + "': rename one (--name)");
  }
  return {};
}

}  // namespace ddf
