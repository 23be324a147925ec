// The digest of a block: a tree of two levels.
//
// A block is cut into leaves of 16 KiB, the last perhaps shorter. The digest of a block of one leaf is that leaf's; that of a
// larger block is taken over the digests of its leaves, in order. Packets are lost one by one: a leaf that arrives without a
// gap is digested as it comes, and only leaves with a gap have to be read again once they are whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>
#include "codecs/digest.hpp"

namespace ddf {

inline constexpr std::size_t leaf_bytes = 16 << 10;

/// Input: at least one byte. Cost: one pass, as digest_of().
digest block_digest(std::span<const std::byte> block);

/// The digests of a block's leaves, as far as they are known.
class leaf_digests {
 public:
  leaf_digests() = default;
  explicit leaf_digests(std::uint64_t block_bytes);

  std::size_t leaves() const { return digests_.size(); }
  bool known(std::size_t leaf) const { return known_[leaf]; }
  bool complete() const { return missing_ == 0; }
  void set(std::size_t leaf, const digest& d);

  /// Bytes from `offset` on that lie in leaves not yet known, as many as follow each other. Empty: none.
  struct extent {
    std::uint64_t offset = 0, bytes = 0;
  };
  extent missing_from(std::uint64_t offset) const;
  /// Digests the leaves of an extent that was read. Input: what missing_from() gave, and its bytes.
  void read(const extent& e, std::span<const std::byte> bytes);

  /// Input: complete().
  digest block() const;

 private:
  std::uint64_t block_bytes_ = 0;
  std::vector<digest> digests_;
  std::vector<bool> known_;
  std::size_t missing_ = 0;
};

/// Digests blocks while their bytes pass by, mostly in ascending order.
class block_digester {
 public:
  /// `bytes` of a block of `block_bytes` came, from `offset` on. What lies behind the furthest place reached does not interrupt what
  /// goes on there. Cost: one pass over what can be used.
  void pass(std::uint64_t block, std::uint64_t block_bytes, std::uint64_t offset, std::span<const std::byte> bytes);
  /// What is known of a block's leaves; it is forgotten here.
  leaf_digests take(std::uint64_t block, std::uint64_t block_bytes);

 private:
  digest_stream stream_;                 // over the leaf that `next_` lies in
  std::uint64_t block_ = 0, next_ = 0;   // the furthest place reached
  leaf_digests* leaves_ = nullptr;       // of that block
  std::unordered_map<std::uint64_t, leaf_digests> open_;   // blocks that began and were not taken: 1 byte for 1,000 of theirs
};

}  // namespace ddf
