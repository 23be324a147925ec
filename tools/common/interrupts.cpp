#include "tools/common/interrupts.hpp"

#include <chrono>
#include <csignal>
#include <thread>

#include <unistd.h>

#include "tools/common/exit_code.hpp"

namespace ddf::tools {

interrupts::interrupts() : caught_(std::make_shared<std::atomic<int>>(0)) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    // nohup, and shells without job control for what they put in the background, ignore on purpose.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&set, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);

  // Detached, because nothing but a signal could end its wait; it owns all it touches.
  std::thread([set, caught = caught_] {
    std::chrono::steady_clock::time_point first;
    for (;;) {
      int signal = 0;
      if (::sigwait(&set, &signal) != 0) continue;
      // timeout(1) and some terminals deliver one interrupt twice: only a later one means "at once".
      const auto when = std::chrono::steady_clock::now();
      if (caught->load() == 0) first = when;
      else if (when - first > std::chrono::milliseconds(300)) ::_exit(exit_interrupted);
      caught->store(signal);
    }
  }).detach();
}

}  // namespace ddf::tools
