#include "codecs/block_digest.hpp"

#include <algorithm>

#include "lib/model/assert.hpp"

namespace ddf {

static std::uint64_t leaf_count(std::uint64_t bytes) { return (bytes + leaf_bytes - 1) / leaf_bytes; }

digest block_digest(std::span<const std::byte> block) {
  leaf_digests leaves(block.size());
  leaves.read({0, block.size()}, block);
  return leaves.block();
}

leaf_digests::leaf_digests(std::uint64_t block_bytes)
    : block_bytes_(block_bytes), digests_(leaf_count(block_bytes)), known_(digests_.size()), missing_(digests_.size()) {}

void leaf_digests::set(std::size_t leaf, const digest& d) {
  if (!known_[leaf]) --missing_;
  known_[leaf] = true;
  digests_[leaf] = d;
}

leaf_digests::extent leaf_digests::missing_from(std::uint64_t offset) const {
  std::size_t first = leaf_count(offset);
  while (first < leaves() && known_[first]) ++first;
  std::size_t last = first;
  while (last < leaves() && !known_[last]) ++last;
  return {first * leaf_bytes, std::min<std::uint64_t>(last * leaf_bytes, block_bytes_) - std::min<std::uint64_t>(first * leaf_bytes, block_bytes_)};
}

void leaf_digests::read(const extent& e, std::span<const std::byte> bytes) {
  DDF_ASSERT(bytes.size() == e.bytes && e.offset % leaf_bytes == 0);
  for (std::size_t at = 0; at < bytes.size(); at += leaf_bytes)
    set((e.offset + at) / leaf_bytes, digest_of(bytes.subspan(at, std::min(leaf_bytes, bytes.size() - at))));
}

digest leaf_digests::block() const {
  DDF_ASSERT(complete() && !digests_.empty());
  return digests_.size() == 1 ? digests_[0] : digest_of(std::as_bytes(std::span(digests_)));
}

void block_digester::pass(std::uint64_t block, std::uint64_t block_bytes, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (block != block_ || offset != next_ || leaves_ == nullptr) {
    if (block < block_ || (block == block_ && offset < next_)) return;
    const std::uint64_t start = leaf_count(offset) * leaf_bytes;   // the first leaf that begins in these bytes
    if (start >= offset + bytes.size()) return;
    bytes = bytes.subspan(start - offset);
    if (block != block_ || leaves_ == nullptr) leaves_ = &open_.try_emplace(block, block_bytes).first->second;
    block_ = block;
    next_ = start;
    stream_.reset();
  }
  while (!bytes.empty()) {
    const std::uint64_t leaf = next_ / leaf_bytes, end = std::min<std::uint64_t>((leaf + 1) * leaf_bytes, block_bytes);
    const std::size_t n = std::min<std::uint64_t>(bytes.size(), end - next_);
    stream_.update(bytes.first(n));
    next_ += n;
    bytes = bytes.subspan(n);
    if (next_ < end) return;
    leaves_->set(leaf, stream_.finish());
    stream_.reset();
  }
}

leaf_digests block_digester::take(std::uint64_t block, std::uint64_t block_bytes) {
  const auto it = open_.find(block);
  if (it == open_.end()) return leaf_digests(block_bytes);
  leaf_digests found = std::move(it->second);
  open_.erase(it);
  if (block == block_) leaves_ = nullptr, next_ = block_bytes;   // what it asks for again is read, not digested as it comes
  return found;
}

}  // namespace ddf
