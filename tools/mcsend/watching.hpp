// mcsend --watch: publishes each new version of what is watched, and serves it until the next one.
#pragma once
#include "tools/common/console.hpp"
#include "tools/common/exit_code.hpp"
#include "tools/common/interrupts.hpp"
#include "tools/mcsend/options.hpp"

namespace ddf::tools {

/// Until a signal comes. Output: exit_complete when all that was published is complete, otherwise the first that failed.
exit_code publish_versions(const mcsend_options& options, publisher& with, console& out, const interrupts& signals);

}  // namespace ddf::tools
