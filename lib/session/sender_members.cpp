// The sender's receivers: how they come, are watched, and end.
#include "lib/session/sender.hpp"

#include <algorithm>

#include "lib/model/assert.hpp"

namespace ddf {

using namespace std::chrono_literals;

sender::member* sender::by_token(path from, join_token token) {
  const auto it = by_token_.find(token.value);
  if (it == by_token_.end()) return drop("wrong_token"), nullptr;
  member& m = members_[it->second];
  if (m.where.peer != from.peer) return drop("wrong_token"), nullptr;
  m.proven = true;
  return &m;
}

void sender::welcome_member(const member& m, refusal refused) {
  const auto rtt = std::chrono::duration_cast<std::chrono::microseconds>(m.rtt).count();
  send({false, 0, m.where}, welcome{options_.session, m.id, m.token, m.in_loop, m.left_loop, refused, static_cast<std::uint32_t>(rtt)});
}

void sender::refuse_deaf(member& m) {
  end_member(m, member_state::refused, "hears no multicast, which was required: check its interface, its firewall and the switch's IGMP snooping");
  welcome_member(m, m.refused = refusal::not_multicast);
}

void sender::end_member(member& m, member_state state, std::string reason) {
  DDF_ASSERT(m.state == member_state::active);
  m.state = state;
  m.reason = std::move(reason);
  direct_segments_ -= m.direct.count();
  m.direct.clear();
  for (auto g = grants_.begin(); g != grants_.end();) {
    const auto id = g->first;
    const bool its = &members_[g->second.whom] == &m;
    ++g;
    if (its) close_grant(id);
  }
  if (m.in_loop) {
    m.in_loop = false;
    --in_loop_;
    least_confirmed_.reset();
  }
  ++terminal_;
  if (state == member_state::complete) ++complete_;
}

void sender::leave_loop(member& m, std::string why) {
  if (!m.in_loop) return;
  m.in_loop = false;
  least_confirmed_.reset();
  m.left_loop = true;
  --in_loop_;
  out_.push_back(note{log_level::warning, m.host + " (" + to_string(m.where.peer) + ") " + why + ": it no longer sets the pace and finishes by unicast"});
  welcome_member(m);
}

void sender::check_members(time_point now) {
  for (member& m : members_) {
    if (m.state != member_state::active) continue;
    if (now - m.last_heard > options_.silence)
      end_member(m, member_state::lost, "not heard for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - m.last_heard).count()) +
                                            " s: its process ended, or the network between is down");
    else if (now - m.last_heard > 1s && now - m.called > 1s && m.proven) {
      // Also for its neighbour table: a sender whose interface was made anew has another hardware address.
      m.called = now;
      announce_to(now, m.where, false);
    }
  }
  if (state_ == session_state::streaming && bulk_ < segments_ && !members_.empty() &&
      std::ranges::none_of(members_, [](const member& m) { return m.state == member_state::active && !m.asks_only && !m.deaf && !m.left_loop; })) {
    // Nobody follows any more, so nothing would hold the first pass back: who is left, or comes back, asks for what it needs.
    bulk_ = segments_;
    out_.push_back(note{log_level::warning, "no receiver follows the multicast any more: what is missing is sent to those that ask"});
  }
  if (state_ == session_state::flushing)
    for (member& m : members_) {
      // Alive, but nothing comes of it. One that has everything may be busy with its disk for long.
      const duration limit = m.segments >= segments_ ? 10 * options_.no_progress : options_.no_progress;
      if (m.state == member_state::active && !m.prepared && now - std::max(m.last_gain, times_.flushed) > limit)
        end_member(m, member_state::incomplete, "alive, but made no progress for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s: check its disk, and what drops unicast UDP to it");
    }
  // The only one in the loop holds up nobody, unless there are those that wait for what it holds back.
  const bool alone = in_loop_ == 1 && std::ranges::any_of(members_, [](const member& m) { return m.state == member_state::active && !m.in_loop && m.ready && !m.prepared; });
  if ((in_loop_ < 2 && !alone) || !window_shut_ || blocked_since_ == never) {   // shut may be a few packets short of full: see next_bulk
    for (member& m : members_) m.alone = m.alone > 10ms ? m.alone - 10ms : duration(0);
    return;
  }
  // The window is shut. Who holds it, and would the others go on?
  member* slowest = nullptr;
  std::uint64_t second = ~std::uint64_t(0);
  for (member& m : members_) {
    if (!m.in_loop) continue;
    if (slowest == nullptr || m.sequence < slowest->sequence) {
      if (slowest != nullptr) second = std::min(second, slowest->sequence);
      slowest = &m;
    } else {
      second = std::min(second, m.sequence);
    }
  }
  if (second < slowest->sequence + window_.packets() / 2) return;
  slowest->alone += 50ms;
  if (now - slowest->last_progress > (alone ? 5 * options_.stall : options_.stall)) leave_loop(*slowest, "has confirmed nothing for a while");
  else if (slowest->alone > 2s) leave_loop(*slowest, "is slower than the others");
}

std::vector<digest> sender::held_roots(std::uint32_t object) const {
  std::vector<digest> out;
  for (const member& m : members_)
    for (const held_version& h : m.held)
      if (m.state == member_state::active && h.object == object) out.push_back(h.root);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// All switch, or none does: when everyone who is here is prepared, or a quorum is and no deadline says how long to wait for more.
void sender::decide_commit(time_point now) {
  if (state_ == session_state::gathering || members_.empty()) return;
  std::uint32_t prepared = 0, waiting = 0, counted = 0;
  for (const member& m : members_) {
    const bool has_it = m.state == member_state::complete || (m.state == member_state::active && m.prepared);
    prepared += has_it;
    waiting += m.state == member_state::active && !m.prepared;
    counted += has_it || m.state == member_state::active || !superseded(m);
  }
  const std::uint32_t needed = options_.quorum != 0 ? options_.quorum : std::max(options_.expect, counted);
  const bool soon = options_.quorum != 0 && options_.deadline == duration(0) && prepared >= needed;
  if (waiting != 0 && !soon) return;
  if (prepared < needed) {
    if (prepared == 0) return;   // all ended: the usual end tells why
    std::string text = "the group did not switch: " + std::to_string(prepared) + " of " + std::to_string(needed) + " receivers are prepared";
    for (const member& m : members_)
      if (m.state != member_state::active && m.state != member_state::complete && !superseded(m)) text += "; " + m.host + " (" + to_string(m.where.peer) + "): " + m.reason;
    return finish(now, {errc::incomplete, 0, std::move(text)});
  }
  committed_ = true;
  for (int i = 0; i < 3 && use_group(); ++i) send(group(), commit_group{options_.session});
  for (const member& m : members_)
    if (m.state == member_state::active && m.prepared) send({false, 0, m.where}, commit_group{options_.session});
}

// A process that was lost and then restarted on its host is counted once, by its later self.
bool sender::superseded(const member& m) const {
  return m.state == member_state::lost && std::ranges::any_of(members_, [&](const member& o) {
    return &o != &m && o.host == m.host && o.where.peer.address == m.where.peer.address && o.joined > m.last_heard;
  });
}

sender::demand sender::demand_for(std::uint32_t object, const std::function<bool(const digest& root)>& usable) const {
  demand d;
  for (const member& m : members_) {
    if (m.state != member_state::active) continue;
    const held_version* newest = nullptr;
    bool newest_usable = false;
    for (const held_version& h : m.held) {
      if (h.object != object) continue;
      const bool can = usable && usable(h.root);
      if (newest == nullptr || (can && !newest_usable) || (can == newest_usable && h.version > newest->version)) newest = &h, newest_usable = can;
    }
    if (newest == nullptr) {
      ++d.with_nothing;
      continue;
    }
    const auto known = std::ranges::find_if(d.bases, [&](const demand::base& b) { return b.root == newest->root && b.current == newest->current; });
    if (known != d.bases.end()) ++known->receivers;
    else d.bases.push_back({newest->version, newest->root, 1, newest->current});
  }
  std::ranges::stable_sort(d.bases, std::ranges::greater{}, &demand::base::version);
  return d;
}

std::vector<sender::holder> sender::holders(std::uint32_t object) const {
  std::vector<holder> out;
  for (const member& m : members_) {
    holder h{m.host + " (" + to_string(m.where.peer) + ")", std::nullopt};
    for (const held_version& v : m.held)
      if (v.object == object && (!h.holds || v.version > h.holds->version)) h.holds = v;
    if (m.state == member_state::complete) {
      const digest* root = plan_.root_of(object);
      h.holds = held_version{object, options_.objects[object].version, root != nullptr ? *root : digest{}, true};
    }
    out.push_back(std::move(h));
  }
  return out;
}

error sender::outcome() const {
  std::uint32_t complete = 0, counted = 0;
  std::string first;
  for (const member& m : members_) {
    if (superseded(m)) continue;
    ++counted;
    if (m.state == member_state::complete) ++complete;
    else if (first.empty()) first = m.host + " (" + to_string(m.where.peer) + "): " + (m.reason.empty() ? "not complete" : m.reason);
  }
  const std::uint32_t needed = options_.quorum != 0 ? options_.quorum : std::max(options_.expect, counted);
  if (complete >= needed && (complete > 0 || options_.serve)) return {};
  if (counted == 0) return {errc::no_receiver, 0, "no receiver joined"};
  std::string text = std::to_string(complete) + " of " + std::to_string(needed) + " receivers are complete";
  if (counted < options_.expect) text += "; " + std::to_string(options_.expect - counted) + " of the expected never joined";
  if (!first.empty()) text += "; " + first;
  return {errc::incomplete, 0, std::move(text)};
}

std::vector<receiver_report> sender::receivers() const {
  static constexpr const char* names[] = {"active", "complete", "failed", "lost", "refused", "incomplete"};
  std::vector<receiver_report> out;
  for (const member& m : members_) {
    receiver_report r;
    r.id = m.host + " (" + to_string(m.where.peer) + ")";
    r.state = names[static_cast<std::size_t>(m.state)];
    r.reason = m.reason;
    r.deaf = m.deaf;
    r.left_rate_loop = m.left_loop;
    r.lane = name_of(m.lane);
    r.nacks = m.nacks;
    r.repaired_bytes = m.repaired_bytes;
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace ddf
