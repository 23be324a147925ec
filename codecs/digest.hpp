// Digests of blocks and of versions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include "lib/model/digest.hpp"

namespace ddf {

/// XXH3-128 of `bytes`, in its canonical (big-endian) form. An integrity check against accidents, not security.
/// Cost: one pass, about 20 GB/s when the bytes are in cache, no allocation. Source: xxHash 0.8 specification.
digest digest_of(std::span<const std::byte> bytes);

/// The root of a version: a digest over name, size in bytes and the block digests in order. Cost: O(blocks).
digest root_digest(std::string_view name, std::uint64_t bytes, std::span<const digest> blocks);

/// digest_of() over bytes that come piece by piece, in order.
class digest_stream {
 public:
  digest_stream();
  ~digest_stream();
  digest_stream(digest_stream&&) noexcept;
  digest_stream& operator=(digest_stream&&) noexcept;

  void reset();
  void update(std::span<const std::byte> bytes);
  digest finish() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ddf
