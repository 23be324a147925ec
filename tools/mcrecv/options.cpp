#include "tools/mcrecv/options.hpp"

#include <fmt/format.h>

#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

constexpr std::string_view about =
    "Receives the objects that mcsend publishes on a multicast group, as files and folders. An object appears under "
    "its name only when it is complete and verified; an interrupted transfer goes on where it stopped, also in a later "
    "run.";

constexpr std::string_view examples = R"(  mcrecv
      what the next sender publishes, into this folder; wait up to 60 seconds for one
  mcrecv --output /data --timeout 10m 'acme/*'
      only objects below acme, into /data; wait up to 10 minutes
  mcrecv --follow --exec 'systemctl reload model-server' model.safetensors
      stay, and run a command after each complete version of one object
  mcrecv --follow --exec 'echo "$DDF_NAME version $DDF_VERSION is $DDF_PATH"'
      what the command learns
  mcrecv --follow --keep 2 'acme/**'
      keep up, and leave the two versions before the newest readable
  mcrecv --interface eth1 --group 239.1.2.3:7700 --json
      through one interface, on another group; a report for programs
  mcrecv --doctor --interface eth1
      receive nothing: what would be used of this host, what is wrong with it, and how to mend it
)";

constexpr std::string_view exits =
    R"(  0 everything complete and verified        1 a file, the network, the sender or a command failed;
                                              --doctor: a problem was found
  2 an option is not usable                 3 no sender in time
  4 what arrived is not what was announced  5 not complete by the deadline
  6 refused                                 130 interrupted
)";

constexpr std::uint64_t keep_max = 1000;

}  // namespace

command_line mcrecv_command_line(mcrecv_options& options) {
  auto& subscriber = options.subscriber;
  subscriber.output_directory = std::string(".");  // from a literal, g++ 12 warns of an overlap that is not there
  command_line line({.program = "mcrecv",
                     .arguments = "[NAME-PATTERN...]",
                     .about = std::string(about),
                     .examples = std::string(examples),
                     .exits = std::string(exits)});
  line.group("Objects (NAME-PATTERN: * any run without /, ** any run, ? one character; default: all)");
  line.add({.name = "output",
            .value = "DIR",
            .help = "the folder that objects appear in (default: this one)",
            .default_text = ".",
            .set = set_text(subscriber.output_directory, "a folder")});
  line.add({.name = "state",
            .value = "DIR",
            .help = "where interrupted transfers are remembered (default $XDG_STATE_HOME/ddf or ~/.local/state/ddf)",
            .set = [&](const std::string& text) -> result<void> {
              if (text == "none")
                return fail(errc::invalid_argument,
                            "read 'none'; allowed: a folder; without one an interrupted transfer could not be resumed "
                            "(./none is a folder of that name)");
              return set_text(subscriber.state_directory, "a folder")(text);
            }});
  line.add({.name = "exec",
            .value = "COMMAND",
            .help = "run COMMAND with /bin/sh after each complete version, with DDF_NAME, DDF_VERSION and DDF_PATH "
                    "set; its failure makes the exit status 1",
            .set = set_text(options.command, "a command for /bin/sh")});
  line.add({.name = "keep",
            .value = "N",
            .help = "how many older versions of each object stay readable, in DIR/.ddf-versions/NAME.versions/NUMBER "
                    "(default 0)",
            .default_text = "0",
            .set = [&](const std::string& text) -> result<void> {
              const auto count = parse_count(text, 0, keep_max);
              if (!count) return tl::unexpected(count.error());
              subscriber.keep = static_cast<unsigned>(*count);
              return {};
            }});
  line.group("Sessions");
  line.add({.name = "follow",
            .kind = setting_kind::flag,
            .help = "keep receiving until interrupted",
            .default_text = "false",
            .set = set_flag(subscriber.follow),
            .opposite = "once",
            .opposite_help = "exit when the sender's session is complete (default)"});
  line.add({.name = "timeout",
            .value = "TIME",
            .help = "how long to wait for a sender (default 60s)",
            .default_text = "60s",
            .set = set_time(subscriber.timeout, std::chrono::nanoseconds(1))});
  add_network_options(line, options);
  add_output_options(line, options);
  return line;
}

result<void> complete(mcrecv_options& options, const std::vector<std::string>& arguments) {
  static_cast<network_options&>(options.subscriber) = options.network;
  for (const auto& pattern : arguments)
    if (pattern.empty()) return fail(errc::invalid_argument, "NAME-PATTERN: is empty; '**' matches every name");
  options.patterns = arguments;
  if (options.patterns.empty()) options.patterns.emplace_back("**");
  return {};
}

}  // namespace ddf::tools
