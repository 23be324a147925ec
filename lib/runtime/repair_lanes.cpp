#include "lib/runtime/repair_lanes.hpp"

namespace ddf {

result<std::string> lane_text(repair_lane lane, const std::string& /*local_address*/) {
  if (lane == repair_lane::udp || lane == repair_lane::automatic) return "NACKs, answered by multicast or unicast";
  return fail(errc::unsupported, "this build repairs over UDP only");
}

}  // namespace ddf
