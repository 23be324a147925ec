// Which ways to repair losses this build and this host have.
#pragma once
#include <string>
#include <ddf/options.hpp>

namespace ddf {

/// What a lane would use here: "UDP, by NACKs that the sender answers".
///
/// Input:  `local_address`: the address, without a port, of an interface that would be used; may be empty.
/// Errors: unsupported, saying why not, in words that can follow "--repair tcp: ".
result<std::string> lane_text(repair_lane lane, const std::string& local_address);

}  // namespace ddf
