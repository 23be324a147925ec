// The sender's side of repair: what a NACK asks for, and what is sent again, to whom.
#include "lib/session/sender.hpp"

#include <algorithm>

namespace ddf {

using namespace std::chrono_literals;

static constexpr std::uint64_t long_range = 64;       // segments: more than a burst of loss

void sender::on(time_point now, path from, const nack& n) {
  member* m = by_token(from, n.token);
  if (m == nullptr) return;
  ++counters_.nacks;
  ++m->nacks;
  m->last_heard = now;
  if (m->state == member_state::lost) {
    m->state = member_state::active;
    m->reason.clear();
    --terminal_;
  }
  if (m->state != member_state::active || finished_ || closing_) return drop("nack_after_end");
  if (n.space != nack_space::segments) return answer_description(now, *m, n);
  const std::uint64_t heard = std::min(n.unicast_sequence, m->unicast_sequence);
  if (n.received > m->received || heard > m->unicast_heard) m->last_gain = now;
  m->unicast_heard = std::max(m->unicast_heard, heard);
  measure_repair_round(now, *m);
  confirm_progress(now, *m, n.sequence, n.received);
  if (state_ == session_state::gathering) return drop("nack_too_early");
  const std::uint32_t index = by_token_[n.token.value];
  const bool alone = n.unicast || m->deaf || !use_group();
  const bool large_group = served() > 16;
  // Several that resume, or came late, miss the same long ranges, though they do not ask for them at one instant.
  const bool many_ask = state_ != session_state::streaming && std::ranges::count_if(members_, [](const member& o) {
    return o.state == member_state::active && o.asks_only && !o.deaf && o.nacks != 0;
  }) > 1;
  // The group's round trip was measured while the first pass filled every queue; at the end what goes to one receiver alone has
  // a shorter one of its own.
  const bool tail = state_ != session_state::streaming;
  const auto holdoff = [&](duration round_trip) { return tail ? std::clamp<duration>(2 * round_trip, 2ms, 100ms) : std::clamp<duration>(4 * round_trip, 10ms, 200ms); };
  const duration round_trip = std::max(grtt_, m->rtt);
  group_answers_.forget_before(now - holdoff(round_trip));
  m->answers.forget_before(now - holdoff(tail && m->repair_round > duration(0) ? m->repair_round : round_trip));
  std::vector<range> arrived, wanted;

  for (const range& asked : n.ranges) {
    if (asked.last > segments_) {
      drop("nack_out_of_range");
      continue;
    }
    if (m->budget == 0) {   // an honest receiver comes here when its path loses most of what is sent to it: no silent end
      drop("over_budget");
      end_member(*m, member_state::failed, "drew eight times the objects in repairs and is not complete: its path loses most of what it is sent");
      send({false, 0, m->where}, close_session{options_.session, static_cast<std::uint8_t>(errc::receiver_lost), m->reason});
      return settle(now);
    }
    ++counters_.nack_ranges;
    for (std::uint64_t at = asked.first; at < asked.last;) {   // object by object
      const std::uint32_t o = layout_.object_of_segment(at);
      const object_extent& e = layout_.object(o);
      at = e.last_segment;
      if (asked.last > e.table_segment && asked.first < e.last_segment && !table_ready(o) && !table_asked_[o]) {
        table_asked_[o] = true;
        out_.push_back(prepare_digests{o});
      }
    }
    const range r = asked;
    if (alone) {
      wanted.clear();
      m->answers.not_on_the_way(r, n.unicast_sequence, wanted);
      for (const range& piece : wanted) want_direct(*m, piece);
      repeat_grants(now, *m, r);
      continue;
    }
    arrived.clear();
    wanted.clear();
    // What has just been sent is still on its way: asked for again too early, or crossing the answer.
    if (r.first < bulk_) group_answers_.not_on_the_way({r.first, std::min(r.last, bulk_)}, n.sequence, arrived);
    // The first pass will bring the rest, but for what it leaves out.
    for (std::uint64_t at = std::max(r.first, bulk_); at < r.last;) {
      const auto left_out = first_pass_.first_gap(at, r.last);
      if (!left_out) break;
      group_answers_.not_on_the_way(*left_out, n.sequence, arrived);
      at = left_out->last;
    }
    for (const range& piece : arrived) m->answers.not_on_the_way(piece, n.unicast_sequence, wanted);
    if (m->grants != 0) {
      arrived.swap(wanted);
      wanted.clear();
      for (range piece : arrived)
        while (const auto free = m->granted.first_gap(piece.first, piece.last)) {
          wanted.push_back(*free);
          piece.first = free->last;
        }
      repeat_grants(now, *m, r);
    }
    for (const range& piece : wanted) {
      // In a large group others will have lost the same; what one alone came too late for must not load all of it.
      const bool is_long = piece.size() >= long_range;
      const bool to_group = large_group ? !is_long || !m->asks_only || many_ask : is_long && many_ask;
      const std::uint64_t before = repairs_.count();
      if (!repairs_.add(piece, to_group ? repair_queue::several : index)) {
        drop("repair_queue_full");
        continue;
      }
      charge(*m, repairs_.count() - before, layout_.segment_bytes());
      if (large_group && to_group && notice_.size() < nack_ranges_max) notice_.push_back(piece);
    }
  }
  if (!repairs_.empty() && repair_due_ == never) {
    // Wait for the others that lost the same, so that one answer serves all.
    // Towards the end everybody waits for the last repairs: be quick rather than frugal.
    repair_due_ = served() <= 1 ? now : now + std::clamp<duration>(tail ? grtt_ / 4 : grtt_ / 2, 100us, !tail ? duration(10ms) : large_group ? duration(1ms) : duration(300us));
  }
  if (!notice_.empty()) {
    std::ranges::sort(notice_);
    std::vector<range> merged;
    for (const range& r : notice_)
      if (!merged.empty() && r.first <= merged.back().last && r.last - merged.back().first <= 0xffff'ffff) merged.back().last = std::max(merged.back().last, r.last);
      else merged.push_back(r);
    notice_.clear();
    ++counters_.repair_notices;
    send(group(), repair_notice{options_.session, std::move(merged)});
  }
}

void sender::answer_description(time_point now, member& m, const nack& n) {
  description& d = n.space == nack_space::plan_chunks ? planned_ : catalogue_;
  std::uint64_t left = catalogue_burst;
  for (const range& r : n.ranges) {
    if (r.last > d.chunks()) return drop("nack_out_of_range");
    if (m.budget == 0) return drop("over_budget");
    if (m.deaf || !use_group()) {
      const std::uint64_t last = std::min(r.last, r.first + left);
      charge(m, last - r.first, catalogue_chunk_bytes);
      send_chunks({false, 0, m.where}, d, static_cast<std::uint32_t>(r.first), static_cast<std::uint32_t>(last));
      left -= last - r.first;
      if (left == 0) break;
    } else {
      charge(m, d.wanted.insert(r.first, r.last), catalogue_chunk_bytes);
    }
  }
  if (!d.wanted.empty() && d.due == never) d.due = now + (members_.size() > 1 ? grtt_ : duration(0));
}

// What a receiver asks for is taken from what it may draw, by unicast or from the group; an honest one never comes near the end.
void sender::charge(member& m, std::uint64_t packets, std::uint64_t packet_bytes) { m.budget -= std::min(m.budget, packets * packet_bytes); }

void sender::note_unicast(time_point now, member& m, std::uint32_t packets) {
  m.unicast_sequence += packets;
  if (m.unanswered.size() >= 64) m.unanswered.pop_front();
  m.unanswered.emplace_back(m.unicast_sequence, now);
}

// The last repair that a NACK knows of was under way at most this long. The least counts: the receiver may have had other reasons
// to wait. It may grow again, doubling at most.
void sender::measure_repair_round(time_point now, member& m) {
  std::optional<duration> sample;
  while (!m.unanswered.empty() && m.unanswered.front().first <= m.unicast_heard) {
    sample = now - m.unanswered.front().second;
    m.unanswered.pop_front();
  }
  if (sample) m.repair_round = m.repair_round > duration(0) ? std::min(*sample, 2 * m.repair_round) : *sample;
}

bool sender::servable(std::uint64_t segment, time_point) {
  const std::uint32_t object = layout_.object_of_segment(segment);
  return segment < layout_.object(object).table_segment || table_ready(object);
}

bool sender::next_repair(time_point now, send_segments& out, std::uint32_t& whom, repairs_for served) {
  if (repairs_.empty()) {
    repair_due_ = never;
    return false;
  }
  if (repair_due_ == never || now < repair_due_) return false;
  out.count = 0;
  whom = repair_queue::several;
  std::uint32_t looked = 0;
  std::uint64_t room = window_limit() - std::min(window_limit(), sequence_);
  auto e = repairs_.next();
  for (; e && out.count < options_.batch_segments && looked < 512; e = repairs_.next(e->segments.last), ++looked) {
    if (e->receiver != repair_queue::several && members_[e->receiver].state != member_state::active) {
      repairs_.erase(e->segments);   // nobody is left who wants it
      continue;
    }
    if (e->receiver != repair_queue::several && members_[e->receiver].lane != repair_lane::udp) {
      direct_segments_ += members_[e->receiver].direct.insert(e->segments.first, e->segments.last);   // it may be read
      repairs_.erase(e->segments);
      continue;
    }
    if (out.count != 0 && e->receiver != whom) continue;
    if (served == repairs_for::loop && e->receiver != repair_queue::several && !members_[e->receiver].in_loop) continue;
    if (out.count == 0 && e->receiver == repair_queue::several && room == 0) continue;
    for (std::uint64_t s = e->segments.first; s < e->segments.last && out.count < options_.batch_segments; ++s) {
      if (!servable(s, now)) {
        s = layout_.object(layout_.object_of_segment(s)).last_segment - 1;   // it waits for its digest table: on to the next object
        continue;
      }
      whom = e->receiver;
      out.segments[out.count++] = s;
      if (whom == repair_queue::several && out.count >= room) break;
    }
    if (whom == repair_queue::several && out.count >= room) break;
  }
  const bool saw_all = !e.has_value();   // nothing more is queued for this receiver
  if (out.count == 0) {
    repair_due_ = repairs_.empty() ? never : now + 1ms;   // the window is shut, a digest table is being made, or who wants it has to wait
    return false;
  }
  const bool to_group = whom == repair_queue::several;
  for (std::uint32_t i = 0; i < out.count;) {   // consecutive ones as a range
    std::uint32_t j = i + 1;
    while (j < out.count && out.segments[j] == out.segments[j - 1] + 1) ++j;
    const range r{out.segments[i], out.segments[j - 1] + 1};
    repairs_.erase(r);
    if (to_group) {
      group_answers_.add(now, r, sequence_ + j - 1);
    } else {
      members_[whom].answers.add(now, r, members_[whom].unicast_sequence + j - 1);
    }
    i = j;
  }
  if (to_group) {
    out.to = group();
    out.sequence = sequence_;
  } else {
    member& m = members_[whom];
    out.to = {false, 0, m.where};
    out.sequence = m.unicast_sequence;
    note_unicast(now, m, out.count);
  }
  out.flags = static_cast<std::uint8_t>(data_header::repair | (to_group ? 0 : data_header::unicast));
  out.drained_last = repairs_.empty() || (!to_group && saw_all && members_[whom].direct.empty());
  if (repairs_.empty()) repair_due_ = never;
  return true;
}

bool sender::next_direct(time_point now, send_segments& out, std::uint32_t& whom, repairs_for served) {
  if (direct_segments_ == 0) return false;
  const auto n = static_cast<std::uint32_t>(members_.size());
  for (std::uint32_t k = 0; k < n; ++k) {
    member& m = members_[(next_direct_ + k) % n];
    if (m.state != member_state::active || m.direct.empty() || (served == repairs_for::loop && !m.in_loop) || serves_by_read(m)) continue;
    out.count = 0;
    for (const auto& [first, last] : m.direct) {
      for (std::uint64_t s = first; s < last && out.count < options_.batch_segments; ++s)
        if (servable(s, now)) out.segments[out.count++] = s;
        else s = layout_.object(layout_.object_of_segment(s)).last_segment - 1;
      if (out.count >= options_.batch_segments) break;
    }
    if (out.count == 0) continue;
    for (std::uint32_t i = 0; i < out.count;) {   // consecutive ones as a range
      std::uint32_t j = i + 1;
      while (j < out.count && out.segments[j] == out.segments[j - 1] + 1) ++j;
      const range r{out.segments[i], out.segments[j - 1] + 1};
      direct_segments_ -= m.direct.erase(r.first, r.last);
      m.answers.add(now, r, m.unicast_sequence + j - 1);
      i = j;
    }
    whom = (next_direct_ + k) % n;
    next_direct_ = (whom + 1) % n;
    out.to = {false, 0, m.where};
    out.sequence = m.unicast_sequence;
    note_unicast(now, m, out.count);
    out.flags = data_header::repair | data_header::unicast;
    out.drained_last = m.direct.empty();
    return true;
  }
  return false;
}

}  // namespace ddf
