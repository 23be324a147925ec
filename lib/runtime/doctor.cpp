#include <ddf/doctor.hpp>

#include "lib/plan/host_findings.hpp"
#include "lib/runtime/host_facts.hpp"

namespace ddf {

host_report examine_host(const network_options& options, host_role role) {
  host_access host;
  return judge_host(gather_host_facts(host, options, role), options, role);
}

}  // namespace ddf
