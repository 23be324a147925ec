#include "lib/store/receive_records.hpp"

#include <algorithm>
#include <string_view>

#include "codecs/digest.hpp"
#include "lib/store/record.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::string_view partial_magic = "ddfpart1", committed_magic = "ddfdone1", digests_magic = "ddfdgst2";

std::vector<std::byte> write_record(const partial_record& p) {
  std::vector<std::byte> body;
  writer w(body);
  w.bytes(p.description.bytes);
  w.u16(static_cast<std::uint16_t>(p.path.size()));
  w.text(p.path);
  auto ranges = static_cast<std::uint32_t>(std::min<std::size_t>(p.complete.ranges(), partial_record::ranges_max));
  w.u32(ranges);
  for (auto it = p.complete.begin(); ranges > 0; ++it, --ranges) {
    w.u64(it->first);
    w.u64(it->second);
  }
  return seal_record(partial_magic, body);
}

std::optional<partial_record> parse_partial_record(std::span<const std::byte> record) {
  const auto body = unseal_record(partial_magic, record);
  if (!body) return std::nullopt;
  reader r(*body);
  partial_record p;
  p.description = r.digest();
  p.path = r.text(r.u16());
  const std::uint32_t ranges = r.u32();
  if (!r.ok() || ranges > partial_record::ranges_max || r.left() != std::size_t{ranges} * 16) return std::nullopt;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < ranges; ++i) {   // in order, none empty, none touching the one before
    const std::uint64_t first = r.u64(), last = r.u64();
    if (first >= last || last > limits::blocks || (i > 0 && first <= end)) return std::nullopt;
    p.complete.insert(first, last);
    end = last;
  }
  return p;
}

std::vector<std::byte> write_record(const committed_record& c) {
  std::vector<std::byte> body;
  writer w(body);
  w.bytes(c.description.bytes);
  w.bytes(c.root.bytes);
  w.u64(c.version.value);
  w.u64(c.inode);
  w.u32(static_cast<std::uint32_t>(c.files.size()));
  for (const auto& f : c.files) {
    w.u64(f.name);
    w.u64(f.size);
    w.u64(static_cast<std::uint64_t>(f.mtime));
    w.u64(f.inode);
  }
  return seal_record(committed_magic, body);
}

std::optional<committed_record> parse_committed_record(std::span<const std::byte> record) {
  const auto body = unseal_record(committed_magic, record);
  if (!body) return std::nullopt;
  reader r(*body);
  committed_record c;
  c.description = r.digest();
  c.root = r.digest();
  c.version.value = r.u64();
  c.inode = r.u64();
  const std::uint32_t files = r.u32();
  if (!r.ok() || files > limits::parts || r.left() != std::size_t{files} * 32) return std::nullopt;
  c.files.resize(files);
  for (auto& f : c.files) {
    f.name = r.u64();
    f.size = r.u64();
    f.mtime = static_cast<std::int64_t>(r.u64());
    f.inode = r.u64();
  }
  return c;
}

std::vector<std::byte> write_record(const digest_table& t) {
  std::vector<std::byte> body;
  body.reserve(digest_table::bytes(t.blocks.size()));
  writer w(body);
  w.bytes(t.root.bytes);
  for (const digest& d : t.blocks) w.bytes(d.bytes);
  return seal_record(digests_magic, body);
}

std::optional<digest_table> parse_digest_record(std::span<const std::byte> record) {
  const auto body = unseal_record(digests_magic, record);
  if (!body || body->empty() || body->size() % digest::size != 0) return std::nullopt;
  if (body->size() > digest_table::bytes(limits::blocks)) return std::nullopt;
  reader r(*body);
  digest_table t;
  t.root = r.digest();
  t.blocks.resize(r.left() / digest::size);
  for (digest& d : t.blocks) d = r.digest();
  return t;
}

std::uint64_t part_name_digest(const std::string& name) {
  const digest d = digest_of(std::as_bytes(std::span(name.data(), name.size())));
  return reader(d.bytes).u64();
}

}  // namespace ddf
