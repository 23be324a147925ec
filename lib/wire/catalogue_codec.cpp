#include "lib/wire/catalogue_codec.hpp"

#include <bit>

#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::size_t object_bytes_min = 1 + 1 + 8 + 4 + 2 + 4;   // what one object takes at least
static constexpr std::size_t part_bytes_min = 2 + 8 + 2 + 1;

std::vector<std::byte> write_catalogue(const catalogue& c) {
  std::vector<std::byte> out;
  writer w(out);
  w.u32(static_cast<std::uint32_t>(c.size()));
  for (const manifest& m : c) {
    w.u8(static_cast<std::uint8_t>(m.name.size()));
    w.text(m.name);
    w.u64(m.version.value);
    w.u8(static_cast<std::uint8_t>(m.kind));
    w.u8(static_cast<std::uint8_t>(m.algorithm));
    w.u8(m.element_bytes);
    w.u8(static_cast<std::uint8_t>(std::countr_zero(m.block_bytes)));
    w.u8(static_cast<std::uint8_t>(m.consistent));
    w.u8(static_cast<std::uint8_t>(m.base.size()));
    w.text(m.base);
    w.u32(static_cast<std::uint32_t>(m.parts.size()));
    for (const part& p : m.parts) {
      w.u16(static_cast<std::uint16_t>(p.name.size()));
      w.text(p.name);
      w.u64(p.size);
      w.u16(static_cast<std::uint16_t>(p.mode));
      w.u8(p.directory ? 1 : 0);
    }
  }
  return out;
}

result<catalogue> parse_catalogue(std::span<const std::byte> bytes) {
  const auto malformed = [] { return fail(errc::invalid_argument, "the catalogue is malformed"); };
  reader r(bytes);
  const std::size_t objects = r.u32();
  if (objects > limits::objects || objects * object_bytes_min > r.left()) return malformed();
  catalogue c;
  c.reserve(objects);
  for (std::size_t o = 0; o < objects; ++o) {
    manifest m;
    m.name = r.text(r.u8());
    m.version = version_id{r.u64()};
    const auto kind = r.u8();
    if (kind > static_cast<std::uint8_t>(object_kind::memory)) return malformed();
    m.kind = static_cast<object_kind>(kind);
    m.algorithm = static_cast<digest_algorithm>(r.u8());
    m.element_bytes = r.u8();
    const auto shift = r.u8();
    if (shift > 31) return malformed();
    m.block_bytes = std::uint32_t(1) << shift;
    const auto consistent = r.u8();
    if (consistent > static_cast<std::uint8_t>(consistency::append_only)) return malformed();
    m.consistent = static_cast<consistency>(consistent);
    m.base = r.text(r.u8());
    const std::size_t parts = r.u32();
    if (parts > limits::parts || parts * part_bytes_min > r.left()) return malformed();
    m.parts.reserve(parts);
    for (std::size_t i = 0; i < parts; ++i) {
      part p;
      p.name = r.text(r.u16());
      p.size = r.u64();
      p.mode = r.u16();
      const auto directory = r.u8();
      if (directory > 1) return malformed();
      p.directory = directory == 1;
      if (!r.ok()) return malformed();
      m.parts.push_back(std::move(p));
    }
    c.push_back(std::move(m));
  }
  if (!r.done()) return malformed();
  if (auto ok = check_catalogue(c); !ok) return tl::unexpected(ok.error());
  return c;
}

}  // namespace ddf
