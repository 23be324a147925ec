// Older versions that stay: where they lie, how a replaced one gets there, and when one goes.
//
// A version is visible under its object's name, or kept at .ddf-versions/NAME.versions/NUMBER in the output folder, with its
// records under a name of their own.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "lib/store/sink.hpp"
#include "lib/store/tree_core.hpp"

namespace ddf {

struct stored_version {   // a version that is here, whole and as it was recorded
  version_id version{1};
  std::string path;       // below the output folder
  std::string records;    // what its records are called
  manifest description;
  committed_record record;
  std::optional<digest_table> digests;   // set by what retires it
};

/// Whether every file at `path` is as recorded (size, mtime, inode). Cost: a stat per file.
bool is_untouched(const tree_core& core, const std::string& path, const manifest& m, const committed_record& record);

/// What is visible under a name. Nothing: no such version, not put there by ddf, or touched since.
std::optional<stored_version> visible_version(const tree_core& core, const std::string& name);
/// The kept ones, newest first.
std::vector<stored_version> kept_versions(const tree_core& core, const std::string& name);

/// What was visible and lies hidden at `hidden` now, in the folder `parent`: it is kept, or removed when nobody wants it.
/// Input: `former` as visible_version() gave it before; nothing: it is removed. The caller holds versions_mutex alone.
void retire_version(tree_core& core, const std::string& name, std::optional<stored_version> former, int parent, const std::string& hidden);

/// Removes kept versions beyond the newest `keep`, but for those that are leased; and what has no record.
void prune_versions(tree_core& core, const std::string& name);

/// The version with its bytes. Errors: stale_base.
result<delta_base> open_stored(std::shared_ptr<tree_core> core, const std::string& name, const stored_version& v);

/// The caller holds versions_mutex since it found the version.
std::shared_ptr<const version_lease> lease_version(std::shared_ptr<tree_core> core, const std::string& name, stored_version v);

}  // namespace ddf
