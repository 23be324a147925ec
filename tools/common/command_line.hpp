// The options of one program: declared once, read from the command line, the environment and a file.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ddf/error.hpp>

#include "tools/common/exit_code.hpp"

namespace ddf::tools {

/// Where a value came from. A later one wins.
enum class origin { by_default, file, environment, option };
std::string_view name(origin from);

enum class setting_kind {
  value,  // takes one value; the last one given wins
  list,   // takes one value each time it is given; from the environment, separated by commas
  flag,   // "true" or "false"
  count   // a flag whose repetitions count, "0" to "9"
};

/// Reads one value into where it belongs. Errors: a sentence of what was read and what is allowed, without the name.
using setter = std::function<result<void>(const std::string& text)>;

struct setting {
  std::string name;  // "object-version": --object-version, DDF_OBJECT_VERSION, object-version = in a file
  char letter = 0;   // "-v"
  setting_kind kind = setting_kind::value;
  std::string value;  // what --help calls the value
  std::string help;
  std::string default_text;  // what holds when nobody says anything
  setter set;
  bool command_line_only = false;  // belongs to one run: neither environment nor file
  std::string opposite;            // a flag: the option that says the contrary, on the command line only
  std::string opposite_help;
  bool alone = false;  // a flag for a run of another kind: no arguments, and of the options only the common ones
};

/// A setting as it came out.
struct effective {
  std::vector<std::string> texts;
  setting_kind kind = setting_kind::value;
  origin from = origin::by_default;
};

class command_line {
 public:
  struct page {             // the parts of --help that no option says
    std::string program;    // "mcsend"
    std::string arguments;  // "PATH..."
    std::string about;      // a paragraph
    std::string examples;   // lines, printed as they are
    std::string exits;      // lines, printed as they are
    bool arguments_needed = false;
  };

  explicit command_line(page text);

  /// Options that follow stand below this heading in --help. Those that are `common` to both programs may also stand
  /// at the top of a file.
  void group(std::string heading, bool common = false);
  /// Declares an option. Precondition: its name is new.
  void add(setting s);

  /// Reads the command line, then the environment, then the file named by --config; sets each option once, by the
  /// first of these that names it.
  ///
  /// Output: none to go on; otherwise what to exit with, everything having been said on the standard streams.
  std::optional<exit_code> read(int argc, char** argv);

  const std::vector<std::string>& arguments() const { return arguments_; }
  const std::map<std::string, effective>& settings() const { return effective_; }
  origin from(const std::string& name) const { return effective_.at(name).from; }
  std::string help() const;

 private:
  struct declared {
    setting s;
    std::string heading;
    bool common = false;
  };
  struct values {  // one setting's values on one level
    std::vector<std::string> texts;
    std::string label;  // how to call it in an error: "--rate", "DDF_RATE", "ddf.toml:3: rate"
  };
  using level = std::map<std::string, values>;

  result<level> read_options(int argc, char** argv);
  result<level> read_environment() const;
  result<level> read_file(const std::string& path) const;
  exit_code refuse(const std::string& sentence) const;

  page page_;
  std::string heading_;
  bool common_ = false;
  std::vector<declared> declared_;
  std::vector<std::string> arguments_;
  std::map<std::string, effective> effective_;
  bool wants_help_ = false, wants_version_ = false;
};

/// "object-version" -> "DDF_OBJECT_VERSION".
std::string environment_name(const std::string& setting);

}  // namespace ddf::tools
