// What the facts of a host mean for ddf: what would be used, what is wrong, and how to mend it.
//
// A pure function, so that every finding can be tested without a host that has the fault.
#pragma once
#include <ddf/doctor.hpp>
#include "lib/model/lane_set.hpp"

namespace ddf {

/// Input:  `facts` with the choice of interfaces in them; `options` as they were given.
/// Output: the report; its findings the worst first, in a fixed order among equals. Each id stands at most once, or once for each
///         interface, port or counter that `what` then begins with.
/// Errors: none. Cost: O(interfaces + GIDs).
host_report judge_host(host_facts facts, const network_options& options, host_role role);

/// "udp", "tcp": what --repair calls it.

}  // namespace ddf
