// What a session sends beside whole objects: deltas, each made for those who hold one base.
//
// A session's catalogue is fixed when it is announced; who holds what is known when receivers have joined. The plan is what
// the sender decides then. It adds objects to the session (the deltas, numbered after those of the catalogue) and says which
// digest root an object has, so that whoever holds that version already takes nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "lib/model/manifest.hpp"
#include "lib/model/range_set.hpp"

namespace ddf {

struct held_version {   // what a receiver says it has of an object, or could make it from
  std::uint32_t object = 0;   // index into the catalogue
  version_id version{1};
  digest root;
  bool current = false;       // visible under the object's name, and described alike: equal bytes are all it takes
  bool operator==(const held_version&) const = default;
};

struct delta_stream {
  std::uint32_t object = 0;   // index into the catalogue: what it makes
  version_id base_version{1};
  digest base_root;           // of the version it is applied to
  std::uint64_t bytes = 0;    // of the stream, more than 0
  std::vector<range> whole;   // blocks (rows of the object's digest table) that it does not make: to be taken from the object
  bool operator==(const delta_stream&) const = default;
};

struct object_root {
  std::uint32_t object = 0;
  digest root;
  bool operator==(const object_root&) const = default;
};

struct session_plan {
  std::vector<object_root> roots;     // ascending by object
  std::vector<delta_stream> deltas;
  bool empty() const { return roots.empty() && deltas.empty(); }
  const digest* root_of(std::uint32_t object) const;   // null: not known
  bool operator==(const session_plan&) const = default;
};

namespace limits {
inline constexpr std::size_t deltas = 1 << 12;       // in one session
inline constexpr std::uint32_t plan_bytes = 16 << 20;   // encoded
/// The most a delta may take for a target: raw, and what every record and block adds.
constexpr std::uint64_t delta_bytes(std::uint64_t target_bytes) { return target_bytes + target_bytes / 512 + (1 << 20); }
}  // namespace limits

/// How a delta is laid out, digested and repaired: as an object of one part.
manifest delta_manifest(const delta_stream& d, const manifest& target);

/// Whether a plan, ours or a stranger's, fits its catalogue and keeps every bound. Errors: invalid_argument, too_large.
result<void> check_plan(const session_plan& p, const catalogue& c);

/// How one receiver gets an object. Sender and receiver follow the same rule.
struct delivery {
  enum class kind : std::uint8_t { nothing, delta, whole } by = kind::whole;
  std::size_t delta = 0;   // index into the plan's
};
/// Input: what the receiver holds. Of several deltas the shortest is taken; one may start from the very root it leads to, for who
/// has the bytes under other names or with other permissions. Cost: O(deltas).
delivery delivery_for(const session_plan& p, std::uint32_t object, const std::vector<held_version>& held);

}  // namespace ddf
