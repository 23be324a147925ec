#include "tools/mcsend/watching.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <ddf/publisher.hpp>

#include "tools/common/report_text.hpp"
#include "tools/common/run.hpp"
#include "tools/mcsend/explanation.hpp"
#include "tools/mcsend/settling.hpp"
#include "tools/mcsend/sighting.hpp"

namespace ddf::tools {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto look_period = 200ms;
constexpr int look_share = 10;  // looking takes at most one part in so many of the time

class version_watch {
 public:
  version_watch(const mcsend_options& options, publisher& with, console& out, const interrupts& signals)
      : options_(options), publisher_(with), out_(out), signals_(signals), settled_(options.settle) {}

  exit_code run() {
    while (wait_for_version()) {
      settled_.take();
      verdict_ = settling::verdict::known;
      auto ticket = publisher_.publish_paths(options_.paths, next_options());
      if (ticket) {
        serve(**ticket);
      } else {
        if (!refused(ticket.error())) break;
      }
    }
    return exit_;
  }

 private:
  settling::verdict look() {
    const auto before = clock::now();
    if (before < look_due_) return verdict_;
    auto seen = look_at(options_.paths);
    const auto now = clock::now();
    look_due_ = now + std::max<clock::duration>(look_period, (now - before) * look_share);
    verdict_ = settled_.look(now, std::move(seen));
    return verdict_;
  }

  /// Output: false when a signal came first.
  bool wait_for_version() {
    for (bool told = false;; std::this_thread::sleep_for(50ms)) {
      if (signals_.caught() != 0) return false;
      const auto verdict = look();
      if (verdict == settling::verdict::ready) return true;
      if (verdict != settling::verdict::absent || told) continue;
      told = true;
      out_.info(fmt::format("waiting for {}", settled_.missing()));
    }
  }

  publish_options next_options() {
    publish_options how = options_.publish;
    how.serve = true;
    how.deadline = {};  // is for the next version, see serve(): until then nobody need be given up
    // A version is a session of its own, and those who follow come back at once.
    if (followers_ != 0) {
      how.expect = followers_;
      if (how.wait.count() == 0 || options_.publish.expect != 0) how.wait = 2s;
    }
    if (options_.publisher.state_directory == "none") how.version = ++unremembered_version_;
    if (options_.explain) how.on_plan = plan_.hook();
    return how;
  }

  void serve(ticket& published) {
    bool replaced = false, overdue = false;
    std::uint32_t told = 0;
    const auto began = clock::now();
    out_.restart();
    auto r =
        watch({[&](std::chrono::nanoseconds limit) { return published.wait_for(limit); },
               [&] { return published.wait(); }, [&] { return published.snapshot(); }, [&] { published.cancel(); }},
              out_, signals_, [&] {
                plan_.tell(out_);
                const auto now = published.snapshot();
                if (now.phase == progress::phase::lingering && now.receivers_complete > told) {
                  told = now.receivers_complete;
                  out_.info(fmt::format("complete at {} receiver{}; watching for the next version", told,
                                        told == 1 ? "" : "s"));
                }
                if (replaced || look() != settling::verdict::ready) return;
                // Nobody can get any more of what was overwritten.
                if (!may_replace(now) && !settled_.taken_is_gone()) {
                  const auto deadline = options_.publish.deadline;
                  if (deadline.count() == 0 || clock::now() - began < deadline) return;
                  overdue = true;
                }
                replaced = true;
                published.cancel();
              });
    plan_.tell(out_);
    const bool interrupted = signals_.caught() != 0;
    const auto complete =
        static_cast<std::uint32_t>(std::count_if(r.receivers.begin(), r.receivers.end(), is_complete));
    if (replaced && r.receivers.empty()) {
      out_.info("a newer version came before anyone asked for the last one");
      return;
    }
    bool again = false;
    if (r.outcome.code == errc::source_changed) {
      // Those who have it verified what was read, which was one version; the others get the next.
      again = complete != r.receivers.size() || complete == 0;
      if (!again) r.outcome = {};
      if (again && !replaced && !interrupted) {
        out_.info("it is published again when nobody writes to it any more");
        settled_.give_back(clock::now());
        verdict_ = settling::verdict::changing;
      }
    }
    if (overdue && !interrupted) {
      r.outcome = {
          errc::incomplete, 0,
          fmt::format("{} of {} receivers are complete; the deadline has passed, and the next version is there",
                      complete, r.receivers.size())};
      for (auto& o : r.objects) o.problem = r.outcome;
    } else if (r.outcome.code == errc::interrupted && !interrupted) {
      again = true;  // who does not have it gets the next
      r.outcome.what = "the next version took its place before everybody had it";
      for (auto& o : r.objects) o.problem = r.outcome;
    }
    if (r.outcome.code == errc::ok)
      for (auto& o : r.objects) o.problem = {};
    followers_ = complete;
    for (const auto& object : r.objects) out_.event(object_event(object));
    const auto exit = tell_end(r, exit_code_of(r.outcome.code), out_, options_.explain);
    if (!again) note(exit);
  }

  /// Output: whether to go on.
  bool refused(const error& e) {
    // It was moved away, or not all of it can be read yet.
    if (e.code == errc::io || e.code == errc::source_changed) {
      out_.warning(describe(e) + "; it is tried again when it has settled");
      settled_.give_back(clock::now());
      verdict_ = settling::verdict::changing;
      return true;
    }
    note(tell_failure(e, true, out_));
    return e.code != errc::invalid_argument && e.code != errc::unknown_version;
  }

  void note(exit_code exit) {
    if (exit_ == exit_complete) exit_ = exit;
  }
  static bool is_complete(const receiver_report& one) { return one.state == "complete"; }

  const mcsend_options& options_;
  publisher& publisher_;
  console& out_;
  const interrupts& signals_;
  settling settled_;
  settling::verdict verdict_ = settling::verdict::absent;
  clock::time_point look_due_{};
  explanation plan_;
  std::uint32_t followers_ = 0;  // who completed the version before
  std::uint64_t unremembered_version_ = 0;
  exit_code exit_ = exit_complete;
};

}  // namespace

exit_code publish_versions(const mcsend_options& options, publisher& with, console& out, const interrupts& signals) {
  return version_watch(options, with, out, signals).run();
}

}  // namespace ddf::tools
