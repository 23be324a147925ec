// Identifiers that cannot be mixed up with counts, sizes or each other.
#pragma once
#include <compare>
#include <concepts>
#include <cstdint>

namespace ddf {

template <class Tag, std::unsigned_integral Rep>
struct id {   // compares; no arithmetic, no implicit conversion
  Rep value{};
  auto operator<=>(const id&) const = default;
};

using session_id = id<struct session_id_tag, std::uint64_t>;     // random, new for every session
using receiver_id = id<struct receiver_id_tag, std::uint64_t>;   // random, new for every receiver process
using version_id = id<struct version_id_tag, std::uint64_t>;     // grows with each publication
using join_token = id<struct join_token_tag, std::uint64_t>;     // proves that a receiver joined from its address

}  // namespace ddf
