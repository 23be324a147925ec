// What the planner chooses, and why.
#include <boost/test/unit_test.hpp>

#include <numeric>

#include "lib/plan/delta_plan.hpp"

using namespace ddf;

namespace {

digest root(unsigned n) {
  digest d;
  d.bytes[0] = static_cast<std::byte>(n);
  return d;
}

constexpr std::uint64_t block = 1 << 20;

object_facts facts(std::size_t blocks, std::uint32_t with_nothing, std::uint32_t current = 0) {
  object_facts f;
  f.bytes = blocks * block;
  f.block_bytes.assign(blocks, block);
  f.with_nothing = with_nothing;
  f.current = current;
  return f;
}

delta_candidate from(unsigned version, std::uint32_t receivers, std::vector<std::uint64_t> costs) { return {version_id{version}, root(version), receivers, 80, std::move(costs)}; }
delta_candidate from(unsigned version, std::uint32_t receivers, std::size_t blocks, double ratio) {
  return from(version, receivers, std::vector<std::uint64_t>(blocks, static_cast<std::uint64_t>(ratio * block)));
}

rates slow_link() {
  rates r;
  r.link = 125e6;
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(delta_plan)

BOOST_AUTO_TEST_CASE(nobody_there_gets_nothing) {
  const auto p = plan_object(facts(10, 0), {}, {});
  BOOST_TEST(p.deltas.empty());
  BOOST_TEST(!p.whole);
  BOOST_TEST(p.group_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(who_is_current_costs_nothing) {
  const auto p = plan_object(facts(10, 0, 40), {}, {});
  BOOST_TEST(p.group_bytes == 0u);
  BOOST_REQUIRE(p.choices.size() == 1u);
  BOOST_TEST(p.choices[0].takes == "nothing");
  BOOST_TEST(p.choices[0].receivers == 40u);
}

BOOST_AUTO_TEST_CASE(the_example_of_the_concept) {
  const auto p = plan_object(facts(256, 8, 40), {from(41, 16, 256, 0.0065)}, slow_link());
  BOOST_REQUIRE(p.deltas.size() == 1u);
  BOOST_TEST(p.deltas[0].whole.empty());
  BOOST_TEST(p.whole);
  BOOST_TEST(p.group_bytes == p.deltas[0].bytes + 256 * block);
  BOOST_REQUIRE(p.choices.size() == 3u);
  BOOST_TEST(p.choices[1].takes == "delta");
  BOOST_TEST(p.choices[1].delta_seconds < p.choices[1].whole_seconds);
}

BOOST_AUTO_TEST_CASE(several_bases_share_a_block_that_each_would_need_in_another_form) {
  // Three bases; together their deltas of the first half cost more than these blocks themselves, once.
  std::vector<std::uint64_t> costs(64, block / 100);
  std::fill(costs.begin(), costs.begin() + 32, block * 45 / 100);
  const auto p = plan_object(facts(64, 0), {from(1, 5, costs), from(2, 5, costs), from(3, 5, costs)}, slow_link());
  BOOST_REQUIRE(p.deltas.size() == 3u);
  BOOST_TEST(!p.whole);
  BOOST_TEST(p.group_bytes < 64 * block);
  std::vector<std::uint64_t> dear(64, block / 100);
  std::fill(dear.begin(), dear.begin() + 32, block * 6 / 10);
  const auto q = plan_object(facts(64, 0), {from(1, 5, dear), from(2, 5, dear)}, slow_link());
  BOOST_REQUIRE(q.deltas.size() == 2u);
  for (const auto& d : q.deltas) BOOST_TEST((d.whole == std::vector<range>{{0, 32}}));
  BOOST_TEST(q.group_bytes < 32 * block + 32 * block / 100 * 2 + 1000);
}

BOOST_AUTO_TEST_CASE(a_delta_larger_than_the_object_is_never_sent) {
  const auto p = plan_object(facts(16, 0), {from(1, 4, 16, 1.2)}, slow_link());
  BOOST_TEST(p.group_bytes <= 16 * block + 200);
}

// A decoder slower than the wire makes a delta arrive later than the whole.
BOOST_AUTO_TEST_CASE(apply_time_is_part_of_the_cost) {
  rates fast_wire;
  fast_wire.link = 12.5e9;
  fast_wire.place = 10e9;
  fast_wire.apply = 1.9e9;
  const auto p = plan_object(facts(256, 0), {from(1, 4, 256, 0.02)}, fast_wire);
  BOOST_TEST(p.deltas.empty());
  BOOST_TEST(p.whole);
  BOOST_TEST(p.choices[0].reason.find("sooner") != std::string::npos);
  const auto q = plan_object(facts(256, 0), {from(1, 4, 256, 0.02)}, slow_link());
  BOOST_TEST(q.deltas.size() == 1u);
}

BOOST_AUTO_TEST_CASE(on_a_link_faster_than_the_coders_no_delta_is_made) {
  rates r;
  r.encode = 2.6e9, r.apply = 2.0e9, r.place = 2.0e9;
  r.link = 125e6;
  BOOST_TEST(worth_a_delta(1 << 30, r));
  r.link = 1.25e9;
  BOOST_TEST(worth_a_delta(1 << 30, r));
  r.link = 12.5e9;
  BOOST_TEST(!worth_a_delta(1 << 30, r));
  r.encode = 20e9, r.apply = 16e9;   // many cores
  BOOST_TEST(worth_a_delta(1 << 30, r));
}

BOOST_AUTO_TEST_CASE(a_dense_delta_beside_a_whole_that_goes_anyway_is_not_sent) {
  const auto p = plan_object(facts(256, 8), {from(1, 4, 256, 0.6)}, slow_link());
  BOOST_TEST(p.deltas.empty());
  BOOST_TEST(p.group_bytes == 256 * block);
}

// What changes altogether goes once, as it is, to those with a base as to those with nothing.
BOOST_AUTO_TEST_CASE(blocks_that_are_new_are_left_to_the_whole) {
  std::vector<std::uint64_t> costs(64, 100);
  for (std::size_t b = 8; b < 16; ++b) costs[b] = block;
  const auto p = plan_object(facts(64, 2), {from(1, 16, costs)}, slow_link());
  BOOST_REQUIRE(p.deltas.size() == 1u);
  BOOST_TEST((p.deltas[0].whole == std::vector<range>{{8, 16}}));
}

// Laggards: a span of its own against a chain of single steps, by what they cost together.
BOOST_AUTO_TEST_CASE(laggards_get_one_span_each_and_all_of_them_less_than_the_whole) {
  // Cost of one direct delta over k steps, as shares: measured for RL steps.
  const auto p = plan_object(facts(256, 0), {from(99, 30, 256, 0.0083), from(96, 4, 256, 0.0212), from(68, 2, 256, 0.063)}, slow_link());
  BOOST_TEST(p.deltas.size() == 3u);
  BOOST_TEST(static_cast<double>(p.group_bytes) < 0.1 * 256 * block);
}

// Never more bytes than everything whole to everyone by one stream, and a small overhead.
BOOST_AUTO_TEST_CASE(random_facts_never_cost_more_than_the_best_single_way) {
  std::uint64_t x = 1;
  const auto random = [&] { return x = x * 6364136223846793005u + 1442695040888963407u, x >> 33; };
  for (int round = 0; round < 500; ++round) {
    const std::size_t blocks = 1 + random() % 40;
    std::vector<delta_candidate> candidates;
    for (unsigned k = 0; k < random() % 5; ++k) {
      std::vector<std::uint64_t> costs(blocks);
      for (auto& c : costs) c = random() % 3 == 0 ? 0 : random() % (block * 5 / 4);
      candidates.push_back(from(k + 1, static_cast<std::uint32_t>(1 + random() % 20), costs));
    }
    const auto f = facts(blocks, static_cast<std::uint32_t>(random() % 4));
    const auto p = plan_object(f, candidates, slow_link());
    const std::uint64_t all = f.bytes + candidates.size() * 80;
    std::uint64_t deltas = 0;
    for (const auto& c : candidates) deltas += std::accumulate(c.block_bytes.begin(), c.block_bytes.end(), c.overhead_bytes);
    // Bytes are weighed with the repairs they will draw.
    BOOST_TEST(static_cast<double>(p.group_bytes) <= 1.05 * static_cast<double>(f.with_nothing == 0 ? std::max(all, deltas) : all + deltas));
    std::uint32_t told = 0;
    for (const choice& c : p.choices) {
      told += c.receivers;
      BOOST_TEST(!c.reason.empty());
    }
    std::uint32_t there = f.with_nothing;
    for (const auto& c : candidates) there += c.receivers;
    BOOST_TEST(told == there);
  }
}

BOOST_AUTO_TEST_SUITE_END()
