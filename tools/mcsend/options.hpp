// The options of mcsend.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <ddf/publisher.hpp>

#include "tools/common/command_line.hpp"
#include "tools/common/common_options.hpp"

namespace ddf::tools {

struct mcsend_options : common_options {
  publisher_options publisher;  // its network part is filled by `complete`
  publish_options publish;
  std::string name;
  std::vector<path_source> paths;
  bool explain = false;
  bool watch = false;
  std::chrono::nanoseconds settle = std::chrono::seconds(1);
};

/// Declares mcsend's options. Precondition: `options` outlives the result.
command_line mcsend_command_line(mcsend_options& options);

/// Makes the paths of the arguments, each with the name that its object will have.
///
/// Errors: invalid_argument when two have the same name, a name is not usable, or --name meets several paths.
result<void> complete(mcsend_options& options, const std::vector<std::string>& arguments);

}  // namespace ddf::tools
