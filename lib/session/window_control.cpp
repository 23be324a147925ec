#include "lib/session/window_control.hpp"

namespace ddf {

void window_control::shrink(double factor) {
  slow_start_ = false;
  window_ = std::max(options_.least, static_cast<std::uint64_t>(static_cast<double>(packets()) * factor));
}

void window_control::window_confirmed(double loss) {
  if (probing_) {
    probing_ = false;
    if (loss > options_.tolerated && loss > 0.5 * loss_before_probe_) {   // the window was not the cause
      accepted_ = std::max(accepted_, std::max(loss, loss_before_probe_));
      window_ = window_before_probe_;
      return;
    }
  }
  if (loss > options_.tolerated + 1.5 * accepted_) {
    probing_ = true;
    loss_before_probe_ = loss;
    window_before_probe_ = packets();
    shrink(loss > 0.2 ? 0.5 : 0.7);
    return;
  }
  accepted_ *= 0.98;   // what is tolerated is found out again now and then
  if (slow_start_ && packets() < cap_)
    window_ = packets() * 2;
  else
    window_ = packets() + std::max<std::uint64_t>(1, packets() / 16);
  window_ = std::min(window_, cap_);
}

}  // namespace ddf
