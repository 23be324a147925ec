// Whether a layout covers its catalogue once, in order, and agrees with itself.
#pragma once
#include <algorithm>
#include <string>
#include "lib/model/layout.hpp"

namespace ddf::test {

/// What is wrong with blocks and segments in [first_block, last_block); empty when nothing is. Walks every segment of them.
inline std::string fault(const layout& l, const catalogue& c, std::uint64_t first_block, std::uint64_t last_block) {
  for (std::uint64_t b = first_block; b < last_block; ++b) {
    const block_extent e = l.block(b);
    const std::string at = "block " + std::to_string(b) + ": ";
    if (b != 0 && l.block(b - 1).last_segment != e.first_segment) return at + "does not start where the one before ends";
    if (b == 0 && e.first_segment != 0) return at + "does not start at 0";
    if (e.bytes == 0 || e.first_segment >= e.last_segment) return at + "is empty";
    const manifest& m = c[e.object];
    const object_extent& o = l.object(e.object);
    if (e.table != (b == o.table_block)) return at + "is a table where it should not be";
    if (!e.table) {
      if (e.index_in_object != b - o.first_block) return at + "index in object";
      if (e.bytes > m.block_bytes || e.offset % m.block_bytes != 0 || e.offset + e.bytes > m.parts[e.part].size) return at + "extent";
      if (e.bytes < m.block_bytes && e.offset + e.bytes != m.parts[e.part].size) return at + "short before the end of its part";
    }
    std::uint64_t offset = e.offset;
    for (std::uint64_t s = e.first_segment; s < e.last_segment; ++s) {
      const segment_extent x = l.segment(s);
      if (x.block != b || l.block_of_segment(s) != b) return at + "segment " + std::to_string(s) + " is not of it";
      if (x.object != e.object || x.part != e.part || x.table != e.table || l.object_of_segment(s) != e.object) return at + "segment's owner";
      if (x.offset != offset || x.bytes == 0 || x.bytes > l.segment_bytes()) return at + "segment's extent";
      if (x.bytes < l.segment_bytes() && s + 1 != e.last_segment) return at + "short segment before its end";
      offset += x.bytes;
    }
    if (offset != e.offset + e.bytes) return at + "its segments do not cover it";
  }
  return {};
}

inline std::string fault(const layout& l, const catalogue& c) {
  std::uint64_t data_blocks = 0;
  for (std::uint32_t o = 0; o < c.size(); ++o) {
    const object_extent& e = l.object(o);
    if (e.table_block - e.first_block != c[o].blocks()) return "blocks of object " + std::to_string(o);
    if (e.first_block != data_blocks + o) return "first block of object " + std::to_string(o);
    data_blocks += c[o].blocks();
    if (e.first_segment != (o == 0 ? 0 : l.object(o - 1).last_segment)) return "first segment of object " + std::to_string(o);
    if (l.block(e.table_block).first_segment != e.table_segment || l.block(e.table_block).last_segment != e.last_segment) return "table of object " + std::to_string(o);
    if (l.block(e.table_block).bytes != digest_table::bytes(c[o].blocks())) return "size of the table of object " + std::to_string(o);
  }
  if (l.blocks() != data_blocks + c.size()) return "blocks";
  if (l.segments() != l.object(static_cast<std::uint32_t>(c.size() - 1)).last_segment) return "segments";
  return {};
}

}  // namespace ddf::test
