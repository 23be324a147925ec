// The lanes by which one host can read what another has: a set, and whether two hosts share memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <ddf/options.hpp>

namespace ddf {

inline constexpr std::size_t fabric_address_bytes_max = 128;   // of an endpoint, as its provider calls it

struct lane_set {
  std::uint8_t bits = 0;   // bit i: repair_lane i; never automatic or udp, which need no agreement
  static constexpr std::uint8_t all = 1 << static_cast<int>(repair_lane::tcp) | 1 << static_cast<int>(repair_lane::shm) | 1 << static_cast<int>(repair_lane::verbs);

  constexpr void add(repair_lane l) { bits = static_cast<std::uint8_t>(bits | (1 << static_cast<int>(l) & all)); }
  constexpr lane_set without(lane_set o) const { return {static_cast<std::uint8_t>(bits & ~o.bits)}; }
  constexpr bool has(repair_lane l) const { return (bits >> static_cast<int>(l) & 1) != 0; }
  constexpr bool empty() const { return bits == 0; }
  bool operator==(const lane_set&) const = default;
};

struct lane_offer {   // what a host says of itself
  lane_set lanes;
  std::uint64_t host_key = 0;   // equal on two processes that can share memory; 0: not known
  bool operator==(const lane_offer&) const = default;
};

/// The best lane that both have: shared memory within a host, then verbs, then TCP; udp when there is none.
constexpr repair_lane best_lane(const lane_offer& a, const lane_offer& b) {
  const auto both = [&](repair_lane l) { return a.lanes.has(l) && b.lanes.has(l); };
  if (both(repair_lane::shm) && a.host_key != 0 && a.host_key == b.host_key) return repair_lane::shm;
  if (both(repair_lane::verbs)) return repair_lane::verbs;
  return both(repair_lane::tcp) ? repair_lane::tcp : repair_lane::udp;
}

constexpr const char* name_of(repair_lane l) {
  constexpr const char* names[] = {"auto", "udp", "tcp", "shm", "verbs"};
  return names[static_cast<int>(l)];
}

}  // namespace ddf
