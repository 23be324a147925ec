// Which elements of a target differ from the base, found in one pass while both are in the cache.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/delta/element_class.hpp"
#include "codecs/delta/kernels.hpp"
#include "codecs/delta/workspace.hpp"

namespace ddf::delta {

/// As many elements of a base and a target.
struct pair_view {
  delta::element element;
  const std::byte* base;
  const std::byte* target;
  std::size_t n;
};

/// How many elements differ. Beside it the workspace holds change_masks; and when they are listed, indexes and values: the place of
/// each changed element and its zigzag difference, in order; and when they are located, positions: as kernels::locate gives them.
struct change_set {
  std::uint32_t changed = 0, runs = 0;
  bool is_listed = false;    // not when they are more than half
  bool is_located = false;
  class_map map;             // located by these classes
  std::array<std::uint32_t, classes_max> totals{};
};

enum class locating : std::uint8_t { never, always };

change_set find_changes(workspace& w, const pair_view& p, locating wanted);

/// Lists and locates what find_changes() did not; there must be changes.
void locate_changes(workspace& w, const pair_view& p, change_set& s);

}  // namespace ddf::delta
