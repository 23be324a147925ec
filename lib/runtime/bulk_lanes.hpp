// The lanes for DATA to the group that the options ask for.
#pragma once
#include <chrono>
#include <memory>
#include "lib/runtime/rails.hpp"
#include "transports/bulk_lane.hpp"
#include "transports/udp/udp_socket.hpp"
#include "transports/verbs/verbs_multicast.hpp"

namespace ddf {

// What opening RDMA may wait for at each step: a subnet manager. Once the loop runs, the loop waits.
inline constexpr std::chrono::milliseconds first_patience{5000}, later_patience{300};

/// Of one interface. `socket`: the rail's, outlives it.
/// Errors: of the transport that was asked for; there is no other in its place.
result<std::unique_ptr<bulk_sender>> open_bulk_sender(const network_options& o, const network_plan& plan, const network_interface& on, udp_socket& socket, std::chrono::milliseconds patience);
/// Precondition: the plan's transport is not UDP, whose group socket receives for all interfaces.
result<std::unique_ptr<verbs_receiver>> open_bulk_receiver(const network_options& o, const network_plan& plan, const network_interface& on, std::chrono::milliseconds patience);

}  // namespace ddf
