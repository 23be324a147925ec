// What was found of this host, for people and for programs.
#pragma once
#include <string>

#include <ddf/doctor.hpp>

#include "tools/common/console.hpp"
#include "tools/common/exit_code.hpp"

namespace ddf::tools {

/// Groups of lines: what would be used, interfaces, buffers and limits, RDMA, findings with their cures.
std::string doctor_text(const host_report& r);
/// The warnings and problems alone.
std::string faults_text(const host_report& r);
/// One object; its fields are stable.
json doctor_json(const host_report& r, exit_code exit);

/// Writes the report as `options` want it. Output: exit_complete when nothing is a problem, exit_failed otherwise.
exit_code tell_host(const host_report& r, const std::string& program, const console_options& options);

}  // namespace ddf::tools
