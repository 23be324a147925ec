#include "lib/plan/delta_plan.hpp"

#include <algorithm>
#include <numeric>

#include "lib/model/assert.hpp"

namespace ddf {

namespace {

// A block that others need whole is not sent a second time as a delta that saves less than this.
constexpr double worth_a_second_form = 0.5;
constexpr double negligible = 0.002;   // of two ways that come to the same, the one with fewer deltas

struct outcome {
  std::vector<object_plan::chosen_delta> deltas;
  std::vector<bool> whole_blocks;      // that go to the group as they are
  std::uint64_t delta_bytes = 0, whole_bytes = 0;
  double cost = 0;                     // seconds: until a receiver has it, in the mean, and that the group is busy, repairs included
};

class planner {
 public:
  planner(const object_facts& facts, const std::vector<delta_candidate>& candidates, const rates& r) : facts_(facts), candidates_(candidates), rates_(r) {}

  /// Input: which candidates may be used. Chooses block by block, and says what it comes to.
  outcome with(const std::vector<bool>& used) const {
    const std::size_t blocks = facts_.block_bytes.size();
    outcome o;
    o.whole_blocks.assign(blocks, needs_whole(used));
    std::vector<std::vector<bool>> left_out(candidates_.size(), std::vector<bool>(blocks, false));
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto whole = static_cast<double>(facts_.block_bytes[b]);
      double apart = 0, beside = o.whole_blocks[b] ? 0 : whole;   // without and with the block going whole
      for (std::size_t k = 0; k < candidates_.size(); ++k) {
        if (!used[k]) continue;
        const double delta = sent(static_cast<double>(candidates_[k].block_bytes[b]), candidates_[k].receivers);
        apart += delta;
        if (delta < second_form(whole, candidates_[k].receivers)) beside += delta;   // the others take it from the whole, for nothing
      }
      if (!o.whole_blocks[b] && apart <= beside) continue;
      bool taken = o.whole_blocks[b];
      for (std::size_t k = 0; k < candidates_.size(); ++k) {
        if (!used[k] || candidates_[k].block_bytes[b] == 0) continue;
        if (sent(static_cast<double>(candidates_[k].block_bytes[b]), candidates_[k].receivers) < second_form(whole, candidates_[k].receivers)) continue;
        left_out[k][b] = taken = true;
      }
      o.whole_blocks[b] = taken;
    }
    for (std::size_t k = 0; k < candidates_.size(); ++k) {
      if (!used[k]) continue;
      object_plan::chosen_delta d;
      d.candidate = k;
      d.bytes = candidates_[k].overhead_bytes;
      for (std::size_t b = 0; b < blocks; ++b) {
        if (!left_out[k][b]) d.bytes += candidates_[k].block_bytes[b];
        else if (!d.whole.empty() && d.whole.back().last == b) ++d.whole.back().last;
        else d.whole.push_back({b, b + 1});
      }
      o.delta_bytes += d.bytes;
      o.deltas.push_back(std::move(d));
    }
    for (std::size_t b = 0; b < blocks; ++b)
      if (o.whole_blocks[b]) o.whole_bytes += facts_.block_bytes[b];
    // What is short goes first, so that those who need no more do not wait for the others.
    std::ranges::stable_sort(o.deltas, {}, &object_plan::chosen_delta::bytes);
    o.cost = cost(o, used);
    return o;
  }

  double delta_seconds(const outcome& o, const object_plan::chosen_delta& d) const {
    // Deltas go first; of the whole it waits for the last block that it leaves out.
    std::uint64_t waits_for = 0;
    for (std::size_t b = 0; !d.whole.empty() && b < d.whole.back().last; ++b)
      if (o.whole_blocks[b]) waits_for += facts_.block_bytes[b];
    std::uint64_t up_to = 0;
    for (const auto& other : o.deltas) {
      up_to += other.bytes;
      if (other.candidate == d.candidate) break;
    }
    if (waits_for != 0) up_to = o.delta_bytes;
    const double deltas = static_cast<double>(up_to) / rates_.link;
    return deltas + std::max(static_cast<double>(facts_.bytes) / rates_.apply, static_cast<double>(waits_for) / std::min(rates_.link, rates_.place));
  }
  double whole_seconds(const outcome& o) const {
    return static_cast<double>(o.delta_bytes) / rates_.link + static_cast<double>(facts_.bytes) / std::min(rates_.link, rates_.place);
  }

  bool left_to_the_whole(const std::vector<bool>& used) const {
    for (std::size_t k = 0; k < candidates_.size(); ++k)
      if (!used[k] && candidates_[k].receivers != 0) return true;
    return false;
  }

 private:
  bool needs_whole(const std::vector<bool>& used) const {
    return facts_.with_nothing != 0 || left_to_the_whole(used);
  }
  double sent(double bytes, std::uint32_t receivers) const { return bytes * (1 + rates_.loss * receivers); }
  double second_form(double whole, std::uint32_t receivers) const { return whole * std::max(worth_a_second_form, rates_.loss * receivers); }

  double cost(const outcome& o, const std::vector<bool>& used) const {
    double sum = 0, repaired = 0;
    std::uint32_t n = 0, whole = facts_.with_nothing;
    for (std::size_t k = 0; k < candidates_.size(); ++k)
      if (!used[k]) whole += candidates_[k].receivers;
    for (const auto& d : o.deltas) {
      const std::uint32_t k = candidates_[d.candidate].receivers;
      sum += k * delta_seconds(o, d);
      std::uint64_t left_out = 0;
      for (const range& w : d.whole) left_out += std::accumulate(facts_.block_bytes.begin() + static_cast<std::ptrdiff_t>(w.first), facts_.block_bytes.begin() + static_cast<std::ptrdiff_t>(w.last), std::uint64_t{0});
      repaired += k * static_cast<double>(d.bytes + left_out);
      n += k;
    }
    sum += whole * whole_seconds(o);
    repaired += whole * static_cast<double>(facts_.bytes);
    n += whole;
    const double busy = (static_cast<double>(o.delta_bytes + o.whole_bytes) + rates_.loss * repaired) / rates_.link;
    return n == 0 ? 0 : sum / n + busy;
  }

  const object_facts& facts_;
  const std::vector<delta_candidate>& candidates_;
  const rates& rates_;
};

}  // namespace

bool worth_a_delta(std::uint64_t object_bytes, const rates& r) {
  const auto bytes = static_cast<double>(object_bytes);
  const double whole = bytes / std::min(r.link, r.place) + bytes / r.link;   // until it is there, and that the group is busy
  return bytes / r.encode + bytes / r.apply < whole;
}

object_plan plan_object(const object_facts& facts, const std::vector<delta_candidate>& candidates, const rates& r) {
  for (const delta_candidate& c : candidates) DDF_ASSERT(c.block_bytes.size() == facts.block_bytes.size());
  const planner p(facts, candidates, r);
  // Each delta has to earn its place: from all of them, leave out the one whose absence gains most, as long as one does.
  std::vector<bool> used(candidates.size(), true);
  for (std::size_t k = 0; k < candidates.size(); ++k) used[k] = candidates[k].receivers != 0;
  outcome best = p.with(used);
  for (bool better = true; better;) {
    better = false;
    std::size_t without = 0;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      if (!used[k]) continue;
      used[k] = false;
      outcome o = p.with(used);
      used[k] = true;
      if (o.cost > best.cost * (1 + negligible)) continue;
      best = std::move(o);
      without = k;
      better = true;
    }
    if (better) used[without] = false;
  }

  object_plan out;
  out.deltas = std::move(best.deltas);
  best.deltas = out.deltas;
  const bool some_whole = facts.with_nothing != 0 || p.left_to_the_whole(used);
  out.whole = some_whole;
  out.group_bytes = best.delta_bytes + best.whole_bytes;
  const double whole_seconds = p.whole_seconds(best);
  if (facts.current != 0) out.choices.push_back({facts.current, "this version", "nothing", 0, facts.bytes, 0, whole_seconds, "it has this version already"});
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const delta_candidate& c = candidates[k];
    if (c.receivers == 0) continue;
    choice one;
    one.receivers = c.receivers;
    one.holds = "version " + std::to_string(c.base_version.value);
    one.delta_bytes = std::accumulate(c.block_bytes.begin(), c.block_bytes.end(), c.overhead_bytes);
    one.whole_bytes = facts.bytes;
    one.whole_seconds = static_cast<double>(facts.bytes) / std::min(r.link, r.place);
    one.delta_seconds = static_cast<double>(one.delta_bytes) / r.link + static_cast<double>(facts.bytes) / r.apply;
    if (used[k]) {
      const auto& d = *std::ranges::find(out.deltas, k, &object_plan::chosen_delta::candidate);
      one.takes = "delta";
      one.delta_bytes = d.bytes;
      one.delta_seconds = p.delta_seconds(best, d);
      out.seconds = std::max(out.seconds, one.delta_seconds);
      std::uint64_t left_out = 0;
      for (const range& w : d.whole) left_out += w.size();
      one.reason = left_out == 0 ? "fewer bytes, and sooner there" : "fewer bytes; " + std::to_string(left_out) + " blocks are taken from the whole, which costs less than to send them in two forms";
    } else {
      one.takes = "whole";
      one.reason = facts.with_nothing != 0 ? "others need the whole, and a delta beside it would hold them up for longer than it saves" : "the delta would not be there sooner than the whole";
    }
    out.choices.push_back(std::move(one));
  }
  if (facts.with_nothing != 0) out.choices.push_back({facts.with_nothing, "nothing", "whole", 0, facts.bytes, 0, whole_seconds, "there is no base to start from"});
  if (some_whole) out.seconds = std::max(out.seconds, whole_seconds);
  return out;
}

}  // namespace ddf
