// Where every segment of a session belongs.
//
// A session is one line of segments, numbered from 0: deltas first, then object after object, and within an object its data (part after
// part, block after block), then its digest table. A segment never crosses a block. Blocks are numbered through the
// session too; the digest table of an object counts as one block of its own, after the object's data blocks.
#pragma once
#include <cstdint>
#include <vector>
#include "lib/model/manifest.hpp"
#include "lib/model/range_set.hpp"

namespace ddf {

struct block_extent {
  std::uint32_t object = 0;
  std::uint32_t part = 0;               // index into the manifest's parts; 0 for a digest table
  bool table = false;                   // the digest table of the object
  std::uint64_t index_in_object = 0;    // of a data block: its row in the digest table
  std::uint64_t offset = 0;             // bytes, within the part (or the table)
  std::uint64_t bytes = 0;
  std::uint64_t first_segment = 0;
  std::uint64_t last_segment = 0;       // one past
};

struct segment_extent {
  std::uint64_t block = 0;
  std::uint32_t object = 0;
  std::uint32_t part = 0;
  bool table = false;
  std::uint64_t offset = 0;   // bytes, within the part (or the table)
  std::uint32_t bytes = 0;
};

struct object_extent {
  std::uint64_t first_segment = 0;
  std::uint64_t table_segment = 0;   // first segment of the digest table
  std::uint64_t last_segment = 0;
  std::uint64_t first_block = 0;
  std::uint64_t table_block = 0;     // the digest table, and one past the data blocks
};

class layout {
 public:
  layout() = default;
  /// Input: a catalogue that check_catalogue() accepts, perhaps followed by the manifests of deltas: from index `deltas_from` on.
  /// These come first in the line, so that who needs no more is through first. `segment_bytes` within limits. Cost: O(parts).
  layout(const std::vector<manifest>& objects, std::uint32_t segment_bytes, std::size_t deltas_from = ~std::size_t(0));

  std::uint64_t segments() const { return segments_; }
  std::uint64_t blocks() const { return blocks_; }
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  std::size_t objects() const { return objects_.size(); }
  const object_extent& object(std::uint32_t index) const { return objects_[index]; }
  std::uint32_t object_of_segment(std::uint64_t segment) const;
  /// The segments of the blocks [first, last) of an object's digest table rows.
  range segments_of_rows(std::uint32_t object, std::uint64_t first, std::uint64_t last) const;

  /// Input: segment < segments(), block < blocks(). Cost: O(log parts); O(1) when near the last one asked for.
  segment_extent segment(std::uint64_t segment) const;
  block_extent block(std::uint64_t block) const;
  std::uint64_t block_of_segment(std::uint64_t segment) const;

  struct load {
    std::uint64_t bytes = 0, data_segments = 0;   // the segments that are not of a digest table
  };
  /// What the segments [first, last) carry. Cost: O(blocks touched).
  load load_of(std::uint64_t first, std::uint64_t last) const;

 private:
  struct run {   // the blocks of one part, or one digest table
    std::uint64_t first_segment, first_block, first_index_in_object, bytes;
    std::uint32_t object, part, block_bytes, segments_per_block;
    bool table;
  };
  const run& run_of_segment(std::uint64_t segment) const;
  const run& run_of_block(std::uint64_t block) const;

  std::uint32_t segment_bytes_ = 0;
  std::uint64_t segments_ = 0, blocks_ = 0;
  std::vector<run> runs_;   // those that have bytes, in order
  std::vector<object_extent> objects_;
  mutable std::size_t recent_ = 0;   // a cache of the last run found: an engine belongs to one thread
};

}  // namespace ddf
