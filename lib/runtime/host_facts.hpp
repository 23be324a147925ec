// The facts of a host, gathered.
#pragma once
#include <vector>
#include <ddf/doctor.hpp>
#include "lib/runtime/host_access.hpp"

namespace ddf {

/// Sends nothing, changes nothing. What cannot be learned stays at what its declaration calls unknown.
host_facts gather_host_facts(host_access& host, const network_options& options, host_role role);

/// The RDMA devices in /sys/class/infiniband: the first 64, of each the first 8 ports, and 4,096 places for GIDs in all.
///
/// Input: `interfaces`: for the MTU that a RoCE port has by its interface's.
std::vector<rdma_device> gather_rdma(const host_access& host, const std::vector<host_interface>& interfaces);

}  // namespace ddf
