// A timer on the event loop that is cheap to move: it is set anew only to fire earlier.
#pragma once
#include <asio.hpp>

#include <functional>
#include "lib/runtime/host.hpp"

namespace ddf {

class lazy_timer {
 public:
  lazy_timer(asio::io_context& io, std::function<void()> on_fire) : timer_(io), on_fire_(std::move(on_fire)) {}

  /// Fires at `t` or earlier; whoever is called looks at the time and asks again.
  void at(time_point t) {
    if (t == never || t >= armed_) return;
    armed_ = t;
    timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::duration_cast<std::chrono::steady_clock::duration>(t.time_since_epoch())));
    timer_.async_wait([this](const asio::error_code& e) {
      if (e) return;   // moved, or gone
      armed_ = never;
      on_fire_();
    });
  }
  void cancel() {
    armed_ = never;
    timer_.cancel();
  }

 private:
  asio::steady_timer timer_;
  std::function<void()> on_fire_;
  time_point armed_ = never;
};

}  // namespace ddf
