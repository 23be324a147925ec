// A group whose receivers hold older versions of one object, and a sender that publishes the next.
#pragma once
#include <boost/test/unit_test.hpp>

#include <map>

#include "transports/sim/scenario.hpp"

namespace ddf::sim {

inline constexpr std::uint64_t versioned_bytes = 4 << 20;

inline object_spec version(std::uint64_t n, std::vector<delta_spec> deltas = {}) { return {.parts = {versioned_bytes}, .version = version_id{n}, .deltas = std::move(deltas)}; }

/// Input: per receiver the version it holds; 0: nothing.
struct fleet {
  scenario s;
  std::map<std::uint64_t, std::shared_ptr<const content>> made;
  std::vector<std::uint64_t> holds;
  std::uint64_t group_bytes_before = 0;

  static scenario_options options(std::uint64_t seed, std::size_t receivers, node_options network) {
    scenario_options o;
    o.seed = seed;
    o.receivers = static_cast<std::uint32_t>(receivers);
    o.network = network;
    o.objects = {version(1)};
    o.start_receivers = false;
    return o;
  }

  fleet(std::uint64_t seed, std::vector<std::uint64_t> held, node_options network) : s(options(seed, held.size(), network)), holds(std::move(held)) {
    made[1] = s.published();
    std::uint64_t newest = 1;
    for (const std::uint64_t v : holds) newest = std::max(newest, v);
    for (std::uint64_t v = 1; v <= newest; ++v) {
      if (!made.contains(v)) made[v] = s.make({version(v)});
      std::vector<std::uint32_t> who;
      for (std::uint32_t n = 0; n < holds.size(); ++n)
        if (holds[n] == v) who.push_back(n);
      if (who.empty()) continue;
      for (const std::uint32_t n : who) give(n, v);
    }
  }

  // As an earlier session would have left it.
  void give(std::uint32_t n, std::uint64_t v) {
    std::string key;
    const auto& truth = made.at(v);
    BOOST_REQUIRE(s.storage(n).open(truth->objects()[0], truth, 0, key).has_value());
    BOOST_REQUIRE(s.storage(n).write(key, 0, 0, truth->part(0, 0)).has_value());
    BOOST_REQUIRE(s.storage(n).commit(key, truth->table(0).root).has_value());
  }

  digest root(std::uint64_t v) { return made.at(v)->table(0).root; }

  void publish(std::shared_ptr<const content> what) {
    s.start_sender(std::move(what));
    for (std::uint32_t n = 0; n < s.receivers(); ++n) s.start_receiver(n);
  }
};

inline std::vector<std::uint64_t> several(std::initializer_list<std::pair<int, std::uint64_t>> groups) {
  std::vector<std::uint64_t> out;
  for (const auto& [n, v] : groups) out.insert(out.end(), static_cast<std::size_t>(n), v);
  return out;
}

}  // namespace ddf::sim
