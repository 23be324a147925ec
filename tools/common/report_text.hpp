// A report, as the table for people and as the last line of --json for programs.
#pragma once
#include <string>

#include <ddf/options.hpp>

#include "tools/common/console.hpp"
#include "tools/common/exit_code.hpp"

namespace ddf::tools {

/// The summary table, lines ended. Long lists are cut, failures never before successes.
std::string summary_text(const report& r);

/// The fields that scripts rely on, in their order. Input: what the program exits with.
json summary_json(const report& r, exit_code exit);

/// The event of one object that is complete, or has failed.
json object_event(const object_report& o);

}  // namespace ddf::tools
