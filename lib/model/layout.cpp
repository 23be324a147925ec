#include "lib/model/layout.hpp"

#include <algorithm>

#include "lib/model/assert.hpp"

namespace ddf {

static std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

layout::layout(const std::vector<manifest>& objects, std::uint32_t segment_bytes, std::size_t deltas_from) : segment_bytes_(segment_bytes) {
  DDF_ASSERT(segment_bytes >= limits::segment_bytes_min && segment_bytes <= limits::segment_bytes_max);
  objects_.resize(objects.size());
  const std::size_t deltas = objects.size() - std::min(deltas_from, objects.size());
  for (std::size_t n = 0; n < objects.size(); ++n) {
    const auto o = static_cast<std::uint32_t>(n < deltas ? objects.size() - deltas + n : n - deltas);
    const manifest& m = objects[o];
    object_extent extent;
    extent.first_segment = segments_;
    extent.first_block = blocks_;
    std::uint64_t index = 0;
    for (std::uint32_t p = 0; p < m.parts.size(); ++p) {
      const std::uint64_t bytes = m.parts[p].size;
      if (bytes == 0) continue;
      const auto per_block = static_cast<std::uint32_t>(divide_up(m.block_bytes, segment_bytes));
      runs_.push_back(run{segments_, blocks_, index, bytes, o, p, m.block_bytes, per_block, false});
      const std::uint64_t whole = bytes / m.block_bytes, rest = bytes % m.block_bytes;
      segments_ += whole * per_block + divide_up(rest, segment_bytes);
      blocks_ += whole + (rest != 0);
      index += whole + (rest != 0);
    }
    extent.table_segment = segments_;
    extent.table_block = blocks_;
    const std::uint64_t table_bytes = digest_table::bytes(index);
    const auto table_segments = static_cast<std::uint32_t>(divide_up(table_bytes, segment_bytes));
    // The table is one block, however long: `block_bytes` 0 marks that nothing is divided.
    runs_.push_back(run{segments_, blocks_, 0, table_bytes, o, 0, 0, table_segments, true});
    segments_ += table_segments;
    blocks_ += 1;
    extent.last_segment = segments_;
    objects_[o] = extent;
  }
}

const layout::run& layout::run_of_segment(std::uint64_t segment) const {
  DDF_ASSERT(segment < segments_);
  const auto holds = [&](std::size_t i) {
    return i < runs_.size() && runs_[i].first_segment <= segment && (i + 1 == runs_.size() || segment < runs_[i + 1].first_segment);
  };
  if (!holds(recent_)) {
    if (holds(recent_ + 1)) {
      ++recent_;
    } else {
      const auto it = std::upper_bound(runs_.begin(), runs_.end(), segment, [](std::uint64_t s, const run& r) { return s < r.first_segment; });
      recent_ = static_cast<std::size_t>(it - runs_.begin()) - 1;
    }
  }
  return runs_[recent_];
}

const layout::run& layout::run_of_block(std::uint64_t block) const {
  DDF_ASSERT(block < blocks_);
  const auto it = std::upper_bound(runs_.begin(), runs_.end(), block, [](std::uint64_t b, const run& r) { return b < r.first_block; });
  return *std::prev(it);
}

std::uint64_t layout::block_of_segment(std::uint64_t segment) const {
  const run& r = run_of_segment(segment);
  return r.table ? r.first_block : r.first_block + (segment - r.first_segment) / r.segments_per_block;
}

std::uint32_t layout::object_of_segment(std::uint64_t segment) const { return run_of_segment(segment).object; }

range layout::segments_of_rows(std::uint32_t object, std::uint64_t first, std::uint64_t last) const {
  const object_extent& e = objects_[object];
  DDF_ASSERT(first <= last && e.first_block + last <= e.table_block);
  if (first == last) return {e.first_segment, e.first_segment};
  return {block(e.first_block + first).first_segment, block(e.first_block + last - 1).last_segment};
}

segment_extent layout::segment(std::uint64_t segment) const {
  const run& r = run_of_segment(segment);
  const std::uint64_t n = segment - r.first_segment;
  segment_extent e;
  e.object = r.object;
  e.part = r.part;
  e.table = r.table;
  const std::uint64_t block = r.table ? 0 : n / r.segments_per_block;
  const std::uint64_t in_block = n - block * r.segments_per_block;
  const std::uint64_t block_bytes = r.table ? r.bytes : r.block_bytes;
  const std::uint64_t block_offset = block * block_bytes;
  const std::uint64_t block_size = std::min(block_bytes, r.bytes - block_offset);
  e.block = r.first_block + block;
  e.offset = block_offset + in_block * segment_bytes_;
  e.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(segment_bytes_, block_size - in_block * segment_bytes_));
  return e;
}

layout::load layout::load_of(std::uint64_t first, std::uint64_t last) const {
  load sum;
  while (first < last) {
    const segment_extent e = segment(first);
    const run& r = run_of_segment(first);
    const std::uint64_t block_begin = r.table ? 0 : (e.block - r.first_block) * r.block_bytes;
    const std::uint64_t left = (r.table ? r.bytes : std::min<std::uint64_t>(r.block_bytes, r.bytes - block_begin)) - (e.offset - block_begin);
    const std::uint64_t n = std::min(last - first, divide_up(left, segment_bytes_));
    sum.bytes += std::min(n * segment_bytes_, left);
    if (!e.table) sum.data_segments += n;
    first += n;
  }
  return sum;
}

block_extent layout::block(std::uint64_t block) const {
  const run& r = run_of_block(block);
  block_extent e;
  e.object = r.object;
  e.part = r.part;
  e.table = r.table;
  if (r.table) {
    e.bytes = r.bytes;
    e.first_segment = r.first_segment;
  } else {
    const std::uint64_t n = block - r.first_block;
    e.index_in_object = r.first_index_in_object + n;
    e.offset = n * r.block_bytes;
    e.bytes = std::min<std::uint64_t>(r.block_bytes, r.bytes - e.offset);
    e.first_segment = r.first_segment + n * r.segments_per_block;
  }
  e.last_segment = e.first_segment + divide_up(e.bytes, segment_bytes_);
  return e;
}

}  // namespace ddf
