#include "tools/common/run.hpp"

#include <fmt/format.h>

#include "tools/common/output.hpp"
#include "tools/common/plan_text.hpp"
#include "tools/common/report_text.hpp"
#include "tools/common/units.hpp"

namespace ddf::tools {
namespace {

constexpr auto tick_period = std::chrono::milliseconds(100);

/// After an interruption: how far it came and what is left of it.
std::string remains_text(const report& r, const progress& last) {
  if (r.sender && last.receivers_joined == 0) return "no receiver had joined";
  if (r.sender)
    return fmt::format(
        "{} of {} receivers are complete; the others were told, keep what they have, and show no partial file",
        last.receivers_complete, last.receivers_joined);
  if (last.bytes_total == 0) return "nothing was under way";
  return fmt::format(
      "{} of {} arrived; what is not complete is kept and not visible, and the next mcrecv with the same --output and "
      "--state resumes it",
      bytes_text(last.bytes_done), bytes_text(last.bytes_total));
}

}  // namespace

report watch(const session& s, console& out, const interrupts& signals, const std::function<void()>& on_tick) {
  bool cancelled = false;
  do {
    if (!cancelled && signals.caught() != 0) {
      cancelled = true;
      out.info("interrupted: closing the session (once more: exit at once)");
      s.cancel();
    }
    if (on_tick) on_tick();
    out.tick(s.snapshot());
  } while (!s.wait_for(tick_period));
  auto r = s.wait();
  const auto last = s.snapshot();
  out.finish(last);
  if (r.outcome.code == errc::interrupted) out.info(remains_text(r, last));
  return r;
}

exit_code tell_end(const report& r, exit_code exit, console& out, bool explain) {
  for (const auto& warning : r.warnings) out.warning(warning);
  if (r.outcome.code != errc::ok) out.error(describe(r.outcome));
  if (out.options().json) {
    out.event(summary_json(r, exit));
  } else if (!out.options().quiet) {
    write_output(summary_text(r) + (explain ? plan_outcome_text(r) : std::string()));
  }
  return finish_output(out.program()) || exit != exit_complete ? exit : exit_failed;
}

exit_code tell_failure(const error& e, bool sender, console& out) {
  report r;
  r.sender = sender;
  r.outcome = e;
  const auto exit = exit_code_of(e.code);
  out.finish({});
  out.error(describe(e));
  if (out.options().json) out.event(summary_json(r, exit));
  return finish_output(out.program()) || exit != exit_complete ? exit : exit_failed;
}

}  // namespace ddf::tools
