// SIGINT, SIGTERM and SIGHUP: the first asks the program to end, the second ends it.
#pragma once
#include <atomic>
#include <memory>

namespace ddf::tools {

class interrupts {
 public:
  /// Blocks the signals in this thread and in those it starts later, and waits for them in a thread of its own. A
  /// signal that the caller of the program had set to be ignored stays ignored. Create it before other threads.
  interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// The signal that came, or 0. Never blocks.
  int caught() const { return caught_->load(); }

 private:
  std::shared_ptr<std::atomic<int>> caught_;
};

}  // namespace ddf::tools
