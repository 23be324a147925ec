// Segments that receivers read from this host's memory: laid out in a slot of a lane's arena, between two stamps.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include "lib/runtime/lanes.hpp"
#include "lib/session/sender.hpp"

namespace ddf {

class memory_lender {
 public:
  explicit memory_lender(lanes& open_lanes) : lanes_(open_lanes) {}
  ~memory_lender() { *alive_ = false; }
  memory_lender(const memory_lender&) = delete;
  memory_lender& operator=(const memory_lender&) = delete;

  using fill = std::function<result<void>(std::span<std::byte> segments)>;
  using answer = std::function<void(result<sender::granted_memory>)>;
  /// Opens the lane when it is not, has `f` write the segments, and tells where they lie. Errors: those of the lane and of `f`;
  /// interrupted when it was taken back meanwhile.
  void lend(session_id session, const grant_segments& g, const std::string& local_address, fill f, answer a);
  void take_back(session_id session, std::uint64_t grant);

 private:
  struct loan {
    lanes::lane* from = nullptr;   // null: its lane is being opened
    std::optional<fabric_arena::slot> slot;
  };
  lanes& lanes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, loan> loans_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddf
