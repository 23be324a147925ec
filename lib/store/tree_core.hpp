// What an output tree and its sinks share; it lives as long as the last of them.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "lib/store/confined.hpp"
#include "lib/store/descriptor_cache.hpp"
#include "lib/store/receive_state.hpp"

namespace ddf {

struct tree_core {
  static constexpr std::size_t files_open_max = 256;   // of all sinks together, however many objects a session has

  std::shared_ptr<file_system> files;
  std::string directory;   // real path
  descriptor root;
  mode_t mask = 022;       // the process's umask
  unsigned keep = 0;       // older versions that stay
  // Whoever needs to find a version where it is holds it shared, whoever makes one visible, keeps or removes one holds it alone:
  // with an fsync, so the loop asks without it, and may find nothing for a moment. Before leases_mutex where both are held.
  mutable std::shared_mutex versions_mutex;
  std::mutex leases_mutex;
  std::map<std::string, unsigned> leases;   // how many hold a version, by what its records would be called
  std::unique_ptr<receive_state> state;
  descriptor_cache descriptors{descriptor_cache::sensible_size(files_open_max)};
};

/// Where an object lands.
struct placement {
  std::string name;         // of the object
  std::string parent;       // the folder, below the root; empty for the root
  std::string base;         // the last component of the name
  std::string hidden;       // what it is called until it is whole
  int parents_made = 0;     // how many folders of `parent`, from the deepest up, were made for it

  std::string hidden_path() const { return parent.empty() ? hidden : parent + '/' + hidden; }
};

/// Whether an object may take the place of what is under its final name now, if anything. Errors: refused, io.
result<void> may_replace_file(const tree_core& core, const placement& at, int folder, const std::string& name);
result<void> may_replace_folder(const tree_core& core, const placement& at, int folder, const std::string& name);

/// Removes those folders that were made for an object and are empty.
void remove_made_parents(tree_core& core, const placement& at);

}  // namespace ddf
