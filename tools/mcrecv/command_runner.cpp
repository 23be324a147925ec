#include "tools/mcrecv/command_runner.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

extern "C" char** environ;

namespace ddf::tools {
namespace {

/// Ours, with the three variables that tell the command what it is about.
std::vector<std::string> environment_for(const object& version) {
  std::vector<std::string> out{"DDF_NAME=" + version.name(), fmt::format("DDF_VERSION={}", version.version()),
                               "DDF_PATH=" + version.path()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("DDF_NAME=") && !text.starts_with("DDF_VERSION=") && !text.starts_with("DDF_PATH="))
      out.emplace_back(text);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Starts `command`. Output: 0 or an errno.
int start(const std::string& command, bool output_is_taken, const object& version, pid_t& child) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (output_is_taken) ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  // Our signal mask and the ignored SIGPIPE are our own business.
  sigset_t none, pipe;
  sigemptyset(&none);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments{"sh", "-c", command};
  auto environment = environment_for(version);
  const int failed =
      ::posix_spawn(&child, "/bin/sh", &files, &attributes, pointers(arguments).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return failed;
}

}  // namespace

command_runner::command_runner(std::string command, bool output_is_taken, hooks calls)
    : command_(std::move(command)),
      output_is_taken_(output_is_taken),
      hooks_(std::move(calls)),
      thread_([this] { work(); }) {}

command_runner::~command_runner() { finish(); }

void command_runner::add(std::shared_ptr<const object> version) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(version));
  changed_.notify_one();
}

std::uint64_t command_runner::finish() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  return failures_;
}

void command_runner::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto version = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    run(*version);
  }
}

void command_runner::run(const object& version) {
  const auto held = hooks_.before ? hooks_.before() : nullptr;
  const auto fail = [&](const std::string& how) {
    ++failures_;
    if (hooks_.failed)
      hooks_.failed(
          fmt::format("the command of --exec for '{}' version {} {}", version.name(), version.version(), how));
  };
  pid_t child = 0;
  if (const int failed = start(command_, output_is_taken_, version, child); failed != 0) {
    fail(fmt::format("could not be started: {}", std::strerror(failed)));  // glibc's is safe for threads
    return;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status)) fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    fail(fmt::format("ended with exit status {}", WEXITSTATUS(status)));
}

}  // namespace ddf::tools
