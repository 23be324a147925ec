// What a publisher remembers of the versions it published, to make deltas from them: their digests, where they lie, or a copy.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/manifest.hpp"
#include "lib/store/delta_base.hpp"
#include "lib/store/source.hpp"

namespace ddf {

struct published_base {
  manifest description;     // with its version
  digest identity;          // object_source::identity(); zero: memory
  std::string path;         // empty: memory
  digest_table digests;
};

class base_store {
 public:
  static constexpr std::size_t versions_max = 16;   // remembered of one name; older records go

  /// Input: the state folder; empty: nothing is remembered. `keep`: of how many newest versions a copy of the bytes is kept
  /// (a reflink where the file system can). Copies are for files that will be overwritten; 0 makes none.
  base_store(std::string directory, unsigned keep) : directory_(std::move(directory)), keep_(keep) {}

  /// Their numbers, newest first, without a look at the records.
  std::vector<version_id> versions(const std::string& name) const;
  /// Newest first. Damaged records count as none. Cost: a small file and its digests each.
  std::vector<published_base> list(const std::string& name) const;
  /// The newest version of every object that was published, the first `most` that are found.
  std::vector<published_base> newest_of_all(std::size_t most) const;
  /// Remembers a version, and copies it when that is wanted. Errors: io.
  result<void> save(const published_base& b, object_source& source) const;
  /// The version with its bytes, from its path while nothing there has changed, or from the copy; without bytes when neither
  /// is left: its digests still tell which blocks are equal.
  delta_base open(const published_base& b) const;

 private:
  std::string directory_;
  unsigned keep_;
};

/// The record as bytes, and back: nothing for bytes that are not one. Allocates in proportion to the input.
std::vector<std::byte> write_base(const published_base& b);
std::optional<published_base> parse_base(std::span<const std::byte> record);

/// Input: a source that lives on in the result.
delta_base base_from(const published_base& b, std::shared_ptr<object_source> source);

}  // namespace ddf
