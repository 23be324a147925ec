// The bytes of an object as one stretch, part after part: what deltas read from.
#pragma once
#include <functional>
#include <vector>
#include "codecs/delta/block.hpp"
#include "lib/model/manifest.hpp"

namespace ddf {

class object_bytes final : public delta::base_bytes {
 public:
  /// How bytes of one part are read; has to be thread-safe.
  using part_reader = std::function<result<void>(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out)>;
  /// A view of them where they are in memory; may be empty, or give an empty span.
  using part_view_of = std::function<std::span<const std::byte>(std::uint32_t part, std::uint64_t offset, std::uint64_t bytes)>;
  object_bytes(const manifest& m, part_reader read, part_view_of view = {});

  std::uint64_t size() const override { return begins_.back(); }
  result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& room) const override;
  /// Errors: invalid_argument beyond the end; those of the reader.
  result<void> read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::size_t part_at(std::uint64_t offset) const;

  std::vector<std::uint64_t> begins_;   // of each part, and the end
  part_reader read_;
  part_view_of view_;
};

}  // namespace ddf
