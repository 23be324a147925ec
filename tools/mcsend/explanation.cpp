#include "tools/mcsend/explanation.hpp"

#include "tools/common/output.hpp"
#include "tools/common/plan_text.hpp"

namespace ddf::tools {

std::function<void(const plan_report&)> explanation::hook() const {
  return [shared = shared_](const plan_report& plan) {
    const std::lock_guard lock(shared->mutex);
    shared->plan = plan;
  };
}

void explanation::tell(console& out) {
  std::optional<plan_report> plan;
  {
    const std::lock_guard lock(shared_->mutex);
    plan.swap(shared_->plan);
  }
  if (!plan) return;
  json event = {{"event", "plan"}};
  event.update(plan_json(*plan));
  out.event(std::move(event));
  if (out.options().json) return;
  const auto pause = out.pause();
  write_output(plan_text(*plan));
}

}  // namespace ddf::tools
