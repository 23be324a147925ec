// mcrecv: receives objects as files and folders.
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include <ddf/ddf.hpp>

#include "lib/model/object_name.hpp"
#include "tools/common/doctor_text.hpp"
#include "tools/common/output.hpp"
#include "tools/common/report_text.hpp"
#include "tools/common/run.hpp"
#include "tools/mcrecv/command_runner.hpp"
#include "tools/mcrecv/options.hpp"

namespace ddf::tools {
namespace {

/// What comes from other threads, until the main thread tells it.
class arrivals {
 public:
  /// Output: whether it is news. It is not when the last one of that name was the same version with the same bytes: an
  /// object that matches two patterns comes once for each, and one that is published again comes again.
  bool add(const object& version) {
    const std::lock_guard lock(mutex_);
    told now{version.version(), version.root()};
    auto& last = versions_[version.name()];
    if (last == now) return false;
    last = std::move(now);
    objects_.push_back(
        {.name = version.name(), .version = version.version(), .bytes = version.bytes(), .path = version.path()});
    return true;
  }

  void add_failure(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(sentence);
  }

  void tell(console& out) {
    std::vector<object_report> objects;
    std::vector<std::string> failures;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
      failures.swap(failures_);
    }
    for (const auto& o : objects) {
      out.event({{"event", "object"},
                 {"name", o.name},
                 {"version", o.version},
                 {"bytes", o.bytes},
                 {"path", o.path},
                 {"ok", true}});
      if (out.options().verbose > 0)
        out.info(fmt::format("'{}' version {} is complete: {}", o.name, o.version, o.path));
    }
    for (const auto& sentence : failures) out.error(sentence);
  }

 private:
  struct told {
    std::uint64_t version = 0;
    std::string root;
    bool operator==(const told&) const = default;
  };

  std::mutex mutex_;
  std::map<std::string, told> versions_;  // the last one, by name
  std::vector<object_report> objects_;
  std::vector<std::string> failures_;
};

int run(int argc, char** argv) {
  mcrecv_options options;
  auto line = mcrecv_command_line(options);
  if (const auto exit = line.read(argc, argv)) return *exit;
  if (auto completed = complete(options, line.arguments()); !completed) {
    write_error(fmt::format("mcrecv: {}\nTry 'mcrecv --help'.\n", completed.error().what));
    return exit_usage;
  }

  if (options.doctor) return tell_host(examine_host(options.subscriber, host_role::receiver), "mcrecv", options.console);

  const interrupts signals;
  console out("mcrecv", false, options.console);
  out.event(start_event(line, false));
  options.subscriber.log = out.sink();
  arrivals arrived;
  std::unique_ptr<command_runner> commands;  // outlives the subscriber, whose thread calls it
  if (!options.command.empty())
    commands = std::make_unique<command_runner>(
        options.command, options.console.json,
        command_runner::hooks{[&] { return out.pause(); },
                              [&](const std::string& sentence) { arrived.add_failure(sentence); }});

  auto opened = subscriber::open(options.subscriber);
  if (!opened) return tell_failure(opened.error(), false, out);
  auto& receiving = **opened;
  for (const auto& pattern : options.patterns) {
    auto subscribed = receiving.subscribe(pattern, [&](std::shared_ptr<const object> version) {
      if (arrived.add(*version) && commands) commands->add(std::move(version));
    });
    if (!subscribed) return tell_failure(subscribed.error(), false, out);
  }
  if (auto started = receiving.start(); !started) return tell_failure(started.error(), false, out);

  const auto r =
      watch({[&](std::chrono::nanoseconds limit) { return receiving.wait_for(limit); },
             [&] { return receiving.wait(); }, [&] { return receiving.snapshot(); }, [&] { receiving.stop(); }},
            out, signals, [&] { arrived.tell(out); });
  const auto failed_commands = commands ? commands->finish() : 0;
  arrived.tell(out);
  for (const auto& object : r.objects) {
    if (object.problem.code == errc::ok) continue;  // told when it arrived
    out.event(object_event(object));
  }
  auto exit = exit_code_of(r.outcome.code);
  if (exit == exit_complete && failed_commands > 0) exit = exit_failed;
  return tell_end(r, exit, out);
}

}  // namespace
}  // namespace ddf::tools

int main(int argc, char** argv) {
  ddf::tools::guard_standard_streams();
  try {
    return ddf::tools::run(argc, argv);
  } catch (const std::exception& e) {
    ddf::tools::write_error(fmt::format("mcrecv: error: {}\n", e.what()));
    return ddf::tools::exit_failed;
  }
}
