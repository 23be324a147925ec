// What --explain tells: the plan, from the library's thread to the one that writes.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <ddf/publisher.hpp>

#include "tools/common/console.hpp"

namespace ddf::tools {

class explanation {
 public:
  explanation() : shared_(std::make_shared<shared>()) {}

  /// For publish_options::on_plan. Owns what it needs: the library may call it while the program ends.
  std::function<void(const plan_report&)> hook() const;

  /// Writes the plan once it is there, once.
  void tell(console& out);

 private:
  struct shared {
    std::mutex mutex;
    std::optional<plan_report> plan;
  };
  std::shared_ptr<shared> shared_;
};

}  // namespace ddf::tools
