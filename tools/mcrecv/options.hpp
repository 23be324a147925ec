// The options of mcrecv.
#pragma once
#include <string>
#include <vector>

#include <ddf/subscriber.hpp>

#include "tools/common/command_line.hpp"
#include "tools/common/common_options.hpp"

namespace ddf::tools {

struct mcrecv_options : common_options {
  subscriber_options subscriber;  // its network part is filled by `complete`
  std::string command;            // empty: none
  std::vector<std::string> patterns;
};

/// Declares mcrecv's options. Precondition: `options` outlives the result.
command_line mcrecv_command_line(mcrecv_options& options);

/// Makes the patterns of the arguments. Errors: invalid_argument for an empty one.
result<void> complete(mcrecv_options& options, const std::vector<std::string>& arguments);

}  // namespace ddf::tools
