// What a program tells while it works: messages and the progress display on standard error, events on standard output.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <ddf/options.hpp>

namespace ddf::tools {

using json = nlohmann::ordered_json;

struct console_options {
  bool json = false;
  std::string progress = "auto";  // auto, always, never
  int verbose = 0;                // 1: what the library does, 2: how
  bool quiet = false;
};

/// `value` as one line of text, whatever bytes its strings hold.
std::string json_line(const json& value);

class console {
 public:
  console(std::string program, bool sender, console_options options);
  ~console();
  console(const console&) = delete;
  console& operator=(const console&) = delete;

  /// Takes log messages from any thread without blocking; they are shown by the next `tick`.
  log_sink sink();

  // From one thread:
  /// Shows what the log brought, redraws the display, and once a second writes a progress event.
  void tick(const progress& now);
  /// Leaves the display as it stands, on a line of its own.
  void finish(const progress& last);
  /// Shows progress again after `finish`, of another session.
  void restart();
  void info(const std::string& message);
  /// Shown once, however often it is said.
  void warning(const std::string& message);
  void error(const std::string& message);
  void event(json value);  // only with --json

  /// While the pause lasts, the display is off the screen, for a program that writes to the same terminal. Any thread.
  [[nodiscard]] std::shared_ptr<void> pause();

  const console_options& options() const { return options_; }
  const std::string& program() const { return program_; }
  double seconds() const;

 private:
  struct log_queue;

  void show_log();
  void say(const std::string& kind, const std::string& message);
  void draw(const progress& now);
  void erase();  // display_mutex_ held

  const std::string program_;
  const bool sender_;
  const console_options options_;
  const std::chrono::steady_clock::time_point started_;
  const std::shared_ptr<log_queue> log_;
  bool display_;  // the display is wanted, and not finished
  std::set<std::string> warned_;

  std::optional<double> progress_at_;  // of the last event
  std::uint32_t joined_ = 0;

  std::mutex display_mutex_;
  std::size_t drawn_columns_ = 0;  // 0: nothing on the screen
  int pauses_ = 0;
  bool drawn_once_ = false;  // by the thread that draws
};

}  // namespace ddf::tools
