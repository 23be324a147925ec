#include "tools/common/console.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "lib/model/object_name.hpp"
#include "tools/common/output.hpp"
#include "tools/common/progress_line.hpp"

namespace ddf::tools {
namespace {

constexpr std::size_t log_messages_max = 1000;  // between two ticks; more is counted, not kept
constexpr std::size_t columns_default = 80;

bool wants_display(const console_options& options) {
  if (options.progress == "always") return true;
  return options.progress == "auto" && !options.quiet && ::isatty(STDERR_FILENO) == 1;
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return columns_default;
}

std::string_view name(log_level level) {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
  }
  return "unknown";
}

}  // namespace

struct console::log_queue {
  std::mutex mutex;
  std::deque<std::pair<log_level, std::string>> messages;
  std::size_t lost = 0;
  log_level least = log_level::warning;
};

std::string json_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

console::console(std::string program, bool sender, console_options options)
    : program_(std::move(program)),
      sender_(sender),
      options_(std::move(options)),
      started_(std::chrono::steady_clock::now()),
      log_(std::make_shared<log_queue>()),
      display_(wants_display(options_)) {
  if (options_.verbose > 0) log_->least = options_.verbose > 1 ? log_level::debug : log_level::info;
}

console::~console() {
  const std::lock_guard lock(display_mutex_);
  erase();
}

double console::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

log_sink console::sink() {
  // Owns the queue with us: the library may still log while it is taken down.
  return [queue = log_](log_level level, const std::string& message) {
    if (level < queue->least) return;
    const std::lock_guard lock(queue->mutex);
    if (queue->messages.size() < log_messages_max) {
      queue->messages.emplace_back(level, message);
    } else {
      ++queue->lost;
    }
  };
}

void console::show_log() {
  std::deque<std::pair<log_level, std::string>> messages;
  std::size_t lost = 0;
  {
    const std::lock_guard lock(log_->mutex);
    messages.swap(log_->messages);
    std::swap(lost, log_->lost);
  }
  for (const auto& [level, message] : messages) {
    if (level == log_level::warning) {
      warning(message);
    } else if (options_.json) {
      event({{"event", "log"}, {"level", name(level)}, {"message", message}});
    } else {
      say(std::string(name(level)), message);
    }
  }
  if (lost > 0) warning(fmt::format("{} log messages came too fast to be shown", lost));
}

void console::tick(const progress& now) {
  show_log();
  draw(now);
  if (!options_.json) return;
  const double at = seconds();
  if (progress_at_ && at - *progress_at_ < 1) return;
  progress_at_ = at;
  if (now.receivers_joined > joined_) event({{"event", "joined"}, {"receivers", now.receivers_joined}});
  joined_ = now.receivers_joined;
  event({{"event", "progress"},
         {"phase", phase_name(now.phase)},
         {"bytes_done", now.bytes_done},
         {"bytes_total", now.bytes_total},
         {"bytes_per_s", now.bytes_per_s},
         {"receivers_joined", now.receivers_joined},
         {"receivers_complete", now.receivers_complete},
         {"nacks", now.nacks},
         {"repaired_bytes", now.repaired_bytes},
         {"object", now.current}});
}

void console::finish(const progress& last) {
  show_log();
  if (drawn_once_) draw(last);
  const std::lock_guard lock(display_mutex_);
  if (drawn_columns_ > 0) write_error("\n");
  drawn_columns_ = 0;
  display_ = false;
}

void console::restart() {
  const std::lock_guard lock(display_mutex_);
  display_ = wants_display(options_);
  drawn_once_ = false;
  joined_ = 0;
}

void console::info(const std::string& message) {
  if (!options_.quiet && !options_.json) say("", message);
}

void console::warning(const std::string& message) {
  if (!warned_.insert(message).second) return;
  if (options_.json) {
    event({{"event", "warning"}, {"message", message}});
  } else {
    say("warning", message);
  }
}

void console::error(const std::string& message) { say("error", message); }

void console::event(json value) {
  if (!options_.json) return;
  value["at"] = seconds();
  write_output(json_line(value));
}

void console::say(const std::string& kind, const std::string& message) {
  const std::lock_guard lock(display_mutex_);
  erase();  // the next tick draws it again, one line lower
  write_error(fmt::format("{}: {}{}{}\n", program_, kind, kind.empty() ? "" : ": ", printable(message)));
}

void console::draw(const progress& now) {
  const std::lock_guard lock(display_mutex_);
  if (!display_ || pauses_ > 0) return;
  // The last column stays free: some terminals wrap as soon as it is written. Blanks, not escape codes, remove what
  // is left of a longer line, so that it works on any terminal and reads well in a file.
  const auto line = progress_line(now, sender_, seconds(), terminal_columns() - 1);
  const auto columns = columns_of(line);
  write_error("\r" + line + std::string(drawn_columns_ > columns ? drawn_columns_ - columns : 0, ' '));
  drawn_columns_ = std::max<std::size_t>(columns, 1);
  drawn_once_ = true;
}

void console::erase() {
  if (drawn_columns_ == 0) return;
  write_error("\r" + std::string(std::min(drawn_columns_, terminal_columns() - 1), ' ') + "\r");
  drawn_columns_ = 0;
}

std::shared_ptr<void> console::pause() {
  {
    const std::lock_guard lock(display_mutex_);
    erase();
    ++pauses_;
  }
  return {nullptr, [this](void*) {
            const std::lock_guard lock(display_mutex_);
            --pauses_;
          }};
}

}  // namespace ddf::tools
