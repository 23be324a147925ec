// The plan of a publication, as tables for people and as JSON for programs.
#pragma once
#include <string>

#include <ddf/options.hpp>

#include "tools/common/console.hpp"

namespace ddf::tools {

/// A block for each object: who holds what and takes what, and how the changed blocks are made; then the sums. Lines
/// ended. Of many objects, those that take most to send.
std::string plan_text(const plan_report& p);

/// What was estimated beside what came of it; empty for a session that was not planned.
std::string plan_outcome_text(const report& r);

/// The members of a plan.
json plan_json(const plan_report& p);

/// Payload that goes to the group for one object, as planned. Input: `bytes` of the object, for one without a plan.
std::uint64_t planned_bytes(const plan_report& p, const std::string& object, std::uint64_t bytes);

}  // namespace ddf::tools
