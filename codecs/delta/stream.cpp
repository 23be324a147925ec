#include "codecs/delta/stream.hpp"

#include <string_view>

#include "codecs/delta/varint64.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf::delta {

static constexpr std::string_view magic = "ddfdelt1";

static std::uint64_t get_varint(reader& r) {
  auto rest = r.rest();
  const auto v = take_varint64(rest);
  if (!v) return r.fail(), 0;
  r.bytes(r.left() - rest.size());
  return *v;
}

static bool continues(const stream_row& a, const stream_row& b) { return a.by == b.by && (a.by != stream_row::kind::keep || a.base_row + 1 == b.base_row); }

std::vector<std::byte> write_stream_head(stream_head& h, std::vector<stream_row>& rows) {
  std::vector<std::byte> index;
  writer i(index);
  std::uint64_t expected = 0;
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t n = 1;
    while (at + n < rows.size() && continues(rows[at + n - 1], rows[at + n])) ++n;
    put_varint64(index, std::uint64_t{n} << 2 | static_cast<std::uint64_t>(rows[at].by));
    if (rows[at].by == stream_row::kind::keep) {
      put_varint64(index, zigzag(rows[at].base_row - expected));
      expected = rows[at].base_row + n;
    }
    for (std::size_t k = at; k < at + n; ++k) {
      if (rows[k].by == stream_row::kind::patch) put_varint64(index, rows[k].bytes);
      if (rows[k].by != stream_row::kind::keep) i.bytes(rows[k].result.bytes);
    }
    at += n;
  }
  h.index_bytes = static_cast<std::uint32_t>(index.size());
  std::uint64_t offset = stream_head::wire_size + index.size();
  for (stream_row& row : rows)
    if (row.by == stream_row::kind::patch) {
      row.offset = offset;
      offset += row.bytes;
    }
  std::vector<std::byte> out;
  out.reserve(stream_head::wire_size + index.size());
  writer w(out);
  w.text(magic);
  w.bytes(h.target_root.bytes);
  w.bytes(h.base_root.bytes);
  w.u64(h.target_bytes);
  w.u64(h.base_bytes);
  w.u32(h.index_bytes);
  w.u32(0);
  w.bytes(index);
  return out;
}

result<stream_head> parse_stream_head(std::span<const std::byte> first) {
  reader r(first);
  stream_head h;
  const bool known = r.text(magic.size()) == magic;
  h.target_root = r.digest();
  h.base_root = r.digest();
  h.target_bytes = r.u64();
  h.base_bytes = r.u64();
  h.index_bytes = r.u32();
  const bool zero = r.u32() == 0;
  if (!known || !zero || !r.ok()) return fail(errc::integrity, "the delta does not begin as one (a newer sender?)");
  return h;
}

result<std::vector<stream_row>> parse_stream_index(const stream_head& h, std::span<const std::byte> index, std::span<const digest> base_rows, std::uint64_t rows,
                                                   std::uint64_t stream_bytes) {
  const auto malformed = [] { return fail(errc::integrity, "the index of the delta is malformed"); };
  reader r(index);
  std::vector<stream_row> out;
  out.reserve(rows);
  std::uint64_t expected = 0, offset = stream_head::wire_size + h.index_bytes;
  while (r.ok() && r.left() != 0) {
    const std::uint64_t group = get_varint(r), count = group >> 2, kind = group & 3;
    if (!r.ok() || kind > 2 || count == 0 || count > rows - out.size()) return malformed();
    std::uint64_t base_row = 0;
    if (kind == 0) {
      base_row = expected + unzigzag(get_varint(r));
      if (!r.ok()) return malformed();
      if (base_row > base_rows.size() || count > base_rows.size() - base_row) return fail(errc::stale_base, "the delta keeps blocks that the base here has not");
      expected = base_row + count;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      stream_row row;
      row.by = static_cast<stream_row::kind>(kind);
      if (kind == 0) {
        row.base_row = base_row + i;
        row.result = base_rows[row.base_row];
      } else {
        if (kind == 1) {
          row.bytes = get_varint(r);
          row.offset = offset;
          if (offset > stream_bytes || row.bytes > stream_bytes - offset) return malformed();
          offset += row.bytes;
        }
        row.result = r.digest();
        if (!r.ok()) return malformed();
      }
      if (i == 0 && !out.empty() && continues(out.back(), row)) return malformed();   // one group, cut in two
      out.push_back(row);
    }
  }
  if (!r.done() || out.size() != rows || offset != stream_bytes) return malformed();
  return out;
}

}  // namespace ddf::delta
