#include "lib/runtime/bulk_lanes.hpp"

#include "transports/udp/udp_group_sender.hpp"

namespace ddf {

static result<verbs_options> verbs_options_of(const network_options& o, const network_plan& plan, const network_interface& on, std::chrono::milliseconds patience) {
  verbs_options v;
  v.patience = patience;
  const endpoint* address = on.address_for(plan.group);
  if (address == nullptr) return fail(errc::network, on.name + " has no address of the group's family");
  v.local = *address;
  v.group = plan.group;
  if (v.group.v6 && v.group.scope == 0) v.group.scope = on.index;
  v.devices = plan.devices;
  v.ttl = plan.ttl;
  v.traffic_class = o.traffic_class;
  v.service_level = o.service_level;
  v.buffer_bytes = o.socket_buffer;
  return v;
}

result<std::unique_ptr<bulk_sender>> open_bulk_sender(const network_options& o, const network_plan& plan, const network_interface& on, udp_socket& socket, std::chrono::milliseconds patience) {
  if (!plan.verbs) {
    endpoint to = plan.group;
    if (to.v6) to.scope = on.index;
    return std::make_unique<udp_group_sender>(socket, to);
  }
  const auto v = verbs_options_of(o, plan, on, patience);
  if (!v) return tl::unexpected(v.error());
  auto lane = verbs_sender::open(rdma_libraries(), *v);
  if (!lane) return tl::unexpected(lane.error());
  return std::unique_ptr<bulk_sender>(std::move(*lane));
}

result<std::unique_ptr<verbs_receiver>> open_bulk_receiver(const network_options& o, const network_plan& plan, const network_interface& on, std::chrono::milliseconds patience) {
  const auto v = verbs_options_of(o, plan, on, patience);
  if (!v) return tl::unexpected(v.error());
  return verbs_receiver::open(rdma_libraries(), *v);
}

}  // namespace ddf
