// Runs a command after each complete version, outside the library's thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <ddf/subscriber.hpp>

namespace ddf::tools {

class command_runner {
 public:
  struct hooks {
    std::function<std::shared_ptr<void>()> before;  // what it returns is held while the command runs
    std::function<void(const std::string& sentence)> failed;
  };

  /// Input: `command` for /bin/sh -c; `output_is_taken`: the command's standard output goes to standard error.
  /// The hooks are called from the runner's thread.
  command_runner(std::string command, bool output_is_taken, hooks calls);
  ~command_runner();
  command_runner(const command_runner&) = delete;
  command_runner& operator=(const command_runner&) = delete;

  /// Runs the command for `version` when those before it have ended. Never blocks, so the queue has no bound but
  /// the number of versions: none may be dropped, and the library's thread may not wait. Any thread.
  void add(std::shared_ptr<const object> version);

  /// Waits until every command has ended. Output: how many failed.
  std::uint64_t finish();

 private:
  void work();
  void run(const object& version);

  const std::string command_;
  const bool output_is_taken_;
  const hooks hooks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const object>> waiting_;
  bool closed_ = false;
  std::uint64_t failures_ = 0;  // by the thread, read after its end
  std::thread thread_;
};

}  // namespace ddf::tools
