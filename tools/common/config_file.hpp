// The configuration file: TOML with common options at the top and those of one program in a table of its name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ddf/error.hpp>

namespace ddf::tools {

struct config_entry {
  std::vector<std::string> texts;  // more than one, or none, for an array
  std::uint32_t line = 0;
  bool in_table = false;  // from the program's table, which wins over the top
};

/// Reads the entries that concern `program`; its table wins over the top of the file.
///
/// Output: entries by key.
/// Errors: io when the file cannot be read; invalid_argument with file and line when it is not TOML, or has a value
///         that is neither a string, a number, a boolean nor an array of these.
result<std::map<std::string, config_entry>> read_config_file(const std::string& path, const std::string& program);

}  // namespace ddf::tools
