// What a version of an object is made of, and the list of all that one session carries.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include <ddf/publisher.hpp>
#include "lib/model/digest.hpp"
#include "lib/model/ids.hpp"

namespace ddf {

enum class object_kind : std::uint8_t { file = 0, folder = 1, memory = 2 };

struct part {   // a named extent of an object; blocks never cross it
  std::string name;            // the path inside a folder; empty for the only part of a file
  std::uint64_t size = 0;      // bytes
  std::uint32_t mode = 0644;   // permission bits
  bool directory = false;      // an empty folder inside a folder: no bytes
  bool operator==(const part&) const = default;
};

struct manifest {
  std::string name;
  version_id version{1};
  object_kind kind = object_kind::file;
  digest_algorithm algorithm = digest_algorithm::xxh3_128;
  std::uint8_t element_bytes = 1;   // width of one element; 1 when untyped
  std::uint32_t block_bytes = 64 << 10;
  consistency consistent = consistency::versioned;
  std::string base;                 // another object whose versions may serve as bases; empty: none
  std::vector<part> parts;
  bool operator==(const manifest&) const = default;

  std::uint64_t size() const;     // bytes of all parts
  std::uint64_t blocks() const;   // blocks of all parts
};

/// Where a block lies.
struct block_place {
  std::uint32_t part = 0;
  std::uint64_t offset = 0;          // in the part
  std::uint64_t object_offset = 0;   // counted through the parts
  std::uint64_t bytes = 0;
};
/// All blocks of an object: the rows of its digest table. Cost: O(blocks).
std::vector<block_place> block_places(const manifest& m);

/// Digests of one version's blocks in order, and the root over name, size and all of them.
struct digest_table {
  digest root;
  std::vector<digest> blocks;
  static constexpr std::uint64_t bytes(std::uint64_t blocks) { return (blocks + 1) * digest::size; }
};

using catalogue = std::vector<manifest>;

namespace limits {   // everything that comes from the wire is held against these before memory is taken for it
inline constexpr std::uint32_t block_bytes_min = 64 << 10;
inline constexpr std::uint32_t block_bytes_max = 4 << 20;
inline constexpr std::uint64_t objects = 1 << 16;           // in one session
inline constexpr std::uint64_t parts = 1 << 20;             // in one session
inline constexpr std::uint64_t blocks = 1 << 24;            // in one session: 64 TiB of 4 MiB blocks
inline constexpr std::uint64_t object_bytes = 1ull << 50;
inline constexpr std::uint32_t catalogue_bytes = 64 << 20;  // encoded
inline constexpr std::uint32_t segment_bytes_min = 512;
inline constexpr std::uint32_t segment_bytes_max = 65000;
}  // namespace limits

/// The block size for an object: a power of two from 64 KiB to 4 MiB, about a 64th of the object.
/// A block ends in one short segment, so large blocks waste less; small objects still get several to repair apart.
std::uint32_t block_bytes_for(std::uint64_t object_bytes);

/// Whether a catalogue, ours or a stranger's, keeps every rule and bound. Errors: invalid_argument, too_large.
result<void> check_catalogue(const catalogue& c);

}  // namespace ddf
