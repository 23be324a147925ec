#include "lib/session/sender.hpp"

#include <algorithm>
#include <bit>

#include "codecs/digest.hpp"
#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/plan_codec.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration announce_first = 2ms;       // while gathering: quick at first, so that a waiting group starts at once
static constexpr duration announce_slowest = 100ms;   // and never slower, so that late receivers notice soon
static constexpr std::size_t join_bytes = 256;        // a JOIN is padded so that its answers are not larger: nobody gains by forging one

static std::uint32_t microseconds(time_point t) {
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count());
}

sender::sender(sender_options options, prng& rng, time_point now) : options_(std::move(options)), rng_(rng) {
  DDF_ASSERT(!options_.rails.empty() && options_.rails.size() <= 32);
  DDF_ASSERT(check_catalogue(options_.objects).has_value());
  catalogue_.bytes = write_catalogue(options_.objects);
  catalogue_.proof = digest_of(catalogue_.bytes);
  planned_.plan = true;
  objects_ = options_.objects;
  for (const manifest& m : options_.objects) total_bytes_ += m.size();
  all_rails_ = active_rails_ = options_.rails.size() == 32 ? ~0u : (1u << options_.rails.size()) - 1;
  table_known_ = options_.tables_known;
  table_known_.resize(options_.objects.size(), false);
  table_asked_.resize(options_.objects.size(), false);
  sequence_ = options_.sequence_first;
  times_.opened = now;
  announce_due_ = now;
  announce_interval_ = announce_first;
  housekeeping_due_ = now + 100ms;
}

// --- input --------------------------------------------------------------------------------------------------------------

void sender::handle_datagram(time_point now, path from, std::span<const std::byte> datagram) {
  const auto type = type_of(datagram);
  if (!type) return drop("malformed");
  if (*type == packet_type::data) return drop("foreign_data");
  const auto m = parse_message(datagram);
  if (!m) return drop("malformed");
  if (const auto* q = std::get_if<query>(&*m)) return datagram.size() < control_bytes_max ? drop("unpadded") : on(now, from, *q);
  const auto session = peek_session(datagram);
  if (!session || *session != options_.session) return drop("other_session");
  if (const auto* j = std::get_if<join>(&*m)) return datagram.size() < join_bytes ? drop("unpadded") : on(now, from, *j);
  if (const auto* s = std::get_if<status>(&*m)) return on(now, from, *s);
  if (const auto* n = std::get_if<nack>(&*m)) return on(now, from, *n);
  if (const auto* d = std::get_if<done>(&*m)) return on(now, from, *d);
  if (const auto* r = std::get_if<release>(&*m)) return on(now, from, *r);
  drop("unexpected");   // a sender's message: another sender, or our own looped back
}

void sender::on(time_point now, path from, const query&) {
  if (finished_ || closing_) return;
  announce_to(now, from, true);
}

void sender::on(time_point now, path from, const join& j) {
  if (finished_ || closing_) return drop("after_close");
  member* m = nullptr;
  if (const auto known = by_id_.find(j.receiver.value); known != by_id_.end()) {
    m = &members_[known->second];
    if (m->where.peer != from.peer) return drop("join_from_elsewhere");
  } else {
    if (members_.size() >= options_.receivers_max) {
      drop("receivers_full");
      send({false, 0, from}, welcome{options_.session, j.receiver, {}, false, false, refusal::full, 0});
      return;
    }
    member fresh;
    fresh.where = from;
    fresh.id = j.receiver;
    fresh.token = join_token{options_.make_token ? options_.make_token() : rng_.next() | 1};
    fresh.host = printable(j.host);
    fresh.joined = fresh.last_progress = fresh.last_gain = now;
    fresh.sequence = fresh.epoch_sequence = sequence_;
    fresh.budget = 8 * (total_bytes_ + catalogue_.bytes.size()) + (4 << 20);
    const auto index = static_cast<std::uint32_t>(members_.size());
    members_.push_back(std::move(fresh));
    by_id_[j.receiver.value] = index;
    by_token_[members_.back().token.value] = index;
    m = &members_.back();
    ++joined_;
    // A process that was restarted on the same host takes the place of its lost self.
    linger_until_ = never;
  }
  m->last_heard = now;
  if (m->state != member_state::active) {
    if (m->state == member_state::refused) return welcome_member(*m, m->refused);
    if (m->state != member_state::lost) return welcome_member(*m);
    m->state = member_state::active;   // it was silent for long, and is back
    m->reason.clear();
    --terminal_;
  }
  if (j.echo_us != 0) {
    const std::uint32_t round = microseconds(now) - j.echo_us - j.held_us;
    if (round < 2'000'000) {
      m->rtt = std::chrono::microseconds(round);
      grtt_ = std::clamp(grtt_measured_ ? std::max(grtt_, m->rtt) : m->rtt, duration(grtt_least), duration(grtt_most));
      grtt_measured_ = true;
    }
  }
  m->rails |= j.rails & all_rails_;
  m->buffer_bytes = j.buffer_bytes;
  if (j.datagram_bytes != 0) m->datagram_bytes = std::max(m->datagram_bytes, j.datagram_bytes);
  const bool was_ready = m->ready;
  m->ready = m->ready || j.ready;
  if (j.ready) m->held = j.held;
  if (!was_ready && j.ready) m->asks_only = j.asks_only || state_ != session_state::gathering;   // late: the first pass does not wait for it
  if (j.deaf && !m->deaf) {
    m->deaf = true;
    if (m->in_loop) leave_loop(*m, "hears no multicast");
  }
  m->reads = j.reads;
  choose_lane(*m);
  if (options_.reads_required && m->lane == repair_lane::udp) {
    end_member(*m, member_state::refused, "cannot read from this host's memory, which --repair requires here: see mcrecv --doctor there");
    welcome_member(*m, m->refused = refusal::no_lane);
    return;
  }
  if (m->deaf && options_.multicast == multicast_use::require) return refuse_deaf(*m);
  if (state_ != session_state::gathering && m->datagram_bytes != 0 &&
      m->datagram_bytes < layout_.segment_bytes() + data_header::wire_size && m->ready) {
    end_member(*m, member_state::refused, "its path carries only " + std::to_string(m->datagram_bytes) + "-byte datagrams, the session uses larger ones: give mcsend --mtu");
    welcome_member(*m, m->refused = refusal::path_mtu);
    return;
  }
  if (state_ != session_state::gathering && (m->rails & active_rails_) == 0 && m->rails != 0 && use_group()) {
    active_rails_ |= m->rails & (~m->rails + 1);   // heard only on an interface that was idle: use that one too
  }
  update_rate_loop(now);
  welcome_member(*m);
  if (!m->ready && !m->deaf) offer(now, catalogue_);
  if (state_ != session_state::gathering && !was_ready && j.ready) announce_to(now, m->where, false);   // it learns the segment size at once
  settle(now);
}

void sender::on(time_point now, path from, const status& s) {
  member* m = by_token(from, s.token);
  if (m == nullptr) return;
  ++counters_.statuses;
  m->last_heard = now;
  if (s.segments > m->segments) {
    m->segments = s.segments;
    m->last_gain = now;
  }
  if (m->state == member_state::lost) {
    m->state = member_state::active;
    m->reason.clear();
    --terminal_;
  }
  if (s.deaf && !m->deaf) {
    m->deaf = true;
    if (m->in_loop) leave_loop(*m, "hears no multicast");
    if (options_.multicast == multicast_use::require && m->state == member_state::active) return refuse_deaf(*m);
  }
  if (s.at_once && m->in_loop && s.sequence > m->sequence && s.sequence <= sequence_) measure_round_trip(now, s.sequence);
  confirm_progress(now, *m, s.sequence, s.received);
}

void sender::on(time_point now, path from, const done& d) {
  member* m = by_token(from, d.token);
  if (m == nullptr) return;
  m->last_heard = now;
  if (d.state == done_state::prepared) {
    if (m->state == member_state::lost) {
      m->state = member_state::active;
      m->reason.clear();
      --terminal_;
    }
    if (m->state != member_state::active || !options_.group_commit) return drop("unexpected");
    m->prepared = true;
    m->last_gain = now;
    if (m->in_loop) {   // it takes nothing more, and must not hold up who does
      m->in_loop = false;
      --in_loop_;
      least_confirmed_.reset();
    }
    if (committed_) send({false, 0, m->where}, commit_group{options_.session});
    return settle(now);
  }
  send({false, 0, m->where}, farewell{options_.session, m->id});
  if (m->state == member_state::lost) {
    m->state = member_state::active;
    --terminal_;
  }
  if (m->state != member_state::active) return;
  m->repaired_bytes = std::max(m->repaired_bytes, d.repaired_bytes);
  m->may_return = d.code == static_cast<std::uint8_t>(errc::interrupted);
  switch (d.state) {
    case done_state::complete: end_member(*m, member_state::complete, {}); break;
    case done_state::failed: end_member(*m, member_state::failed, d.reason.empty() ? "failed without a reason" : printable(d.reason)); break;
    case done_state::prepared: break;   // above
    case done_state::leaving: end_member(*m, member_state::failed, d.reason.empty() ? "left" : printable(d.reason)); break;
  }
  settle(now);
}

void sender::handle_digests_ready(time_point now, std::uint32_t object) {
  DDF_ASSERT(object < table_known_.size());
  table_known_[object] = true;
  if (!repairs_.empty() && repair_due_ == never) repair_due_ = now;
}

void sender::handle_queue_full(time_point now) {
  window_.local_queue_full();
  pace_until_ = std::max(pace_until_, now + 1ms);
}

void sender::stop(time_point now, error reason) {
  if (finished_) return;
  finish(now, std::move(reason));
}

// --- state --------------------------------------------------------------------------------------------------------------

void sender::choose_rails_and_segment() {
  // The fewest interfaces that reach everybody, greedily: the one most receivers heard, then the one most others heard.
  std::vector<const member*> left;
  for (const member& m : members_)
    if (m.state == member_state::active && m.rails != 0 && !m.deaf) left.push_back(&m);
  std::uint32_t chosen = 0;
  while (!left.empty()) {
    std::size_t best = 0, most = 0;
    for (std::size_t r = 0; r < options_.rails.size(); ++r) {
      const auto n = static_cast<std::size_t>(std::ranges::count_if(left, [&](const member* m) { return (m->rails >> r & 1) != 0; }));
      // Of equals the one that carries larger packets, then the first.
      if (n > most || (n == most && n != 0 && options_.rails[r].datagram_bytes > options_.rails[best].datagram_bytes)) best = r, most = n;
    }
    if (most == 0) break;
    chosen |= 1u << best;
    std::erase_if(left, [&](const member* m) { return (m->rails >> best & 1) != 0; });
  }
  if (chosen != 0) active_rails_ = chosen;
  std::uint32_t datagram = limits::segment_bytes_max;
  for (std::size_t r = 0; r < options_.rails.size(); ++r)
    if (active_rails_ >> r & 1) datagram = std::min(datagram, options_.rails[r].datagram_bytes);
  std::uint32_t path_least = datagram;
  for (const member& m : members_)
    if (m.state == member_state::active && !m.deaf && m.datagram_bytes != 0) path_least = std::min<std::uint32_t>(path_least, m.datagram_bytes);
  if (path_least < datagram) {
    out_.push_back(note{log_level::warning, "the path to a receiver carries only " + std::to_string(path_least) + "-byte datagrams, the interface " +
                                                std::to_string(datagram) + ": sending the smaller ones (check the MTU of every switch port)"});
    datagram = path_least;
  }
  const auto segment = std::clamp<std::uint32_t>(datagram - std::min<std::uint32_t>(datagram, data_header::wire_size), limits::segment_bytes_min, limits::segment_bytes_max);
  layout_ = layout(objects_, segment, options_.objects.size());
}

void sender::handle_plan(time_point now, session_plan plan) {
  DDF_ASSERT(planning_ && check_plan(plan, options_.objects).has_value());
  if (finished_ || closing_) return;
  planning_ = false;
  plan_ = std::move(plan);
  for (const object_root& r : plan_.roots) table_known_[r.object] = true;
  for (const delta_stream& d : plan_.deltas) {
    objects_.push_back(delta_manifest(d, options_.objects[d.object]));
    table_known_.push_back(true);
    table_asked_.push_back(true);
  }
  if (!plan_.empty()) {
    planned_.bytes = write_plan(plan_);
    planned_.proof = digest_of(planned_.bytes);
  }
  start(now);
}

// What somebody who follows the group needs. Whoever comes later, or finds that its base is not what it thought, asks.
void sender::choose_first_pass() {
  const auto count = static_cast<std::uint32_t>(options_.objects.size());
  const auto add = [&](const range& r) { first_pass_.insert(r.first, r.last); };
  if (plan_.empty()) return add({0, segments_});
  for (std::uint32_t o = 0; o < count; ++o) {
    bool whole = plan_.root_of(o) == nullptr;   // nothing was decided about it
    std::vector<bool> taken(plan_.deltas.size());
    for (const member& m : members_) {
      if (whole && plan_.deltas.empty()) break;
      if (m.state != member_state::active || m.asks_only || m.deaf) continue;
      const delivery w = delivery_for(plan_, o, m.held);
      if (w.by == delivery::kind::whole) whole = true;
      else if (w.by == delivery::kind::delta) taken[w.delta] = true;
    }
    if (whole) add({layout_.object(o).first_segment, layout_.object(o).last_segment});
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i]) continue;
      const object_extent& e = layout_.object(static_cast<std::uint32_t>(count + i));
      add({e.first_segment, e.last_segment});
      for (const range& r : plan_.deltas[i].whole) add(layout_.segments_of_rows(o, r.first, r.last));
    }
  }
}

void sender::start(time_point now) {
  choose_rails_and_segment();
  segments_ = layout_.segments();
  choose_first_pass();
  state_ = session_state::streaming;
  times_.started = now;
  bool anyone = false;
  for (member& m : members_) anyone = anyone || (m.state == member_state::active && !m.asks_only && !m.deaf);
  if (!anyone || !use_group() || first_pass_.empty()) bulk_ = segments_;   // everyone here asks for what it needs
  if (options_.rate_bytes_per_s != 0) {   // a burst lasts 10 ms at most: at low rates fewer packets, at the lowest one
    const std::uint64_t packet = layout_.segment_bytes() + data_header::wire_size + options_.rails[0].header_bytes;
    options_.batch_segments = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(options_.rate_bytes_per_s / 100 / packet, 1, options_.batch_segments));
  }
  window_ = window_control({.initial = std::max<std::uint64_t>(4ull * options_.batch_segments, 64), .least = 16, .tolerated = 0.02});
  update_rate_loop(now);
  // The announcement must not be overtaken by data, which a receiver cannot use before it has laid out its tables.
  pace_until_ = now + std::clamp<duration>(grtt_ / 2, 100us, 2ms);
  epoch_end_ = 0;
  confirm_every_ = std::max<std::uint64_t>(std::min(window_.packets(), window_.cap()) / 4, 1);
  next_confirm_ = sequence_ + confirm_every_;
  announce_interval_ = announce_slowest;
  if (planned_.bytes.size() > announce_inline_bytes_max) offer(now, planned_);
  for (int i = 0; i < 2; ++i) announce_to_group(now);   // without it a receiver can use no data: one loss must not cost the first pass
  for (const member& m : members_)   // the deaf, and those without multicast, learn it too
    if (m.state == member_state::active && (m.deaf || !use_group())) announce_to(now, m.where, false);
}

bool sender::table_ready(std::uint32_t object) const {
  return table_known_[object];
}

void sender::settle(time_point now) {
  if (finished_ || closing_) return;
  // Who comes to a holder after the deadline is not meant by it.
  const bool late = options_.deadline > 0ns && now - times_.opened >= options_.deadline && !(options_.serve && deadline_passed_);
  if (late && options_.group_commit && !committed_ && state_ != session_state::gathering) {
    for (member& m : members_)
      if (m.state == member_state::active && !m.prepared) end_member(m, member_state::incomplete, "not prepared by the deadline");
  }
  if (options_.group_commit && !committed_) decide_commit(now);
  if (finished_ || closing_) return;
  const bool switching = committed_ && late && now - times_.opened < options_.deadline + 5s;   // who was told to commit says so in a moment
  if (late && !(switching && terminal_ < members_.size())) {
    deadline_passed_ = true;
    if (terminal_ < members_.size() || (state_ == session_state::gathering && !options_.serve)) {
      for (member& m : members_)
        if (m.state == member_state::active) end_member(m, member_state::incomplete, "not complete by the deadline");
      return finish(now, outcome());
    }
  }
  if (state_ == session_state::gathering) {
    std::uint32_t ready = 0, active = 0, final = 0;
    for (const member& m : members_) {
      final += m.state != member_state::active && m.state != member_state::lost && !m.may_return;
      active += m.state == member_state::active;
      ready += m.state == member_state::active && m.ready && (m.datagram_bytes != 0 || m.deaf || !use_group());
    }
    const bool waited = waited_ = now - times_.opened >= options_.wait;
    // Who joined has refused or failed, and told why: that is the answer, not that nobody joined. Who was lost or interrupted may
    // come back while there is time.
    const bool none_will = options_.expect != 0 && final >= options_.expect && final == members_.size();
    if (active == 0 && !members_.empty() && !options_.serve && (waited || none_will)) return finish(now, outcome());
    if (planning_) return;
    if (options_.expect != 0 ? ready >= options_.expect || (waited && active > 0) : waited && active > 0) {
      planning_ = true;
      if (options_.plans) out_.push_back(plan_session{});
      else handle_plan(now, {});
    } else if (waited && !options_.serve) {
      finish(now, {errc::no_receiver, 0,
                   "no receiver joined within " + std::to_string(seconds(options_.wait)).substr(0, 5) +
                       " s. Start mcrecv first, or give mcsend --wait or --expect. Is mcrecv running with the same --group? Check the interface (--interface), the host firewalls (UDP), and whether the "
                       "switch forwards multicast (IGMP snooping with a querier)"});
      return;
    }
  }
  if (state_ == session_state::gathering) return;
  if (state_ == session_state::streaming && bulk_ >= segments_) {
    state_ = session_state::flushing;
    times_.flushed = now;
    announce_interval_ = std::clamp<duration>(2 * grtt_, 2ms, announce_slowest);
    announce_due_ = now;
  }
  if (state_ == session_state::flushing && !members_.empty() && terminal_ == members_.size()) {
    state_ = session_state::lingering;
    times_.ended = now;
    announce_interval_ = announce_slowest;
  }
  if (state_ == session_state::lingering) {
    if (terminal_ < members_.size()) {
      state_ = session_state::flushing;
      linger_until_ = never;
      return;
    }
    if (options_.serve) return;
    if (linger_until_ == never) linger_until_ = now + options_.linger;
    if (now >= linger_until_) finish(now, outcome());
  }
}

void sender::finish(time_point now, error result) {
  if (finished_ || closing_) return;
  closing_ = true;
  if (times_.ended == never) times_.ended = now;
  outcome_ = std::move(result);
  repairs_ = {};
  for (member& m : members_)
    if (m.state == member_state::active) end_member(m, member_state::incomplete, outcome_.what);
  const close_session bye{options_.session, static_cast<std::uint8_t>(outcome_.code == errc::ok ? errc::ok : outcome_.code), outcome_.what};
  if (use_group())
    for (int i = 0; i < 2; ++i) send({true, all_rails_, {}}, bye);
  for (const member& m : members_)
    if (m.proven && m.state != member_state::complete && m.state != member_state::failed) send({false, 0, m.where}, bye);
  out_.push_back(sender_finished{outcome_});
}

// --- output -------------------------------------------------------------------------------------------------------------

void sender::send(destination to, const message& m, std::size_t pad_to) {
  send_message action{to, write_message(m, pad_to)};
  ++counters_.control_packets;
  counters_.control_bytes += action.datagram.size() * (to.group ? static_cast<std::size_t>(std::popcount(to.rails)) : 1);
  out_.push_back(std::move(action));
}

announce sender::make_announce(time_point now) const {
  announce a;
  a.session = options_.session;
  a.state = state_;
  a.no_multicast = !use_group();
  a.plans = options_.plans;
  a.group_commit = options_.group_commit;
  a.segment_bytes = static_cast<std::uint16_t>(state_ == session_state::gathering ? 0 : layout_.segment_bytes());
  a.counter = announce_counter_;
  a.clock_us = std::max<std::uint32_t>(microseconds(now), 1);
  a.sequence = sequence_;
  a.segments = segments_;
  a.bulk_segment = bulk_;
  a.bytes = total_bytes_;
  a.objects = static_cast<std::uint32_t>(options_.objects.size());   // deltas are not counted
  a.group_size = served();
  a.grtt_us = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(grtt_).count());
  a.catalogue_bytes = static_cast<std::uint32_t>(catalogue_.bytes.size());
  a.catalogue_digest = catalogue_.proof;
  a.plan_bytes = static_cast<std::uint32_t>(planned_.bytes.size());
  a.plan_digest = planned_.proof;
  a.reads = options_.reads;
  // Who joined has the catalogue and waits for the plan.
  if (planned_.bytes.size() <= announce_inline_bytes_max) a.plan = planned_.bytes;
  if (catalogue_.bytes.size() + a.plan.size() <= announce_inline_bytes_max) a.catalogue = catalogue_.bytes;
  return a;
}

void sender::announce_to_group(time_point now) {
  if (!use_group()) return;
  ++announce_counter_;
  announce a = make_announce(now);
  for (std::uint32_t r = 0; r < options_.rails.size(); ++r) {
    const bool active = (active_rails_ >> r & 1) != 0;
    if (!active && state_ != session_state::gathering && announce_counter_ % 4 != 0) continue;   // idle interfaces: for late receivers there
    a.rail = static_cast<std::uint8_t>(r);
    // While gathering announcements are padded to a ladder of sizes, the whole packet first: what arrives tells the path's MTU.
    const std::uint32_t whole = options_.rails[r].datagram_bytes;
    const std::uint32_t ladder[] = {1232, whole, 1472, 1400};
    // Later every fourth fills a packet of the session: whether those who come late can be served is seen by it.
    const std::uint32_t used = announce_counter_ % 4 == 1 ? std::min<std::uint32_t>(whole, layout_.segment_bytes() + data_header::wire_size) : 0;
    send({true, 1u << r, {}}, a, state_ == session_state::gathering ? std::min(whole, ladder[announce_counter_ % 4]) : used);
  }
}

void sender::announce_to(time_point now, path to, bool with_catalogue) {
  announce a = make_announce(now);
  a.unicast = true;
  if (!with_catalogue) a.catalogue.clear();
  a.rail = static_cast<std::uint8_t>(std::min(to.rail, 31u));
  send({false, 0, to}, a);
}

void sender::send_chunks(destination to, const description& d, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t c = first; c < last; ++c) {
    const auto offset = static_cast<std::uint32_t>(c * catalogue_chunk_bytes);
    if (offset >= d.bytes.size()) break;
    catalogue_chunk chunk{options_.session, d.plan, static_cast<std::uint32_t>(d.bytes.size()), offset, {}};
    const std::size_t n = std::min(catalogue_chunk_bytes, d.bytes.size() - offset);
    chunk.bytes.assign(d.bytes.begin() + offset, d.bytes.begin() + static_cast<std::ptrdiff_t>(offset + n));
    send(to, chunk);
  }
}

void sender::offer(time_point now, description& d) {
  if (d.sent || d.bytes.size() <= announce_inline_bytes_max || !use_group()) return;
  d.sent = true;
  d.wanted.insert(0, d.chunks());
  d.due = now;
}

void sender::send_wanted_chunks(time_point now, description& d) {
  if (now < d.due) return;
  d.due = never;
  std::uint32_t budget = catalogue_burst;
  while (budget != 0 && !d.wanted.empty()) {
    const range r = *d.wanted.front();
    const auto last = static_cast<std::uint32_t>(std::min<std::uint64_t>(r.last, r.first + budget));
    send_chunks(group(), d, static_cast<std::uint32_t>(r.first), last);
    budget -= last - static_cast<std::uint32_t>(r.first);
    d.wanted.erase(r.first, last);
  }
  if (!d.wanted.empty()) d.due = now + 2ms;
}

void sender::handle_timeout(time_point now) {
  if (finished_ || closing_) return;
  if (now >= announce_due_) {
    announce_to_group(now);
    announce_due_ = now + announce_interval_;
    if (state_ == session_state::gathering || state_ == session_state::flushing) announce_interval_ = std::min<duration>(announce_interval_ * 2, announce_slowest);
    else announce_interval_ = announce_slowest;
  }
  send_wanted_chunks(now, catalogue_);
  send_wanted_chunks(now, planned_);
  if (now >= housekeeping_due_) {
    check_members(now);
    check_grants(now);
    housekeeping_due_ = now + 50ms;
  }
  settle(now);
  if (closing_) return;
  // Shut out by the window for longer than a round trip: the confirmations, or what they confirm, were lost. Say where we are.
  if (blocked_since_ != never && now - blocked_since_ >= std::max<duration>(2 * grtt_, 2ms)) {
    announce_to_group(now);
    blocked_since_ = now;
  }
}

time_point sender::next_timeout() const {
  if (finished_ || closing_) return never;
  time_point t = std::min(announce_due_, housekeeping_due_);
  t = std::min({t, catalogue_.due, planned_.due});
  if (state_ == session_state::gathering && !waited_) t = std::min(t, times_.opened + options_.wait);
  if (blocked_since_ != never) t = std::min(t, blocked_since_ + std::max<duration>(2 * grtt_, 2ms));
  if (repair_due_ != never) t = std::min(t, std::max(repair_due_, pace_until_));
  if (paced_) t = std::min(t, pace_until_);
  if (linger_until_ != never) t = std::min(t, linger_until_);
  if (options_.deadline > 0ns && !deadline_passed_) t = std::min(t, times_.opened + options_.deadline);
  return t;
}

duration sender::pace(std::uint64_t bytes) const {
  if (options_.rate_bytes_per_s == 0) return duration(0);
  return from_seconds(static_cast<double>(bytes) / static_cast<double>(options_.rate_bytes_per_s));
}

void sender::account(time_point now, const send_segments& batch, bool repair) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < batch.count;) {
    std::uint32_t n = 1;
    while (i + n < batch.count && batch.segments[i + n] == batch.segments[i] + n) ++n;
    const layout::load l = layout_.load_of(batch.segments[i], batch.segments[i] + n);
    bytes += l.bytes + n * data_header::wire_size;
    counters_.data_segments += l.data_segments;
    i += n;
  }
  if (batch.to.group) {
    const std::uint64_t copies = static_cast<std::uint64_t>(std::popcount(batch.to.rails));
    sequence_ += batch.count;
    counters_.group_packets += batch.count;
    if (repair) {
      counters_.multicast_repairs += batch.count;
      counters_.multicast_repair_bytes += bytes * copies;
    } else {
      counters_.bulk_segments += batch.count;
      counters_.bulk_bytes += bytes * copies;
    }
  } else {
    counters_.unicast_repairs += batch.count;
    counters_.unicast_repair_bytes += bytes;
  }
  if (options_.rate_bytes_per_s != 0) {
    // A late timer may be made up for, by one short burst and no more.
    const time_point from = std::max(pace_until_, now - 2ms);
    pace_until_ = from + pace(bytes + batch.count * options_.rails[0].header_bytes);
  }
}

bool sender::next_bulk(time_point, send_segments& out) {
  if (state_ != session_state::streaming || bulk_ >= segments_) return false;
  const auto due = first_pass_.first_in(bulk_, segments_);
  DDF_ASSERT(due.has_value());
  const std::uint64_t room = window_limit() - std::min(window_limit(), sequence_);
  if (room == 0) return false;
  bulk_ = due->first;   // what lies between is sent to nobody unasked
  std::uint32_t want = options_.batch_segments;
  const segment_extent here = layout_.segment(bulk_);
  const block_extent block = layout_.block(here.block);
  const std::uint64_t left = block.last_segment - bulk_;
  if (left >= want) {
    // Even batches to the end of the block, so that none is tiny: its last segment is short and ends a burst anyway.
    const std::uint64_t batches = (left + want - 1) / want;
    want = static_cast<std::uint32_t>((left + batches - 1) / batches);
  }
  // Do not dribble: a burst much smaller than wanted costs as much as a whole one; better wait for more confirmations.
  if (room < want && room < window_.packets() / 4) return false;
  want = static_cast<std::uint32_t>(std::min<std::uint64_t>({want, room, due->last - bulk_}));
  // A batch passes from an object's data into its table only when the table is made: after the data was read.
  const object_extent& object = layout_.object(here.object);
  if (bulk_ < object.table_segment) want = static_cast<std::uint32_t>(std::min<std::uint64_t>(want, object.table_segment - bulk_));
  out.to = group();
  out.flags = 0;
  out.drained_last = false;
  out.sequence = sequence_;
  out.count = want;
  for (std::uint32_t i = 0; i < want; ++i) out.segments[i] = bulk_ + i;
  bulk_ += want;
  if (bulk_ >= object.table_segment && first_pass_.contains(object.first_segment, object.table_segment)) table_known_[here.object] = true;
  if (!first_pass_.intersects(bulk_, segments_)) bulk_ = segments_;
  return true;
}

std::optional<sender_action> sender::poll_action(time_point now) {
  if (!out_.empty()) {
    sender_action a = std::move(out_.front());
    out_.pop_front();
    if (std::holds_alternative<sender_finished>(a)) finished_ = true;
    return a;
  }
  if (finished_ || closing_ || state_ == session_state::gathering) return std::nullopt;
  paced_ = now < pace_until_;
  if (paced_) return std::nullopt;

  std::optional<sender_action> action(std::in_place, std::in_place_type<send_segments>);
  send_segments& batch = std::get<send_segments>(*action);
  std::uint32_t whom = repair_queue::several;
  const auto grants = [&](repairs_for served) {
    grant_segments g;
    if (!next_grant(now, g, whom, served)) return false;
    repair_credit_ -= static_cast<std::int64_t>(g.bytes / layout_.segment_bytes() + 1) * (members_[whom].in_loop ? 1 : 8);
    members_[whom].repaired_bytes += g.bytes;
    if (options_.rate_bytes_per_s != 0) pace_until_ = std::max(pace_until_, now) + pace(g.bytes);
    action = std::move(g);
    return true;
  };
  // Repairs take turns with the first pass, at most one packet for each of its packets; what it leaves idle is theirs. But when
  // it waits for the window the link may be busy all the same: then only for those it is waiting for.
  const bool turn = repair_credit_ > 0;
  bool repair = true;
  if (turn && grants(repairs_for::all)) return action;
  if (turn && (next_repair(now, batch, whom, repairs_for::all) || next_direct(now, batch, whom, repairs_for::all))) {
    // What one receiver needs that does not keep up counts eightfold: serving it must not slow the others.
    repair_credit_ -= static_cast<std::int64_t>(batch.count) * (batch.to.group || members_[whom].in_loop ? 1 : 8);
  } else if (next_bulk(now, batch)) {
    repair = false;
    repair_credit_ = std::min<std::int64_t>(repair_credit_ + batch.count, 4 * batch_segments_max);
  } else {
    const auto served = bulk_ < segments_ ? repairs_for::loop : repairs_for::all;
    if (!turn && grants(served)) return action;
    if (turn || !(next_repair(now, batch, whom, served) || next_direct(now, batch, whom, served))) {
      window_shut_ = in_loop_ > 0 && sequence_ + window_.packets() / 4 >= window_limit();
      if (!window_shut_) blocked_since_ = never;
      else if (blocked_since_ == never) blocked_since_ = now;
      return std::nullopt;
    }
  }
  if (!batch.to.group)
    for (std::uint32_t i = 0; i < batch.count; ++i) members_[whom].repaired_bytes += layout_.segment(batch.segments[i]).bytes;
  window_shut_ = false;
  if (batch.to.group) {
    blocked_since_ = never;
    const std::uint64_t after = sequence_ + batch.count;
    // A confirmation twice a window, at the end of the pass, and when the window is about to shut.
    if (after >= next_confirm_ || bulk_ >= segments_ || after >= window_limit()) {
      batch.confirm_last = true;
      next_confirm_ = after + confirm_every_;
      if (confirm_sent_.size() >= 64) confirm_sent_.pop_front();
      confirm_sent_.emplace_back(after, now);
    }
  }
  account(now, batch, repair);
  if (!repair && bulk_ >= segments_) settle(now);
  return action;
}

}  // namespace ddf
