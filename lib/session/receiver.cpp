#include "lib/session/receiver.hpp"

#include <algorithm>

#include "lib/model/object_name.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration group_silence = 600ms;        // no multicast for so long while the sender lives: ask how far it is

receiver::receiver(receiver_options options, session_id session, path sender, prng& rng, time_point now)
    : options_(std::move(options)), session_(session), sender_(sender), rng_(rng) {
  times_.first_heard = heard_at_ = now;
  silence_check_ = now + 100ms;
  if (options_.multicast == multicast_use::off) deaf_ = true;
  planned_.plan = true;
}

// --- input --------------------------------------------------------------------------------------------------------------

bool receiver::is_sender(const endpoint& e) const { return e == sender_.peer || std::ranges::find(other_addresses_, e) != other_addresses_.end(); }

void receiver::handle_datagram(time_point now, path from, bool to_group, std::span<const std::byte> datagram) {
  if (const auto run = take_run(datagram, datagram.size())) return handle_run(now, from, to_group, *run);
  if (finished_) return drop("after_end");
  const auto m = parse_message(datagram);
  if (!m) return drop("malformed");
  const auto session = peek_session(datagram);
  if (!session || *session != session_) return drop("other_session");
  if (!is_sender(from.peer)) {
    // The sender speaks from one address per interface, and announces on each before it sends data there. We answer to the
    // one we heard first.
    const auto* a = std::get_if<announce>(&*m);
    if (a == nullptr || !to_group || (catalogue_.bytes != 0 && a->catalogue_digest != catalogue_.proof)) return drop("other_rail");
    if (other_addresses_.size() >= 31) return drop("other_rail");
    other_addresses_.push_back(from.peer);
  }
  heard_at_ = now;
  if (const auto* a = std::get_if<announce>(&*m)) return on(now, from, to_group, *a, datagram.size());
  if (const auto* c = std::get_if<catalogue_chunk>(&*m)) return on(now, *c);
  if (from.peer != sender_.peer) return drop("other_rail");   // whoever repeats an announcement cannot end the session by it
  if (const auto* w = std::get_if<welcome>(&*m)) return on(now, from, *w);
  if (const auto* r = std::get_if<repair_notice>(&*m)) return on(now, *r);
  if (const auto* f = std::get_if<farewell>(&*m)) return on(now, *f);
  if (const auto* c = std::get_if<close_session>(&*m)) return on(now, *c);
  if (const auto* g = std::get_if<commit_group>(&*m)) return on(now, *g);
  if (const auto* g = std::get_if<grant>(&*m)) return on(now, *g);
  drop("unexpected");
}

void receiver::on(time_point now, path, bool to_group, const announce& a, std::size_t datagram_bytes) {
  if (have_catalogue_ && a.catalogue_digest != catalogue_.proof) return drop("inconsistent");
  const bool proves_multicast = to_group && !a.unicast;
  if (proves_multicast) {
    group_heard_at_ = now;
    ++announces_heard_;
    rails_ |= 1u << a.rail;
    datagram_bytes_ = static_cast<std::uint16_t>(std::max<std::size_t>(datagram_bytes_, std::min<std::size_t>(datagram_bytes, 65535)));
    if (a.counter % 4 == 1) whole_packet_heard_ = true;
  } else if (unicast_first_ == never) {
    unicast_first_ = now;
  }
  echo_us_ = a.clock_us;
  echo_at_ = now;
  sender_state_ = a.state;
  sender_multicasts_ = !a.no_multicast;
  sender_plans_ = a.plans;
  group_commit_ = a.group_commit;
  group_size_ = std::max<std::uint32_t>(a.group_size, 1);
  grtt_ = std::clamp<duration>(std::chrono::microseconds(a.grtt_us), 50us, 1s);
  if (a.no_multicast && !deaf_) become_deaf(now, "the sender does not multicast");

  if (!have_catalogue_) {
    announced(now, catalogue_, a.catalogue_bytes, a.catalogue_digest, a.catalogue);
    if (finished_ || wanted_nothing_) return;
    if (join_due_ == never && token_.value == 0) {
      join_interval_ = 5ms;
      // A large group does not join in one instant.
      join_due_ = now + std::chrono::duration_cast<duration>(rng_.uniform() * std::min<duration>(group_size_ * 5us, 50ms));
    }
  }
  if (a.segment_bytes != 0) {
    if (segment_bytes_ == 0) segment_bytes_ = a.segment_bytes;
    if (a.plan_bytes != 0 && have_catalogue_ && !planned_.taken) announced(now, planned_, a.plan_bytes, a.plan_digest, a.plan);
    if (finished_) return;
  }
  if (have_catalogue_ && options_.reads_required && best_lane(options_.reads, a.reads) == repair_lane::udp && !leaving_ && !all_done_)
    return stop(now, {errc::network, 0, "the sender's memory cannot be read by the lane that --repair requires here: give mcsend the same --repair, and look at mcsend --doctor there; or leave --repair at auto"});
  take_layout(now);
  if (have_layout_ && a.state != session_state::gathering && a.segments != layout_.segments()) return drop("inconsistent");
  if ((rails_ & ~rails_joined_) != 0 || (datagram_known() && datagram_joined_ != datagram_bytes_)) join_due_ = std::min(join_due_, now);

  if (to_group && !deaf_) {
    if (sequence_known_) sequence_ = std::max(sequence_, a.sequence);
    else if (a.state != session_state::gathering || ready_joined_) sequence_known_ = true, sequence_ = sequence_at_first_ = a.sequence;
    if (in_rate_loop_ && sequence_ > status_sequence_) status_pending_ = true;
  }
  if (have_layout_ && a.state != session_state::gathering) raise_horizon(now, deaf_ ? layout_.segments() : a.bulk_segment);
}

// The sender multicasts what does not fit into an announcement once, when the first receiver needs it.
void receiver::announced(time_point now, description& d, std::uint32_t bytes, const digest& proof, std::span<const std::byte> inside) {
  if (d.bytes == 0) d.bytes = bytes, d.proof = proof;
  if (!inside.empty()) take_description(now, d, inside);
  else if (d.due == never) d.due = now + 20ms;
}

void receiver::on(time_point now, const catalogue_chunk& c) {
  description& d = c.plan ? planned_ : catalogue_;
  if (d.taken || d.bytes == 0) return;
  if (c.total != d.bytes) return drop("inconsistent");
  if (d.content.empty()) d.content.resize(d.bytes);   // bounded by the parser
  std::copy(c.bytes.begin(), c.bytes.end(), d.content.begin() + c.offset);
  const std::uint64_t chunk = c.offset / catalogue_chunk_bytes;
  d.chunks.insert(chunk, chunk + 1);
  d.due = now + std::max<duration>(4 * grtt_, 5ms);
  if (d.chunks.count() != d.chunk_count()) return;
  const std::vector<std::byte> bytes = std::move(d.content);
  d.content.clear();
  d.chunks.clear();
  take_description(now, d, bytes);
}

void receiver::take_description(time_point now, description& d, std::span<const std::byte> bytes) {
  if (bytes.size() != d.bytes || digest_of(bytes) != d.proof) return drop(d.plan ? "bad_plan" : "bad_catalogue");
  d.due = never;
  d.taken = true;
  if (d.plan) take_plan(now, bytes);
  else take_catalogue(now, bytes);
}

void receiver::ask_for_chunks(time_point now, description& d) {
  if (now < d.due || d.taken) return;
  nack n{session_, token_, d.plan ? nack_space::plan_chunks : nack_space::catalogue_chunks, deaf_, sequence_, received_, unicast_sequence_, {}};
  std::uint64_t at = 0;
  while (n.ranges.size() < nack_ranges_max) {
    const auto gap = d.chunks.first_gap(at, d.chunk_count());
    if (!gap) break;
    n.ranges.push_back(*gap);
    at = gap->last;
  }
  if (token_.value != 0 && !n.ranges.empty()) send(n);
  d.due = now + std::max<duration>(8 * grtt_, 30ms);
}

void receiver::on(time_point now, path from, const welcome& w) {
  if (w.receiver != options_.id) return drop("for_another");
  if (w.refused == refusal::path_mtu)
    return finish(now, {errc::refused, 0, "the sender refused this host: the path does not carry its datagrams (MTU). Start mcsend with a smaller --mtu, or mend the path"});
  if (w.refused == refusal::full) return finish(now, {errc::refused, 0, "the sender refused this host: it serves as many receivers as it can"});
  if (w.refused == refusal::not_multicast)
    return finish(now, {errc::no_multicast, 0, "no multicast arrives here, and the sender requires it: check the interface, the firewall and the switch's IGMP snooping"});
  if (w.refused == refusal::no_lane)
    return finish(now, {errc::refused, 0, "the sender refused this host: it repairs by a lane only that is not offered here. Give both sides the same --repair, or leave it at auto; see mcrecv --doctor"});
  if (w.token.value == 0) return drop("malformed");
  if (token_.value == 0) {
    times_.joined = now;
    status_due_ = now + keepalive;
  }
  sender_ = from;
  token_ = w.token;
  in_rate_loop_ = w.in_rate_loop;
  rtt_ = std::chrono::microseconds(w.rtt_us);
  if ((ready_joined_ || !all_opened_) && deaf_ == deaf_joined_) join_due_ = never;   // else it answers something said before
  if (w.left_rate_loop) out_.push_back(note{log_level::warning, "this host is too slow for the group or hears no multicast: it finishes by unicast"});
  if (leaving_) send_done(now);
}

void receiver::on(time_point now, const farewell& f) {
  if (f.receiver != options_.id) return drop("for_another");
  if (all_done_ || leaving_) finish(now, outcome_);
}

void receiver::on(time_point now, const close_session& c) {
  if (all_done_ || leaving_) return finish(now, outcome_);
  const bool becomes_visible = all_opened_ && have_layout_ && (!group_commit_ || commit_heard_) &&
                               std::ranges::all_of(states_, [](const object_state& s) { return !s.wanted || s.done || s.failed || s.committing; });
  if (becomes_visible && wanted_objects_ != 0) {   // in a moment it is there, and that is what is said
    sender_closed_ = true;
    return;
  }
  if (c.code == 0 && !have_layout_) {
    withdrawn_ = finished_ = true;
    out_.push_back(receiver_finished{});
    return;
  }
  const std::string why = c.reason.empty() ? "it said no more" : printable(c.reason);
  errc code = errc::sender_lost;
  for (const errc told : {errc::source_changed, errc::incomplete})
    if (c.code == static_cast<std::uint8_t>(told)) code = told;
  finish(now, {code, 0, "the sender ended the session before everything was here (" + why + (code == errc::source_changed ? "); receive it again when it has been published again" : "); what arrived is kept for a resume")});
}

void receiver::handle_run(time_point now, path from, bool to_group, const data_run& run) {
  const data_header& h = run.head;
  if (finished_) return drop("after_end", run.count);
  if (h.session_tag != static_cast<std::uint32_t>(session_.value) || !is_sender(from.peer)) return drop("other_session", run.count);
  if (h.flags & data_header::authenticated) return drop("authenticated", run.count);
  heard_at_ = data_at_ = now;
  if (to_group) {
    group_heard_at_ = now;
    datagram_bytes_ = static_cast<std::uint16_t>(std::max<std::size_t>(datagram_bytes_, run.packet_bytes()));
    if (times_.first_data == never) times_.first_data = now;
    if (!sequence_known_) sequence_known_ = true, sequence_ = sequence_at_first_ = h.sequence;
    const std::uint64_t sequence = unwrap(h.sequence, sequence_);
    sequence_ = std::max(sequence_, sequence + run.count);
    if (from.peer != counted_from_ && now - counted_at_ > 100ms) counted_from_ = from.peer;
    if (from.peer == counted_from_) received_ += run.count, counted_at_ = now;
    tail_interval_ = 2ms;
    if ((h.flags & data_header::confirm) && in_rate_loop_) status_pending_ = confirm_pending_ = true;
  }
  if (!have_layout_) {
    // The announcement that said how large segments are was lost, or we are late: every packet until the next one counts.
    if (all_opened_ && token_.value != 0 && now >= layout_ask_due_) {
      send(query{options_.id}, control_bytes_max);
      layout_ask_due_ = now + std::max<duration>(4 * grtt_, 2ms);
    }
    return drop("before_catalogue", run.count);
  }
  for (std::uint32_t taken = 0; taken < run.count && !finished_;) {   // block by block
    const std::uint64_t first = h.segment + taken;
    if (first >= layout_.segments()) return drop("inconsistent", run.count - taken);
    const std::uint64_t left = layout_.block(layout_.block_of_segment(first)).last_segment - first;
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count - taken, left));
    on_segments(now, to_group, run.part(taken, n));
    taken += n;
  }
}

void receiver::on_segments(time_point now, bool to_group, const data_run& run) {
  const data_header& h = run.head;
  const range arrived{h.segment, h.segment + run.count};
  if (run.count > 1 && (have_.intersects(arrived.first, arrived.last) || run.payload_bytes != layout_.segment(arrived.last - 1).bytes)) {
    // Some are here already, or do not fit: one by one.
    for (std::uint32_t i = 0; i < run.count && !finished_; ++i) on_segments(now, to_group, run.part(i, 1));
    return;
  }
  const segment_extent e = layout_.segment(h.segment);
  if (run.payload_bytes != e.bytes) return drop("inconsistent", run.count);
  if (to_group && !(h.flags & data_header::repair)) {
    // The first pass goes upwards: what it jumped over is lost, or late.
    if (h.segment >= horizon_) {
      const bool gap = h.segment > horizon_;
      if (gap) raise_horizon(now, h.segment);
      horizon_ = arrived.last;
    }
  }
  if ((h.flags & data_header::unicast) && !to_group) unicast_sequence_ = std::max(unicast_sequence_, unwrap(h.sequence, unicast_sequence_) + run.count);
  if (have_.insert(arrived.first, arrived.last) == 0) {
    ++counters_.duplicates;
    if (!requested_.empty()) requested_.erase(arrived.first, arrived.last);
    return;
  }
  counters_.segments += run.count;
  counters_.bytes += run.bytes();
  times_.last_data = now;
  unanswered_since_ = never;
  if (h.flags & data_header::repair) {
    counters_.repaired_segments += run.count;
    counters_.repaired_bytes += run.bytes();
    if (!to_group) counters_.unicast_bytes += run.bytes();
    measure_response(now, arrived);
  }
  if ((h.flags & data_header::drained) && !requests_.empty() && at_tail()) repairs_drained(now, arrived.last - 1);
  if (!requested_.empty()) {
    const std::uint64_t answers = requested_.erase(arrived.first, arrived.last);
    if (answers != 0) answered_at_ = now;
    judge_answers(answers, 0);
    // Far behind: keep the pipe full instead of asking window by window.
    if (requested_.count() < ask_limit() / 2) arm_nack(now);
  }
  segments_arrived(now, run, e);
}

// --- the end --------------------------------------------------------------------------------------------------------------

void receiver::stop(time_point now, error reason) {
  if (finished_ || leaving_) return;
  if (all_done_) return finish(now, outcome_);   // everything has its end already; only FAREWELL is outstanding
  outcome_ = std::move(reason);
  leaving_ = true;
  done_interval_ = 20ms;
  if (token_.value == 0) {
    if (have_catalogue_ && outcome_.code != errc::interrupted) {
      join_due_ = now;   // the sender should know why: join, then leave
      done_due_ = now + 500ms;
      return;
    }
    return finish(now, outcome_);
  }
  send_done(now);
}

void receiver::finish(time_point now, error outcome) {
  if (finished_) return;
  finished_ = true;
  times_.finished = now;
  outcome_ = std::move(outcome);
  for (object_state& s : states_)
    if (s.wanted && !s.done && !s.failed) s.problem = outcome_;
  out_.push_back(receiver_finished{outcome_});
}

void receiver::become_deaf(time_point now, std::string why) {
  if (deaf_) return;
  if (options_.multicast == multicast_use::require) return stop(now, {errc::no_multicast, 0, "multicast is required, and " + why});
  deaf_ = true;
  out_.push_back(note{log_level::warning, "no multicast: " + why + ". Everything is fetched by unicast instead"});
  if (token_.value != 0) send_status(now);
  join_due_ = now;
  if (have_layout_) raise_horizon(now, layout_.segments());
}

// --- output -------------------------------------------------------------------------------------------------------------

void receiver::send(const message& m, std::size_t pad_to) {
  out_.push_back(send_message{{false, 0, sender_}, write_message(m, pad_to)});
}

// Every fourth announcement fills a packet, and while the sender gathers the others have the sizes below it. Later a wrong
// guess would cost the session, so more of them must have come without it.
bool receiver::datagram_known() const { return whole_packet_heard_ || announces_heard_ >= (sender_state_ == session_state::gathering ? 4u : 12u); }

void receiver::send_join(time_point now) {
  join j;
  j.session = session_;
  j.receiver = options_.id;
  j.ready = all_opened_;
  j.deaf = deaf_;
  // What is here must not be sent again. A sender that plans knows by itself who is current.
  for (const object_state& s : states_) j.asks_only = j.asks_only || (sender_plans_ ? !s.resumable.empty() : s.hold);
  j.rails = rails_;
  j.echo_us = echo_us_;
  j.held_us = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(now - echo_at_).count());
  j.buffer_bytes = options_.group_buffer_bytes != 0 ? options_.group_buffer_bytes : options_.buffer_bytes;
  j.datagram_bytes = datagram_known() ? datagram_bytes_ : std::uint16_t(0);
  j.host = options_.host.substr(0, host_bytes_max);
  for (std::uint32_t o = 0; o < catalogue_objects_ && sender_plans_ && j.ready; ++o)
    for (held_version h : states_[o].held) {
      if (j.held.size() == held_versions_max) break;
      h.object = o;
      j.held.push_back(h);
    }
  j.reads = options_.reads;
  send(j, 256);
  if (asked_to_join_ == never) asked_to_join_ = now;
  rails_joined_ = rails_;
  datagram_joined_ = j.datagram_bytes;
  ready_joined_ = j.ready;
  join_due_ = now + std::chrono::duration_cast<duration>(join_interval_ * (0.5 + rng_.uniform()));
  join_interval_ = std::min<duration>(join_interval_ * 2, 200ms);
}

void receiver::send_status(time_point now, bool at_once) {
  send(status{session_, token_, sequence_, received_, have_.count(), deaf_, at_once});
  status_sequence_ = sequence_;
  status_pending_ = confirm_pending_ = false;
  status_due_ = now + keepalive * 3 / 4 + std::chrono::duration_cast<duration>(keepalive / 4 * rng_.uniform());
}

// As long as the sender is heard: it decides, and only for all.
void receiver::send_prepared(time_point now) {
  done d;
  d.session = session_;
  d.token = token_;
  d.state = done_state::prepared;
  d.bytes = counters_.bytes_verified;
  d.repaired_bytes = counters_.repaired_bytes;
  d.nacks = counters_.nacks;
  if (token_.value != 0) send(d);
  else join_due_ = std::min(join_due_, now);
  done_interval_ = std::clamp<duration>(done_interval_ * 2, std::max<duration>(2 * grtt_, 5ms), 200ms);
  prepared_due_ = now + done_interval_;
}

void receiver::send_done(time_point now) {
  done d;
  d.session = session_;
  d.token = token_;
  d.state = leaving_ ? done_state::leaving : outcome_.code == errc::ok ? done_state::complete : done_state::failed;
  d.code = static_cast<std::uint8_t>(outcome_.code);
  for (std::size_t o = 0; o < catalogue_objects_; ++o) d.objects_complete += states_[o].done, d.objects_failed += states_[o].failed;
  d.bytes = counters_.bytes_verified;
  d.repaired_bytes = counters_.repaired_bytes;
  d.nacks = counters_.nacks;
  d.reason = outcome_.code == errc::ok ? std::string() : describe(outcome_).substr(0, reason_bytes_max);
  if (token_.value != 0) send(d);
  else join_due_ = std::min(join_due_, now);   // everything failed before WELCOME came: join first
  ++done_tries_;
  done_due_ = now + done_interval_;
  done_interval_ = std::min<duration>(done_interval_ * 2, 200ms);
}

void receiver::handle_timeout(time_point now) {
  if (finished_) return;
  if (now >= settle_due_) {
    settled_ = settling_;
    settle_due_ = never;
    if (settling_ < horizon_ && have_.first_gap(settled_, horizon_)) raise_horizon(now, horizon_);
  }
  expire_requests(now);
  if (now >= join_due_) {
    if (token_.value == 0 || (all_opened_ && !ready_joined_) || rails_ != rails_joined_ || datagram_joined_ == 0 || deaf_ != deaf_joined_ || sender_state_ == session_state::gathering) {
      send_join(now);
      deaf_joined_ = deaf_;
    } else {
      join_due_ = never;
    }
  }
  ask_for_chunks(now, catalogue_);
  ask_for_chunks(now, planned_);
  if (now >= nack_due_) send_nacks(now);
  if (now >= prepared_due_) send_prepared(now);
  if (now >= done_due_) {
    // As long as the sender is heard it is worth telling it: it would report a receiver as lost that has everything.
    const bool hopeless = done_tries_ >= (now - heard_at_ < 1s ? 32u : 8u);
    if (hopeless || (leaving_ && token_.value == 0)) {
      if (all_done_ && outcome_.code == errc::ok) out_.push_back(note{log_level::warning, "everything is here, but the sender did not confirm that it knows: its process ended, or a firewall drops what it answers by unicast"});
      return finish(now, outcome_);
    }
    send_done(now);
  }
  if (token_.value != 0 && !all_done_ && !leaving_) {
    const bool tail = in_rate_loop_ && sequence_ > status_sequence_ && data_at_ != never && now - data_at_ >= tail_interval_;
    if (tail) tail_interval_ = std::min<duration>(tail_interval_ * 2, 100ms);
    if (tail || now >= status_due_) send_status(now);
  }
  if (all_done_ && !finished_ && now >= status_due_ && token_.value != 0) send_status(now);
  if (now >= silence_check_) {
    silence_check_ = now + 100ms;
    if (now - heard_at_ > options_.sender_silence && !all_done_ && !sender_closed_)
      return finish(now, {errc::sender_lost, 0, "nothing was heard from the sender for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options_.sender_silence).count()) +
                                                    " s: its process ended or the network is down; what arrived is kept for a resume"});
    // A deaf receiver hears the sender only when it asks.
    if (deaf_ && !all_done_ && !leaving_ && (!have_layout_ || now - heard_at_ > 1s) && now - asked_sender_at_ >= 250ms) {
      asked_sender_at_ = now;
      send(query{options_.id}, control_bytes_max);
    }
    if (token_.value == 0 && asked_to_join_ != never && now - asked_to_join_ > options_.sender_silence && !leaving_)
      return finish(now, {errc::network, 0, "the sender is heard, but does not answer this host: a firewall, here, there or between, drops UDP packets to or from " +
                                                to_string(sender_.peer) + ", or its answers take another way"});
    if (unanswered_since_ != never && reads_.empty() && !all_done_ && !leaving_) {
      const duration silent = now - unanswered_since_;
      if (silent > options_.sender_silence / 4 && !deaf_) become_deaf(now, "data arrives, the repairs that were asked for do not");
      if (silent > 2 * options_.sender_silence)
        return finish(now, {errc::network, 0, "data arrives, but no repair: a firewall, here or between, drops what " + to_string(sender_.peer) +
                                                  " sends to this host by unicast; what arrived is kept for a resume"});
    }
    if (!deaf_ && !all_done_ && !leaving_) {
      const time_point since = group_heard_at_ == never ? times_.first_heard : group_heard_at_;
      if (now - since > group_silence) {
        // The sender multicasts at least ten times a second. Ask it directly how far it is; a fresh membership may heal the network.
        if (rejoins_ < 3) out_.push_back(rejoin_group{});
        ++rejoins_;
        send(query{options_.id}, control_bytes_max);
        if (group_heard_at_ == never && unicast_first_ != never) become_deaf(now, "announcements arrive by unicast only; check the switch's IGMP snooping and querier, and this host's firewall");
        else if (now - since > 4 * group_silence && heard_at_ > since + 2 * group_silence)
          become_deaf(now, "it arrived and then stopped; a switch that snoops without an IGMP querier forgets members after minutes");
      } else {
        rejoins_ = 0;
      }
      if (sender_state_ != session_state::gathering && received_ == 0 && have_layout_ && times_.first_data == never && sequence_known_ && sequence_ - sequence_at_first_ >= 32 &&
          announces_heard_ >= 4 && times_.joined != never && now - times_.joined > 400ms)
        become_deaf(now, "announcements arrive, data does not; check the path's MTU (mcsend --mtu) and rules that drop large or many packets");
    }
  }
}

time_point receiver::next_timeout() const {
  if (finished_) return never;
  time_point t = std::min({join_due_, catalogue_.due, planned_.due, nack_due_, settle_due_, done_due_, prepared_due_, silence_check_});
  if (!requests_.empty()) t = std::min(t, std::max(requests_.front().expires, answered_at_ + rto()));
  if (token_.value != 0 && !leaving_) t = std::min(t, status_due_);
  if (in_rate_loop_ && sequence_ > status_sequence_ && data_at_ != never && !all_done_ && !leaving_) t = std::min(t, data_at_ + tail_interval_);
  return t;
}

std::optional<receiver_action> receiver::poll_action(time_point now) {
  if (placements_next_ < placements_.size()) return placements_[placements_next_++];
  placements_taken();
  if (out_next_ == out_.size()) {
    out_.clear();
    out_next_ = 0;
    if (!status_pending_ || finished_ || token_.value == 0) return std::nullopt;
    send_status(now, confirm_pending_);
  }
  return std::move(out_[out_next_++]);
}

}  // namespace ddf
