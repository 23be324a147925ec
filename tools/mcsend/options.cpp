#include "tools/mcsend/options.hpp"

#include <filesystem>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "lib/model/object_name.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

constexpr std::string_view about =
    "Publishes files and folders to every receiver of a multicast group, each as one object with a name and a version. "
    "One publication costs one object's worth of traffic, however many receive it. Every byte is verified before a "
    "receiver shows it; what a receiver misses is repaired.";

constexpr std::string_view examples = R"(  mcsend model.safetensors
      to whoever runs mcrecv within 2 seconds, at the rate that the group sustains
  mcsend --expect 8 --deadline 10m checkpoint/
      a folder, once 8 receivers have joined; give up on those that are not complete in 10 minutes
  mcsend --name acme/policy --object-version 42 --rate 5Gbit policy.bin
      under another name, with a version of your own, at 5 Gbit/s
  mcsend --interface eth1 --expect 3 --quorum 2 --json data.bin
      through one interface; a success when 2 receivers have it; a report for programs
  mcsend --serve -- -odd-name
      stay for receivers that come later; -- ends the options
)";

constexpr std::string_view exits = R"(  0 all complete and verified          1 a file or the network failed
  2 an option or a name is not usable  3 no receiver in time
  4 a file changed while it was sent   5 some receivers are not complete (they are named)
  6 refused                            130 interrupted
)";

constexpr std::uint64_t receivers_max = 1'000'000;

/// The last component of a path; of the folder that it stands for, when that is "." or "..".
std::string last_component(const std::string& path) {
  auto end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const auto start = path.rfind('/', end);
  auto last =
      path.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? 0 : start + 1) + 1);
  if (last != "." && last != "..") return last;
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? std::string() : real.filename().string();
}

}  // namespace

command_line mcsend_command_line(mcsend_options& options) {
  command_line line({.program = "mcsend",
                     .arguments = "PATH...",
                     .about = std::string(about),
                     .examples = std::string(examples),
                     .exits = std::string(exits),
                     .arguments_needed = true});
  line.group("Object");
  line.add({.name = "name",
            .value = "NAME",
            .help = "the object's name, with one PATH only (default: the last part of PATH)",
            .set = [&](const std::string& text) -> result<void> {
              if (auto usable = check_object_name(text); !usable) return usable;
              options.name = text;
              return {};
            },
            .command_line_only = true});
  line.add(
      {.name = "object-version",
       .value = "N",
       .help =
           "the version to publish, 1 or more (default next: one more than the last, the same when nothing changed)",
       .default_text = "next",
       .set = [&](const std::string& text) -> result<void> {
         if (text == "next") return {};
         const auto version = parse_count(text, 1, std::numeric_limits<std::uint64_t>::max());
         if (!version) return fail(errc::invalid_argument, version.error().what + ", or next");
         options.publish.version = *version;
         return {};
       },
       .command_line_only = true});
  line.group("Receivers");
  line.add({.name = "expect",
            .value = "N",
            .help = "start when N receivers have joined (default 0: those who join within --wait)",
            .default_text = "0",
            .set = [&](const std::string& text) -> result<void> {
              const auto count = parse_count(text, 0, receivers_max);
              if (!count) return tl::unexpected(count.error());
              options.publish.expect = static_cast<std::uint32_t>(*count);
              return {};
            }});
  line.add({.name = "wait",
            .value = "TIME",
            .help = "how long to wait for receivers (default 2s, with --expect 60s)",
            .set = [&](const std::string& text) -> result<void> {
              auto set = set_time(options.publish.wait)(text);
              // The library takes 0 for its default; the shortest wait there is says "do not wait".
              if (options.publish.wait.count() == 0) options.publish.wait = std::chrono::nanoseconds(1);
              return set;
            }});
  line.add({.name = "deadline",
            .value = "TIME|none",
            .help = "give up on receivers that are not complete by then (default none: wait while they make progress)",
            .default_text = "none",
            .set = [&](const std::string& text) -> result<void> {
              options.publish.deadline = {};
              if (text == "none") return {};
              if (auto set = set_time(options.publish.deadline, std::chrono::nanoseconds(1))(text); !set)
                return fail(errc::invalid_argument, set.error().what + ", or none");
              return {};
            }});
  line.add({.name = "quorum",
            .value = "N|all",
            .help = "how many complete receivers are a success (default all: all that joined and all expected)",
            .default_text = "all",
            .set = [&](const std::string& text) -> result<void> {
              options.publish.quorum = 0;
              if (text == "all") return {};
              const auto count = parse_count(text, 1, receivers_max);
              if (!count) return fail(errc::invalid_argument, count.error().what + ", or all");
              options.publish.quorum = static_cast<std::uint32_t>(*count);
              return {};
            }});
  line.add({.name = "linger",
            .value = "TIME",
            .help = "stay that long after the last receiver, for late ones (default 0s)",
            .default_text = "0s",
            .set = set_time(options.publish.linger)});
  line.add({.name = "serve",
            .kind = setting_kind::flag,
            .help = "stay until interrupted, for receivers that come later",
            .default_text = "false",
            .set = set_flag(options.publish.serve)});
  line.group("Speed and state");
  line.add({.name = "rate",
            .value = "auto|RATE",
            .help = "how fast to send, as in 10G, 400Mbit, 80MB/s (default auto: what the group sustains)",
            .default_text = "auto",
            .set = [&](const std::string& text) -> result<void> {
              options.publisher.rate_bytes_per_s = 0;
              if (text == "auto") return {};
              const auto rate = parse_rate(text);
              if (!rate) return fail(errc::invalid_argument, rate.error().what + ", or auto");
              options.publisher.rate_bytes_per_s = *rate;
              return {};
            }});
  line.add({.name = "state",
            .value = "DIR|none",
            .help = "where published versions are remembered (default $XDG_STATE_HOME/ddf or ~/.local/state/ddf)",
            .set = set_text(options.publisher.state_directory, "a folder, or none")});
  add_network_options(line, options);
  add_output_options(line, options);
  return line;
}

result<void> complete(mcsend_options& options, const std::vector<std::string>& arguments) {
  static_cast<network_options&>(options.publisher) = options.network;
  if (!options.name.empty() && arguments.size() > 1)
    return fail(errc::invalid_argument,
                fmt::format("--name: is for one PATH, and there are {}; publish a folder, or run mcsend once for each",
                            arguments.size()));
  std::map<std::string, std::string> path_of_name;
  for (const auto& path : arguments) {
    if (path.empty()) return fail(errc::invalid_argument, "PATH: is empty");
    auto name = options.name.empty() ? last_component(path) : options.name;
    if (name.empty())
      return fail(errc::invalid_argument, fmt::format("PATH '{}': gives no name; choose one with --name", path));
    if (auto usable = check_object_name(name); !usable)
      return fail(errc::invalid_argument,
                  fmt::format("PATH '{}': {}; choose another with --name", path, usable.error().what));
    const auto [other, is_new] = path_of_name.emplace(name, path);
    if (!is_new)
      return fail(errc::invalid_argument,
                  fmt::format("'{}' and '{}' would both be published as '{}'; run mcsend for each, with --name",
                              other->second, path, name));
    options.paths.push_back({path, std::move(name)});
  }
  return {};
}

}  // namespace ddf::tools
