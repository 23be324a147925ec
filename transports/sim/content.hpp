// The bytes of the objects of a session, made from a seed, and what their digests are.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "lib/model/manifest.hpp"
#include "lib/model/session_plan.hpp"

namespace ddf::sim {

struct delta_spec {   // a delta that may be sent for an object, as opaque bytes: what it stands for is made from the truth
  version_id base_version{1};
  digest base_root;
  std::uint64_t bytes = 50'000;            // spread evenly over the blocks
  std::vector<std::uint64_t> block_bytes;  // or as said here
};

struct object_spec {
  std::string name = "model";
  std::vector<std::uint64_t> parts = {1 << 20};   // bytes; several make a folder
  version_id version{1};
  std::uint32_t block_bytes = limits::block_bytes_min;
  std::vector<delta_spec> deltas;
};

class content {
 public:
  content(const std::vector<object_spec>& specs, std::uint64_t seed);

  const catalogue& objects() const { return objects_; }
  std::uint64_t size() const;   // bytes of all objects
  const std::vector<delta_spec>& deltas(std::uint32_t object) const { return deltas_[object]; }
  void offer_delta(std::uint32_t object, delta_spec d) { deltas_[object].push_back(std::move(d)); }
  /// The bytes of a session's objects: its catalogue, then what its plan adds, from the same seed for sender and receivers.
  std::shared_ptr<const content> with(const session_plan& p) const;
  std::span<const std::byte> part(std::uint32_t object, std::uint32_t part) const { return parts_[object][part]; }
  std::span<std::byte> part_to_change(std::uint32_t object, std::uint32_t part) { return parts_[object][part]; }
  const digest_table& table(std::uint32_t object) const { return tables_[object]; }
  /// The digest table as it goes over the wire: the root, then the rows.
  std::span<const std::byte> table_bytes(std::uint32_t object) const { return table_bytes_[object]; }

 private:
  void add(manifest m, std::vector<std::vector<std::byte>> parts);

  catalogue objects_;
  std::vector<std::vector<delta_spec>> deltas_;
  std::uint64_t seed_ = 0;
  std::vector<std::vector<std::vector<std::byte>>> parts_;
  std::vector<digest_table> tables_;
  std::vector<std::vector<std::byte>> table_bytes_;
};

}  // namespace ddf::sim
