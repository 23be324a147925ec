// The bytes of the objects of a session, made from a seed, and what their digests are.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include "lib/model/manifest.hpp"

namespace ddf::sim {

struct object_spec {
  std::string name = "model";
  std::vector<std::uint64_t> parts = {1 << 20};   // bytes; several make a folder
  version_id version{1};
  std::uint32_t block_bytes = limits::block_bytes_min;
};

class content {
 public:
  content(const std::vector<object_spec>& specs, std::uint64_t seed);

  const catalogue& objects() const { return objects_; }
  std::uint64_t size() const;   // bytes of all objects
  std::span<const std::byte> part(std::uint32_t object, std::uint32_t part) const { return parts_[object][part]; }
  std::span<std::byte> part_to_change(std::uint32_t object, std::uint32_t part) { return parts_[object][part]; }
  const digest_table& table(std::uint32_t object) const { return tables_[object]; }
  /// The digest table as it goes over the wire: the root, then the rows.
  std::span<const std::byte> table_bytes(std::uint32_t object) const { return table_bytes_[object]; }

 private:
  catalogue objects_;
  std::vector<std::vector<std::vector<std::byte>>> parts_;
  std::vector<digest_table> tables_;
  std::vector<std::vector<std::byte>> table_bytes_;
};

}  // namespace ddf::sim
