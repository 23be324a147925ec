// Decides what a session sends beside whole objects: makes deltas for those who hold a base, and has the planner choose.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>
#include <ddf/publisher.hpp>
#include "lib/plan/delta_plan.hpp"
#include "lib/runtime/session_source.hpp"
#include "lib/session/sender.hpp"
#include "lib/store/base_store.hpp"
#include "lib/store/delta_make.hpp"

namespace ddf {

struct delta_planning {
  struct object {
    std::uint32_t index = 0;                       // in the catalogue
    manifest description;
    std::shared_ptr<object_source> source;
    digest_table digests;                          // as far as known
    bool digests_known = false;
    sender::demand demand;
    std::vector<delta_base> bases;                 // that a delta may be made from, opened
    std::optional<digest> changed_from;            // `changed` is all that differs from the version of this root
    range_set changed;                             // bytes
  };
  std::vector<object> objects;                     // those that somebody holds a version of
  delta_options options;
  bool wants_deltas = true, forced = false;        // forced: made also where they seem not worth it
  rates measured;

  // What comes of it.
  session_plan plan;
  std::vector<session_source::item> deltas;        // in the order of the plan's
  plan_report report;
  std::vector<std::string> warnings;

  /// Fills in what comes of it. On a worker; touches nothing but this. Errors: those of reading the objects; interrupted.
  result<void> run(const std::atomic<bool>& abandon);
};

/// The name of the published object whose newest version a new one resembles most; empty: none enough. Cost: reads headers and
/// samples of at most 64 objects.
std::string resembling_object(const base_store& bases, const manifest& m, object_source& source);

/// Bytes per second of the slowest of these interfaces as the system tells it; 0: it does not.
double link_bytes_per_s(const std::vector<std::string>& interfaces);

}  // namespace ddf
