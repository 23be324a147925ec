// The lanes by which this host's memory can be read, or it can read others': what is offered, and the endpoints behind them.
#pragma once
#include <asio.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <ddf/options.hpp>
#include "lib/model/lane_set.hpp"
#include "lib/model/time.hpp"
#include "lib/runtime/rails.hpp"
#include "transports/fabric/fabric_arena.hpp"
#include "transports/fabric/fabric_endpoint.hpp"

namespace ddf {

/// What a host says of itself before a session: with `automatic` every lane that it may have; whether an endpoint opens is seen when
/// it is first needed. Cost: a look at a folder.
lane_offer offered_lanes(repair_lane wanted);

/// Whether reads by just this lane are asked for.
bool lane_required(repair_lane wanted);
/// Whether a lane that is required is here. Errors: unsupported and others of find_fabric(), naming the option.
result<void> check_lane(const network_options& o, const network_plan& plan);

/// Endpoints with an arena each, by lane and local address, opened on a thread of their own when first asked for. One that failed is
/// tried again after a while. Used from the loop's thread.
class lanes {
 public:
  static constexpr std::size_t slots = 32, slot_bytes = (1 << 20) + 4096;   // the segments of one grant, and its stamps

  struct lane {
    std::unique_ptr<fabric_arena> arena;   // stays until nobody reads any more
    std::unique_ptr<fabric_endpoint> endpoint;
  };

  explicit lanes(asio::io_context& io) : io_(io) {}
  ~lanes();
  lanes(const lanes&) = delete;
  lanes& operator=(const lanes&) = delete;

  /// `then` is called once: by open() itself when the lane is open, else later, on the loop. A lane stays as long as this.
  void open(repair_lane which, const std::string& local_address, std::function<void(result<lane*>)> then);

 private:
  struct entry {
    lane open;
    std::optional<error> failed;
    time_point again{};
    std::vector<std::function<void(result<lane*>)>> waiting;
    std::thread opening;
  };
  void opened(entry& e, result<lane> r);

  asio::io_context& io_;
  std::map<std::pair<repair_lane, std::string>, entry> entries_;
};

}  // namespace ddf
