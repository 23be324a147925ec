// Looks at files and folders, as --watch needs to: their names, sizes, times and inodes.
#pragma once
#include <span>

#include <ddf/publisher.hpp>

#include "tools/mcsend/settling.hpp"

namespace ddf::tools {

/// What is at these paths now. Links are followed where publishing follows them, so that a link that leads elsewhere is
/// another state; what publishing leaves out (pipes, devices, partial files of ddf) is not looked at.
/// Cost: one call for each file and folder.
sighting look_at(std::span<const path_source> paths);

}  // namespace ddf::tools
