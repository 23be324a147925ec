// libfabric's errors as ours: what was attempted, the likely cause, and what to do about it.
#pragma once
#include <string>
#include <string_view>
#include <ddf/error.hpp>
#include "transports/fabric/fabric_calls.hpp"

namespace ddf {

enum class fabric_step : std::uint8_t {
  find,       // fi_getinfo
  open,       // fabric, domain, address vector, endpoint
  queue,      // fi_cq_open
  enable,     // fi_ep_bind, fi_enable, fi_getname
  reg,        // fi_mr_reg
  address,    // fi_av_insert
  read,       // fi_read, or how a read ended
  progress,   // fi_cq_read
};

/// Input:  `provider` as libfabric calls it ("verbs;ofi_rxm"); `code`: positive; `provider_code`: what a completion adds.
/// Output: an error whose text has the provider, libfabric's words, a cause and a cure; `os` is set when the code is an errno.
error fabric_error(std::string_view provider, fabric_step step, int code, int provider_code = 0);

/// What `fabric_error` knows of causes and cures; empty when it knows nothing. Needs no libfabric.
std::string_view fabric_cure(std::string_view provider, fabric_step step, int code, int provider_code = 0);

}  // namespace ddf
