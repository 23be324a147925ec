// How many packets may be on their way to the group: the rate loop.
//
// The sender is clocked by the confirmations of the receivers in the loop, so it cannot outrun their sockets. The window
// starts small, doubles every round trip, and stops at the smallest receive buffer. Loss that grows with the window is
// congestion and shrinks it; loss that does not (a bad cable, a noisy link) is left to repair.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ddf {

class window_control {
 public:
  struct options {
    std::uint64_t initial = 256;        // packets
    std::uint64_t least = 16;           // packets
    double tolerated = 0.02;            // loss that is never reacted to
  };
  window_control() = default;
  explicit window_control(options o) : options_(o), window_(o.initial) {}

  std::uint64_t packets() const { return std::clamp(window_, options_.least, std::max(options_.least, cap_)); }
  std::uint64_t cap() const { return cap_; }
  /// The smallest receive buffer of the receivers in the loop, in packets.
  void set_cap(std::uint64_t packets) { cap_ = std::max<std::uint64_t>(packets, 1); }

  /// A window's worth of packets has been confirmed; `loss` in [0, 1] is what the group in common lost of it.
  void window_confirmed(double loss);
  /// The local queue was full (ENOBUFS): what is on its way is more than the link takes.
  void local_queue_full() { shrink(0.7); }

 private:
  void shrink(double factor);

  options options_;
  std::uint64_t window_ = 256;
  std::uint64_t cap_ = ~std::uint64_t(0) >> 1;
  bool slow_start_ = true;
  double accepted_ = 0;            // loss known not to depend on the window
  bool probing_ = false;           // the window was shrunk to see whether loss follows
  double loss_before_probe_ = 0;
  std::uint64_t window_before_probe_ = 0;
};

}  // namespace ddf
