// What was published from this host under which version: so that an unchanged object keeps its version and is not read again.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ddf/error.hpp>
#include "lib/model/manifest.hpp"

namespace ddf {

struct published_version {
  version_id version;
  digest identity;        // object_source::identity() when it was published
  digest_table digests;   // may be empty when the publication ended before all were known
};

class published_store {
 public:
  /// Input: the state folder, created on the first save; empty: nothing is kept.
  explicit published_store(std::string directory) : directory_(std::move(directory)) {}
  /// The last publication under a name. A damaged record counts as none. Cost: one small file.
  std::optional<published_version> load(const std::string& name) const;
  /// Replaces the record (temporary file, fsync and rename). Errors: io.
  result<void> save(const std::string& name, const published_version& v) const;

 private:
  std::string directory_;
};

/// The record as bytes, and back: nothing for bytes that are not the record of this name. Allocates in proportion to the input.
std::vector<std::byte> write_published(const std::string& name, const published_version& v);
std::optional<published_version> parse_published(const std::string& name, std::span<const std::byte> record);

}  // namespace ddf
