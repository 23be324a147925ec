// mcsend: publishes files and folders to every receiver of a group.
#include <exception>

#include <fmt/format.h>

#include <ddf/ddf.hpp>

#include "lib/model/object_name.hpp"
#include "tools/common/doctor_text.hpp"
#include "tools/common/output.hpp"
#include "tools/common/report_text.hpp"
#include "tools/common/run.hpp"
#include "tools/mcsend/explanation.hpp"
#include "tools/mcsend/options.hpp"
#include "tools/mcsend/watching.hpp"

namespace ddf::tools {
namespace {

/// Nothing was sent, so nothing is complete and nobody failed.
exit_code tell_dry_run(report r, console& out) {
  r.objects.clear();
  for (auto& one : r.receivers) {
    one.state = "waiting";
    one.reason.clear();
  }
  if (out.options().json) return tell_end(r, exit_complete, out);
  for (const auto& warning : r.warnings) out.warning(warning);
  if (!out.options().quiet) write_output("nothing was sent (--dry-run)\n");
  return finish_output(out.program()) ? exit_complete : exit_failed;
}

int run(int argc, char** argv) {
  mcsend_options options;
  auto line = mcsend_command_line(options);
  if (const auto exit = line.read(argc, argv)) return *exit;
  if (auto completed = complete(options, line.arguments()); !completed) {
    write_error(fmt::format("mcsend: {}\nTry 'mcsend --help'.\n", printable(completed.error().what)));
    return exit_usage;
  }

  if (options.doctor) return tell_host(examine_host(options.publisher, host_role::sender), "mcsend", options.console);

  const interrupts signals;
  console out("mcsend", true, options.console);
  out.event(start_event(line, true));
  options.publisher.log = out.sink();
  auto opened = publisher::open(options.publisher);
  if (!opened) return tell_failure(opened.error(), true, out);
  if (options.watch) return publish_versions(options, **opened, out, signals);

  explanation plan;
  if (options.explain) options.publish.on_plan = plan.hook();
  auto published = (*opened)->publish_paths(options.paths, options.publish);
  if (!published) return tell_failure(published.error(), true, out);

  auto& ticket = **published;
  auto r = watch({[&](std::chrono::nanoseconds limit) { return ticket.wait_for(limit); }, [&] { return ticket.wait(); },
                  [&] { return ticket.snapshot(); }, [&] { ticket.cancel(); }},
                 out, signals, [&] { plan.tell(out); });
  plan.tell(out);
  if (options.publish.dry_run && r.outcome.code == errc::ok) return tell_dry_run(std::move(r), out);
  for (const auto& object : r.objects) out.event(object_event(object));
  return tell_end(r, exit_code_of(r.outcome.code), out, options.explain);
}

}  // namespace
}  // namespace ddf::tools

int main(int argc, char** argv) {
  ddf::tools::guard_standard_streams();
  try {
    return ddf::tools::run(argc, argv);
  } catch (const std::exception& e) {
    ddf::tools::write_error(fmt::format("mcsend: error: {}\n", e.what()));
    return ddf::tools::exit_failed;
  }
}
