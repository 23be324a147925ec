// The sender's side of repair by reading: what one receiver misses is laid out in memory, and it reads it from there.
#include "lib/session/sender.hpp"

#include <algorithm>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration repeat_least = 5ms;        // a GRANT that was lost is not noticed earlier
static constexpr std::uint32_t trial_bytes = 64 << 10;
static constexpr duration trial_interval = 1s;
static constexpr duration trial_again = 40ms;
static constexpr duration slow_least = 300ms;
static constexpr double slow_factor = 4;
static constexpr duration quarantine = 10s;          // of a lane that failed; doubles with each failure

void sender::choose_lane(member& m) {
  const repair_lane before = m.lane;
  m.lane = best_lane(options_.reads, {m.reads.lanes.without(m.lanes_failed), m.reads.host_key});
  if (m.lane != before) m.lane_proven = options_.reads_required;
}

// Little is sent by UDP, which is one round trip.
bool sender::has_enough_to_read(const member& m) const {
  if (m.lane == repair_lane::udp) return false;
  if (options_.reads_required) return true;
  const std::uint64_t waiting = m.direct.count() * layout_.segment_bytes();
  const std::uint64_t after = m.lane == repair_lane::tcp ? options_.read_after_tcp : options_.read_after;
  return waiting >= options_.read_bytes_least && (m.lane_proven || m.repaired_bytes + waiting >= after);
}

void sender::want_direct(member& m, const range& r) {
  std::uint64_t at = r.first;
  while (const auto free = m.granted.first_gap(at, r.last)) {
    if (m.direct.ranges() >= 4096) return drop("repair_queue_full");
    const std::uint64_t fresh = m.direct.insert(free->first, free->last);
    direct_segments_ += fresh;
    charge(m, fresh, layout_.segment_bytes());
    at = free->last;
  }
}

bool sender::next_grant(time_point now, grant_segments& out, std::uint32_t& whom, repairs_for served) {
  if (direct_segments_ == 0 || options_.reads.lanes.empty() || grants_.size() >= options_.grants_max) return false;
  const auto n = static_cast<std::uint32_t>(members_.size());
  for (std::uint32_t k = 0; k < n; ++k) {
    member& m = members_[(next_direct_ + k) % n];
    if (m.state != member_state::active || m.direct.empty() || m.grants >= options_.grants_each || (served == repairs_for::loop && !m.in_loop) || !has_enough_to_read(m)) continue;
    // Whether a firewall lets reads through, and how fast, is seen by a small one, while UDP goes on.
    const bool trial = !m.lane_proven;
    if (trial && (m.grants != 0 || now < m.trial_due)) continue;
    if (trial) m.trial_due = now + trial_interval;
    const std::uint32_t most = trial ? std::min(options_.grant_bytes, trial_bytes) : options_.grant_bytes;
    out.segments.clear();
    out.bytes = 0;
    bool full = false;
    for (auto it = m.direct.begin(); it != m.direct.end() && !full && out.segments.size() < grant_ranges_max; ++it) {
      range taken{it->first, it->first};
      for (std::uint64_t s = it->first; s < it->second; ++s) {
        if (!servable(s, now)) {   // it waits for its digest table: on to the next object
          if (taken.size() != 0) break;
          s = layout_.object(layout_.object_of_segment(s)).last_segment - 1;
          taken = {s + 1, s + 1};
          continue;
        }
        const std::uint64_t bytes = layout_.segment(s).bytes;
        if (out.bytes + bytes > most) {
          full = true;
          break;
        }
        out.bytes += bytes;
        taken.last = s + 1;
      }
      if (taken.size() != 0) out.segments.push_back(taken);
    }
    if (out.segments.empty()) continue;
    whom = (next_direct_ + k) % n;
    next_direct_ = (whom + 1) % n;
    for (const range& r : out.segments) {
      if (trial) break;
      direct_segments_ -= m.direct.erase(r.first, r.last);
      m.granted.insert(r.first, r.last);
    }
    ++m.grants;
    ++counters_.grants;
    out.id = ++last_grant_;
    out.lane = m.lane;
    out.rail = m.where.rail;
    std::uint64_t ahead = out.bytes;
    for (const auto& [id, g] : grants_)
      if (g.whom == whom) ahead += g.bytes;
    grants_[out.id] = {whom, out.segments, out.bytes, m.lane, ahead, false, trial, std::nullopt, now, now + options_.grant_life};
    return true;
  }
  return false;
}

void sender::handle_granted(time_point now, std::uint64_t id, result<granted_memory> r) {
  const auto it = grants_.find(id);
  if (it == grants_.end()) return;   // the receiver has ended meanwhile
  open_grant& g = it->second;
  if (r) {
    g.where = std::move(*r);
    g.expires = now + options_.grant_life;   // opening the lane took its time
    return send_grant(now, id, g);
  }
  member& m = members_[g.whom];
  const auto segments = g.segments;
  const repair_lane lane = g.lane;
  const bool trial = g.trial;
  close_grant(id);
  if (m.lane == lane) lane_failed(now, m, lane, describe(r.error()));   // once, of several grants that wait for the same
  if (trial) return;
  for (const range& s : segments) direct_segments_ += m.direct.insert(s.first, s.last);
}

void sender::send_grant(time_point now, std::uint64_t id, open_grant& g) {
  const member& m = members_[g.whom];
  g.sent = now;
  send({false, 0, m.where}, grant{options_.session, m.id, id, g.lane, g.where->fabric, g.where->address, g.where->key, g.segments});
}

// What is asked for and was granted long ago: the GRANT was lost.
void sender::repeat_grants(time_point now, const member& m, const range& asked) {
  if (m.grants == 0 || !m.granted.intersects(asked.first, asked.last)) return;
  for (auto& [id, g] : grants_)
    if (&members_[g.whom] == &m && g.where && now - g.sent > std::max<duration>(2 * std::max(grtt_, m.rtt), repeat_least) &&
        std::ranges::any_of(g.segments, [&](const range& r) { return r.first < asked.last && asked.first < r.last; }))
      send_grant(now, id, g);
}

void sender::close_grant(std::uint64_t id) {
  const auto it = grants_.find(id);
  DDF_ASSERT(it != grants_.end());
  member& m = members_[it->second.whom];
  if (!it->second.trial)
    for (const range& r : it->second.segments) m.granted.erase(r.first, r.last);
  --m.grants;
  grants_.erase(it);
  out_.push_back(release_grant{id});
}

void sender::on(time_point now, path from, const release& r) {
  member* m = by_token(from, r.token);
  if (m == nullptr) return;
  m->last_heard = now;
  for (const std::uint64_t id : r.ids) {
    const auto it = grants_.find(id);
    if (it == grants_.end() || &members_[it->second.whom] != m) continue;   // taken back already
    const repair_lane lane = it->second.lane;
    if (!r.failed) {
      counters_.read_bytes += it->second.bytes;
      m->last_gain = now;
      m->lane_failures = 0;
      const double pace = seconds(now - it->second.sent) / static_cast<double>(it->second.ahead);
      m->read_pace = m->read_pace == 0 ? pace : (3 * m->read_pace + pace) / 4;
      if (it->second.slow)   // it came after all
        for (const range& s : it->second.segments) direct_segments_ -= m->direct.erase(s.first, s.last);
      m->lane_proven = options_.reads_required || ((m->lane_proven || m->lane == lane) && !it->second.slow);
    }
    close_grant(id);
    if (r.failed && m->lane == lane) lane_failed(now, *m, lane, r.reason);
  }
}

// Another lane, and this one again after a while: ports come back.
void sender::lane_failed(time_point now, member& m, repair_lane lane, const std::string& why) {
  ++counters_.grants_failed;
  m.lanes_failed.add(lane);
  m.lanes_again = now + quarantine * (1 << std::min(m.lane_failures++, 6u));
  choose_lane(m);
  out_.push_back(note{log_level::warning, m.host + " (" + to_string(m.where.peer) + ") could not read by " + name_of(lane) + (why.empty() ? "" : ": " + printable(why)) + "; it is served by " + name_of(m.lane) + " for now"});
}

void sender::check_grants(time_point now) {
  for (auto it = grants_.begin(); it != grants_.end();) {
    const auto [id, whom, lane, late] = std::tuple(it->first, it->second.whom, it->second.lane, now >= it->second.expires);
    open_grant& g = it->second;
    ++it;
    if (!late && g.trial && g.where && now - g.sent > std::max<duration>(2 * members_[whom].rtt, trial_again)) send_grant(now, id, g);   // nobody asks for it again
    // Much later than those before it: losses hurt TCP more than they hurt us. UDP takes over, until a small read is quick again.
    member& m = members_[whom];
    if (!late && !g.trial && !g.slow && g.where && now - g.sent > std::max<duration>(slow_least, from_seconds(slow_factor * m.read_pace * static_cast<double>(g.ahead)))) {
      g.slow = true;
      m.lane_proven = options_.reads_required;
      if (!m.lane_proven)
        for (const range& r : g.segments) direct_segments_ += m.direct.insert(r.first, r.last);
    }
    if (!late) continue;
    close_grant(id);   // what is read of it from now on has another stamp, or none
    if (members_[whom].lane == lane) lane_failed(now, members_[whom], lane, "nothing was heard of it in time");
  }
  for (member& m : members_)
    if (now >= m.lanes_again) {
      m.lanes_again = never;
      m.lanes_failed = {};
      choose_lane(m);
    }
}

}  // namespace ddf
