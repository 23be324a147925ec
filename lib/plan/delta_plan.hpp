// What is cheaper for everyone together: a delta for those who hold a base, or the whole that others need anyway.
//
// A pure function of facts; every choice comes with its cost in bytes and seconds and with the reason, for --explain.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "lib/model/digest.hpp"
#include "lib/model/ids.hpp"
#include "lib/model/range_set.hpp"

namespace ddf {

struct delta_candidate {   // a delta that could be sent
  version_id base_version{1};
  digest base_root;
  std::uint32_t receivers = 0;                 // who hold that base and nothing newer
  std::uint64_t overhead_bytes = 0;            // what it takes beside its blocks
  std::vector<std::uint64_t> block_bytes;      // per block of the target; 0: the base's block is kept
};

struct object_facts {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> block_bytes;      // per block
  std::uint32_t with_nothing = 0;              // receivers that need the whole
  std::uint32_t current = 0;                   // receivers that have this very version
};

struct rates {   // bytes per second
  double link = 1.25e9;      // what the group takes
  double encode = 2.6e9;     // of target, by which the sender compares and encodes
  double apply = 2.0e9;      // of target, by which a receiver applies a delta, verifies and writes the result
  double place = 2.0e9;      // by which it writes and verifies a whole object
  double loss = 0.002;       // share of packets that is sent again, to one receiver each
};

struct choice {   // for one group of receivers
  std::uint32_t receivers = 0;
  std::string holds;                  // "version 41", "nothing", "version 42 (this one)"
  std::string takes;                  // "nothing", "delta", "whole"
  std::uint64_t delta_bytes = 0, whole_bytes = 0;       // that this group would need, either way
  double delta_seconds = 0, whole_seconds = 0;          // until it has the version, either way
  std::string reason;
};

struct object_plan {
  struct chosen_delta {
    std::size_t candidate = 0;
    std::vector<range> whole;         // blocks that it leaves to the whole object
    std::uint64_t bytes = 0;          // of the stream
  };
  std::vector<chosen_delta> deltas;
  bool whole = false;                 // somebody takes all of it
  std::uint64_t group_bytes = 0;      // payload that goes to the group, once
  double seconds = 0;                 // until the last receiver has it
  std::vector<choice> choices;
};

/// Whether a delta is worth making at all: one of no bytes, made and applied, would cost less than the whole. Where the link is
/// faster than comparing and applying it does not.
bool worth_a_delta(std::uint64_t object_bytes, const rates& r);

/// Cost: O(blocks × candidates).
object_plan plan_object(const object_facts& facts, const std::vector<delta_candidate>& candidates, const rates& r);

}  // namespace ddf
