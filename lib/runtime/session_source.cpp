#include "lib/runtime/session_source.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "lib/model/assert.hpp"
#include "lib/store/parallel.hpp"

namespace ddf {

session_source::session_source(std::vector<item> items) : items_(std::move(items)), known_(items_.size()), tables_(items_.size()) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    item& it = items_[i];
    const std::uint64_t blocks = it.description.blocks();
    known_[i] = it.digests.blocks.size() == blocks && it.digests.root == root_digest(it.description.name, it.description.size(), it.digests.blocks);
    if (!known_[i]) it.digests.blocks.assign(blocks, digest{});
  }
}

void session_source::add(item delta) {
  known_.push_back(true);
  tables_.emplace_back();
  items_.push_back(std::move(delta));
}

result<std::span<const std::byte>> session_source::table_bytes(std::size_t object) {
  std::vector<std::byte>& t = tables_[object];
  if (t.empty()) {
    item& it = items_[object];
    // What was read is what is announced now; later reads are repairs, and a change since is found again at the end.
    if (auto ok = it.source->check_read(); !ok) return tl::unexpected(ok.error());
    it.digests.root = root_digest(it.description.name, it.description.size(), it.digests.blocks);
    known_[object] = true;
    t.reserve(digest_table::bytes(it.digests.blocks.size()));
    t.insert(t.end(), it.digests.root.bytes.begin(), it.digests.root.bytes.end());
    for (const digest& d : it.digests.blocks) t.insert(t.end(), d.bytes.begin(), d.bytes.end());
  }
  return std::span<const std::byte>(t);
}

result<std::span<const iovec>> session_source::payloads(const layout& l, std::span<const std::uint64_t> segments, bool first_pass) {
  payloads_.clear();
  if (buffer_.size() < segments.size() * l.segment_bytes()) buffer_.resize(segments.size() * l.segment_bytes());
  std::size_t used = 0;
  for (std::size_t i = 0; i < segments.size();) {
    const segment_extent e = l.segment(segments[i]);
    item& it = items_[e.object];
    if (e.table) {
      auto t = table_bytes(e.object);
      if (!t) return tl::unexpected(t.error());
      const auto piece = t->subspan(e.offset, e.bytes);
      payloads_.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
      ++i;
      continue;
    }
    // A run of segments that are adjacent in one block is read at once.
    const block_extent b = l.block(e.block);
    std::size_t n = 1;
    while (i + n < segments.size() && segments[i + n] == segments[i] + n && segments[i + n] < b.last_segment) ++n;
    const std::uint64_t bytes = std::min<std::uint64_t>(n * l.segment_bytes(), b.offset + b.bytes - e.offset);
    std::span<const std::byte> data = it.source->view(e.part, e.offset, bytes);
    if (data.empty()) {
      const auto into = std::span(buffer_).subspan(used, bytes);
      if (auto ok = it.source->read(e.part, e.offset, into); !ok) return tl::unexpected(ok.error());
      data = into;
      used += bytes;
    }
    if (first_pass && !known_[e.object]) {
      digester_.pass(e.block, b.bytes, e.offset - b.offset, data);
      if (segments[i] + n == b.last_segment) it.digests.blocks[b.index_in_object] = digester_.take(e.block, b.bytes).block();
    }
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t size = std::min<std::size_t>(l.segment_bytes(), data.size() - k * l.segment_bytes());
      payloads_.push_back({const_cast<std::byte*>(data.data() + k * l.segment_bytes()), size});
    }
    i += n;
  }
  return std::span<const iovec>(payloads_);
}

result<void> session_source::copy(const layout& l, range segments, std::span<std::byte> out) {
  for (std::uint64_t s = segments.first; s < segments.last;) {
    const segment_extent e = l.segment(s);
    const block_extent b = l.block(e.block);
    const std::uint64_t last = std::min(segments.last, b.last_segment);
    const std::uint64_t bytes = l.load_of(s, last).bytes;
    DDF_ASSERT(bytes <= out.size());
    const auto into = out.first(bytes);
    if (e.table) {
      auto t = table_bytes(e.object);
      if (!t) return tl::unexpected(t.error());
      std::ranges::copy(t->subspan(e.offset, bytes), into.begin());
    } else if (const auto seen = items_[e.object].source->view(e.part, e.offset, bytes); !seen.empty()) {
      std::ranges::copy(seen, into.begin());
    } else if (auto ok = items_[e.object].source->read(e.part, e.offset, into); !ok) {
      return ok;
    }
    out = out.subspan(bytes);
    s = last;
  }
  DDF_ASSERT(out.empty());
  return {};
}

result<digest_table> digests_of(const manifest& m, object_source& source, const std::atomic<bool>& abandon) {
  const std::vector<block_place> blocks = block_places(m);
  digest_table t;
  t.blocks.resize(blocks.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  result<void> outcome;
  const auto work = [&] {
    std::vector<std::byte> buffer;
    for (std::size_t i = next++; i < blocks.size() && !abandon; i = next++) {
      std::span<const std::byte> data = source.view(blocks[i].part, blocks[i].offset, blocks[i].bytes);
      if (data.empty()) {
        buffer.resize(blocks[i].bytes);
        if (auto ok = source.read(blocks[i].part, blocks[i].offset, buffer); !ok) {
          const std::lock_guard lock(mutex);
          outcome = ok;
          next = blocks.size();
          return;
        }
        data = buffer;
      }
      t.blocks[i] = block_digest(data);
    }
  };
  in_parallel(0, blocks.size(), work);
  if (!outcome) return tl::unexpected(outcome.error());
  if (abandon) return fail(errc::interrupted, "the publication ended while digests were made");
  t.root = root_digest(m.name, m.size(), t.blocks);
  return t;
}

void session_source::take_digests(std::size_t object, digest_table t) {
  if (known_[object]) return;
  items_[object].digests = std::move(t);
  known_[object] = true;
}

result<void> session_source::check_read() const {
  for (const item& it : items_)
    if (auto ok = it.source->check_read(); !ok) return ok;
  return {};
}

}  // namespace ddf
