// One session, from its start to the exit code: what both programs do alike.
#pragma once
#include <chrono>
#include <functional>

#include <ddf/options.hpp>

#include "tools/common/console.hpp"
#include "tools/common/exit_code.hpp"
#include "tools/common/interrupts.hpp"

namespace ddf::tools {

/// What a ticket and a subscriber have in common.
struct session {
  std::function<bool(std::chrono::nanoseconds)> wait_for;
  std::function<report()> wait;
  std::function<progress()> snapshot;
  std::function<void()> cancel;
};

/// Shows the session until it ends; a signal cancels it. `on_tick` runs ten times a second, in this thread.
report watch(const session& s, console& out, const interrupts& signals, const std::function<void()>& on_tick = {});

/// Tells the end: warnings not told yet, the error, the summary. Input: `exit`, what the program will exit with.
/// Input: `explain`: also what was planned beside what was measured.
/// Output: that, or exit_failed when standard output took not all of it.
exit_code tell_end(const report& r, exit_code exit, console& out, bool explain = false);

/// The same when there was no session: the report says nothing but why.
exit_code tell_failure(const error& e, bool sender, console& out);

}  // namespace ddf::tools
