// What a receiver remembers about an object between runs: which blocks of a partial one are there, and what it made visible.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/model/manifest.hpp"
#include "lib/model/range_set.hpp"

namespace ddf {

/// An interrupted transfer. Body, big-endian: description(128) path length(16) path ranges(32), per range first(64) last(64).
struct partial_record {
  digest description;   // of the manifest but for its version
  std::string path;     // of the hidden file or folder, below the output folder
  range_set complete;   // blocks: rows of the digest table
  bool operator==(const partial_record& o) const { return description == o.description && path == o.path && complete == o.complete; }

  static constexpr std::uint32_t ranges_max = 1 << 20;   // a record has the first that many
  static constexpr std::size_t bytes_max = 64 + 4096 + std::size_t{ranges_max} * 16;
};

/// A version that was made visible. Body, big-endian: description(128) root(128) version(64) inode(64) parts(32), per part
/// name digest(64) size(64) mtime(64) inode(64).
struct committed_record {
  struct file {
    std::uint64_t name = 0;   // part_name_digest(); tells files that ddf put into a folder from foreign ones
    std::uint64_t size = 0;   // bytes
    std::int64_t mtime = 0;   // nanoseconds
    std::uint64_t inode = 0;
    bool operator==(const file&) const = default;
  };
  digest description;
  digest root;
  version_id version{1};
  std::uint64_t inode = 0;   // of the file, or of the folder: what has another inode was not put there by ddf
  std::vector<file> files;   // in the order of the manifest's parts
  bool operator==(const committed_record&) const = default;

  static constexpr std::size_t bytes_max = 128 + std::size_t{limits::parts} * 32;
};

/// The digests of the version made visible last, to tell later which blocks changed. Body: root(128), per block digest(128).
inline constexpr std::size_t digest_record_bytes_max = 64 + digest_table::bytes(limits::blocks);

std::vector<std::byte> write_record(const partial_record& r);
std::vector<std::byte> write_record(const committed_record& r);
std::vector<std::byte> write_record(const digest_table& t);

/// Nothing for bytes that no write_record() made. Allocates in proportion to the input. What parses writes back to the same bytes.
std::optional<partial_record> parse_partial_record(std::span<const std::byte> record);
std::optional<committed_record> parse_committed_record(std::span<const std::byte> record);
std::optional<digest_table> parse_digest_record(std::span<const std::byte> record);

std::uint64_t part_name_digest(const std::string& name);

}  // namespace ddf
