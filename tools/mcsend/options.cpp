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
  mcsend --name policy --explain step-101.safetensors
      what is sent to whom, and why: receivers that hold an older version get what changed
  mcsend --watch --name policy latest.safetensors
      each new version of the file as it appears, until interrupted
  mcsend --name tuned --base base@3 tuned.safetensors
      to receivers of base: what differs from its version 3
  mcsend --doctor --interface eth1
      nothing is sent: what would be used of this host, what is wrong with it, and how to mend it
  mcsend --serve -- -odd-name
      stay for receivers that come later; -- ends the options
)";

constexpr std::string_view exits = R"(  0 all complete and verified          1 a file or the network failed; --doctor: a problem was found
  2 an option or a name is not usable  3 no receiver in time
  4 a file changed while it was sent   5 some receivers are not complete (they are named)
  6 refused                            130 interrupted
)";

constexpr std::uint64_t receivers_max = 1'000'000;
constexpr std::uint64_t keep_max = 1000;

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
  line.add({.name = "watch",
            .kind = setting_kind::flag,
            .help = "stay, and publish each new version of the PATHs as it appears, once nobody writes to it any more; "
                    "until interrupted",
            .default_text = "false",
            .set = set_flag(options.watch)});
  line.add({.name = "settle",
            .value = "TIME",
            .help = "with --watch: how long nothing may change before a version counts as written (default 1s)",
            .default_text = "1s",
            .set = set_time(options.settle, std::chrono::nanoseconds(1))});
  line.group("Deltas");
  line.add({.name = "base",
            .value = "auto|none|NAME@VERSION",
            .help =
                "which version receivers get what changed from: auto, any earlier one they hold (default); none: all "
                "get the whole; or one that was published from here, also of another object",
            .default_text = "auto",
            .set = [&](const std::string& text) -> result<void> {
              if (text != "auto" && text != "none") {
                const auto at = text.rfind('@');
                if (at == std::string::npos ||
                    !parse_count(text.substr(at + 1), 1, std::numeric_limits<std::uint64_t>::max()))
                  return fail(errc::invalid_argument,
                              fmt::format("read '{}'; allowed: auto, none or NAME@VERSION, as in policy@41", text));
                if (auto usable = check_object_name(text.substr(0, at)); !usable)
                  return fail(errc::invalid_argument, fmt::format("read '{}': {}", text, usable.error().what));
              }
              options.publish.base = text;
              return {};
            }});
  line.add({.name = "delta",
            .value = "auto|fast",
            .help =
                "fast: deltas that are quick to make and apply rather than small (default auto: small, but on links "
                "of more than 20 Gbit/s)",
            .default_text = "auto",
            .set = [&](const std::string& text) -> result<void> {
              if (text != "auto" && text != "fast")
                return fail(errc::invalid_argument, fmt::format("read '{}'; allowed: auto or fast", text));
              options.publish.fast = text == "fast";
              return {};
            }});
  line.add({.name = "keep",
            .value = "N",
            .help = "of how many published versions a copy stays in the state folder, for deltas after the file was "
                    "overwritten (default 0)",
            .default_text = "0",
            .set = [&](const std::string& text) -> result<void> {
              const auto count = parse_count(text, 0, keep_max);
              if (!count) return tl::unexpected(count.error());
              options.publisher.keep = static_cast<unsigned>(*count);
              return {};
            }});
  line.add({.name = "consistency",
            .value = "versioned|immutable|append-only",
            .help = "versioned: each publication is a version (default); immutable: the first one is the last; "
                    "append-only: files only grow, and what was there is not read again",
            .default_text = "versioned",
            .set = [&](const std::string& text) -> result<void> {
              if (text == "versioned")
                options.publish.consistent = consistency::versioned;
              else if (text == "immutable")
                options.publish.consistent = consistency::immutable;
              else if (text == "append-only")
                options.publish.consistent = consistency::append_only;
              else
                return fail(errc::invalid_argument,
                            fmt::format("read '{}'; allowed: versioned, immutable or append-only", text));
              return {};
            }});
  line.add({.name = "explain",
            .kind = setting_kind::flag,
            .help = "tell the plan before sending: who holds what, what each gets and why, in bytes and seconds; "
                    "afterwards the estimate beside the measured",
            .default_text = "false",
            .set = set_flag(options.explain)});
  line.add({.name = "dry-run",
            .kind = setting_kind::flag,
            .help = "tell the plan and stop there: nothing is sent",
            .default_text = "false",
            .set = set_flag(options.publish.dry_run),
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
  line.add({.name = "commit",
            .value = "each|group",
            .help = "each receiver shows a version as soon as it has it, or all at once when all, or the quorum, have it, "
                    "and otherwise none (default each)",
            .default_text = "each",
            .set = [&](const std::string& text) -> result<void> {
              if (text != "each" && text != "group") return fail(errc::invalid_argument, fmt::format("'{}' is neither each nor group", printable(text)));
              options.publish.commit_together = text == "group";
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
  if (options.publish.dry_run) options.explain = true;
  if (options.watch && options.publish.dry_run)
    return fail(errc::invalid_argument, "--watch and --dry-run exclude each other");
  if (options.watch && options.publish.version != 0)
    return fail(errc::invalid_argument, "--watch: each version has a number of its own; leave --object-version out");
  if (options.watch && options.publish.consistent == consistency::immutable)
    return fail(errc::invalid_argument, "--watch: an immutable object has one version only");
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
