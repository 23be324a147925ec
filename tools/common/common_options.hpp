// The options that mcsend and mcrecv share.
#pragma once
#include <string>

#include <ddf/options.hpp>

#include "tools/common/command_line.hpp"
#include "tools/common/console.hpp"

namespace ddf::tools {

struct common_options {
  network_options network;
  console_options console;
  bool doctor = false;
};

/// Declares them. Precondition: `options` outlives `line`.
void add_network_options(command_line& line, common_options& options);
void add_output_options(command_line& line, common_options& options);

// Setters for the values that the programs' own options have too.
setter set_text(std::string& out, std::string allowed);  // anything but the empty text
setter set_time(std::chrono::nanoseconds& out, std::chrono::nanoseconds least = {});
setter set_flag(bool& out);

/// The "start" event: the options as they came out, and where each came from.
json start_event(const command_line& line, bool sender);

}  // namespace ddf::tools
