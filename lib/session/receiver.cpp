#include "lib/session/receiver.hpp"

#include <algorithm>
#include <array>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/session/nack_backoff.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration keepalive = 500ms;            // a receiver is heard at least so often
static constexpr duration reorder_least = 200us;        // a gap younger than this may only be reordering
static constexpr duration group_silence = 600ms;        // no multicast for so long while the sender lives: ask how far it is
static constexpr std::uint64_t ask_window_least = 32;   // segments asked for at once, however few arrive
static constexpr std::size_t requests_max = 1 << 14;    // ranges whose answers are awaited
static constexpr std::size_t nack_datagrams_max = 8;    // per round: enough for every gap of a window

receiver::receiver(receiver_options options, session_id session, path sender, prng& rng, time_point now)
    : options_(std::move(options)), session_(session), sender_(sender), rng_(rng) {
  times_.first_heard = heard_at_ = now;
  silence_check_ = now + 100ms;
  if (options_.multicast == multicast_use::off) deaf_ = true;
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
    if (a == nullptr || !to_group || (catalogue_bytes_ != 0 && a->catalogue_digest != catalogue_digest_)) return drop("other_rail");
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
  drop("unexpected");
}

void receiver::on(time_point now, path, bool to_group, const announce& a, std::size_t datagram_bytes) {
  if (have_catalogue_ && a.catalogue_digest != catalogue_digest_) return drop("inconsistent");
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
  group_size_ = std::max<std::uint32_t>(a.group_size, 1);
  grtt_ = std::clamp<duration>(std::chrono::microseconds(a.grtt_us), 50us, 1s);
  if (a.no_multicast && !deaf_) become_deaf(now, "the sender does not multicast");

  if (!have_catalogue_) {
    if (catalogue_bytes_ == 0) {
      catalogue_bytes_ = a.catalogue_bytes;
      catalogue_digest_ = a.catalogue_digest;
    }
    if (!a.catalogue.empty()) take_catalogue(now, a.catalogue);
    else if (catalogue_due_ == never) catalogue_due_ = now + 20ms;   // the sender multicasts it when the first receiver joins
    if (finished_ || wanted_nothing_) return;
    if (join_due_ == never && token_.value == 0) {
      join_interval_ = 5ms;
      // A large group does not join in one instant.
      join_due_ = now + std::chrono::duration_cast<duration>(rng_.uniform() * std::min<duration>(group_size_ * 5us, 50ms));
    }
  }
  if (segment_bytes_ == 0 && a.segment_bytes != 0) segment_bytes_ = a.segment_bytes;
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

void receiver::on(time_point now, const catalogue_chunk& c) {
  if (have_catalogue_ || catalogue_bytes_ == 0) return;
  if (c.total != catalogue_bytes_) return drop("inconsistent");
  if (catalogue_.empty()) catalogue_.resize(catalogue_bytes_);   // bounded by the parser
  std::copy(c.bytes.begin(), c.bytes.end(), catalogue_.begin() + c.offset);
  const std::uint64_t chunk = c.offset / catalogue_chunk_bytes;
  catalogue_chunks_.insert(chunk, chunk + 1);
  catalogue_due_ = now + std::max<duration>(4 * grtt_, 5ms);
  const std::uint64_t chunks = (catalogue_bytes_ + catalogue_chunk_bytes - 1) / catalogue_chunk_bytes;
  if (catalogue_chunks_.count() == chunks) {
    const std::vector<std::byte> bytes = std::move(catalogue_);
    catalogue_.clear();
    catalogue_chunks_.clear();
    take_catalogue(now, bytes);
  }
}

void receiver::take_catalogue(time_point now, std::span<const std::byte> bytes) {
  if (bytes.size() != catalogue_bytes_ || digest_of(bytes) != catalogue_digest_) return drop("bad_catalogue");
  auto parsed = parse_catalogue(bytes);
  catalogue_due_ = never;
  if (!parsed) return finish(now, {errc::refused, 0, "the sender's catalogue is refused: " + parsed.error().what});
  objects_ = std::move(*parsed);
  have_catalogue_ = true;
  states_.resize(objects_.size());
  std::uint64_t bytes_wanted = 0;
  for (std::uint32_t o = 0; o < objects_.size(); ++o) {
    if (!options_.wanted(objects_[o])) continue;
    states_[o].wanted = true;
    ++wanted_objects_;
    bytes_wanted += objects_[o].size();
  }
  counters_.bytes_wanted = bytes_wanted;
  if (wanted_objects_ == 0) {
    wanted_nothing_ = true;
    finished_ = true;
    out_.push_back(receiver_finished{});
    return;
  }
  if (bytes_wanted > options_.bytes_max)
    return stop(now, {errc::too_large, 0, "the session holds " + std::to_string(bytes_wanted) + " bytes, more than the " + std::to_string(options_.bytes_max) +
                                              " there is room for: free space in the output folder or ask for fewer objects"});
  for (std::uint32_t o = 0; o < objects_.size(); ++o)
    if (states_[o].wanted) out_.push_back(open_object{o});
}

void receiver::handle_opened(time_point now, std::uint32_t object, result<opened_object> r) {
  if (finished_) return;
  object_state& s = states_[object];
  s.opened = true;
  if (!r) {
    fail_object(now, object, r.error());
  } else {
    s.resumable = std::move(r->resumable);
    s.current_root = r->current;
    s.hold = !s.resumable.empty() || s.current_root.has_value();
  }
  ready_if_opened(now);
}

void receiver::ready_if_opened(time_point now) {
  if (all_opened_) return;
  for (const object_state& s : states_)
    if (s.wanted && !s.opened) return;
  all_opened_ = true;
  std::uint64_t needed = 0;
  for (std::size_t o = 0; o < states_.size(); ++o) {
    const object_state& s = states_[o];
    if (!s.wanted || s.failed || s.current_root) continue;
    const std::uint64_t bytes = objects_[o].size();
    needed += bytes - std::min<std::uint64_t>(bytes, s.resumable.count() * objects_[o].block_bytes);
  }
  if (needed > options_.bytes_free)
    return stop(now, {errc::too_large, 0, "what is missing here takes " + std::to_string(needed) + " bytes, and " + std::to_string(options_.bytes_free) + " are free: make room in the output folder or ask for fewer objects"});
  join_due_ = now;
  take_layout(now);
  check_all_done(now);
}

void receiver::take_layout(time_point now) {
  if (have_layout_ || !all_opened_ || segment_bytes_ == 0) return;
  have_layout_ = true;
  layout_ = layout(objects_, segment_bytes_);
  remaining_.resize(layout_.blocks());
  blocks_.resize(layout_.blocks(), block_state::pending);
  computed_.resize(layout_.blocks());
  for (std::uint64_t b = 0; b < layout_.blocks(); ++b) {
    const block_extent e = layout_.block(b);
    remaining_[b] = static_cast<std::uint32_t>(e.last_segment - e.first_segment);
  }
  for (std::uint32_t o = 0; o < states_.size(); ++o) {
    if (states_[o].wanted && !states_[o].failed) states_[o].table.resize(digest_table::bytes(objects_[o].blocks()));
    else release(o);
  }
  if (deaf_) raise_horizon(now, layout_.segments());
}

void receiver::on(time_point now, path from, const welcome& w) {
  if (w.receiver != options_.id) return drop("for_another");
  if (w.refused == refusal::path_mtu)
    return finish(now, {errc::refused, 0, "the sender refused this host: the path does not carry its datagrams (MTU). Start mcsend with a smaller --mtu, or mend the path"});
  if (w.refused == refusal::full) return finish(now, {errc::refused, 0, "the sender refused this host: it serves as many receivers as it can"});
  if (w.refused == refusal::not_multicast)
    return finish(now, {errc::no_multicast, 0, "no multicast arrives here, and the sender requires it: check the interface, the firewall and the switch's IGMP snooping"});
  if (w.token.value == 0) return drop("malformed");
  if (token_.value == 0) {
    times_.joined = now;
    status_due_ = now + keepalive;
  }
  sender_ = from;
  token_ = w.token;
  in_rate_loop_ = w.in_rate_loop;
  rtt_ = std::chrono::microseconds(w.rtt_us);
  if (ready_joined_ || !all_opened_) join_due_ = never;
  if (w.left_rate_loop) out_.push_back(note{log_level::warning, "this host is too slow for the group or hears no multicast: it finishes by unicast"});
  if (leaving_) send_done(now);
}

void receiver::on(time_point now, const repair_notice& n) {
  // As if we had asked for these: the answer is on its way.
  const time_point until = now + rto();
  for (const range& r : n.ranges) {
    if (!have_layout_ || r.last > layout_.segments()) return drop("inconsistent");
    std::uint64_t at = r.first;
    while (const auto gap = have_.first_gap(at, r.last)) {
      if (requests_.size() >= requests_max) return drop("too_many_gaps");   // we ask for the others in our turn
      counters_.suppressed += gap->size() - requested_.count_in(gap->first, gap->last);
      requested_.insert(gap->first, gap->last);
      requests_.push_back({now, until, *gap, false});
      at = gap->last;
    }
  }
}

void receiver::on(time_point now, const farewell& f) {
  if (f.receiver != options_.id) return drop("for_another");
  if (all_done_ || leaving_) finish(now, outcome_);
}

void receiver::on(time_point now, const close_session& c) {
  if (all_done_ || leaving_) return finish(now, outcome_);
  const std::string why = c.reason.empty() ? "it said no more" : printable(c.reason);
  errc code = errc::sender_lost;
  for (const errc told : {errc::source_changed, errc::incomplete})
    if (c.code == static_cast<std::uint8_t>(told)) code = told;
  finish(now, {code, 0, "the sender ended the session before everything was here (" + why + "); what arrived is kept for a resume"});
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

// --- blocks and objects ---------------------------------------------------------------------------------------------------

void receiver::segments_arrived(time_point now, const data_run& run, const segment_extent& first) {
  object_state& s = states_[first.object];
  DDF_ASSERT(s.wanted && !s.failed && !s.done);
  if (s.started == never) s.started = now;
  if (first.table) {
    run.each_piece([&](std::size_t at, std::span<const std::byte> bytes) { std::ranges::copy(bytes, s.table.begin() + static_cast<std::ptrdiff_t>(first.offset + at)); });
    if ((remaining_[first.block] -= run.count) == 0) table_arrived(now, first.object);
    return;
  }
  placements_.push_back(place_segments{first.object, first.part, first.offset, run});
  const block_extent block = layout_.block(first.block);
  run.each_piece([&](std::size_t at, std::span<const std::byte> bytes) { digester_.pass(first.block, block.bytes, first.offset - block.offset + at, bytes); });
  if ((remaining_[first.block] -= run.count) == 0) block_whole(now, first.block);
}

void receiver::block_whole(time_point now, std::uint64_t block) {
  const block_extent e = layout_.block(block);
  const object_state& s = states_[e.object];
  blocks_[block] = block_state::checking;
  const bool read_already = s.table_known && s.resumable.contains(e.index_in_object);   // for what lay there before: one answer at a time
  if (!read_already) digest_whole(now, block);
}

void receiver::digest_whole(time_point now, std::uint64_t block) {
  leaf_digests leaves = digester_.take(block, layout_.block(block).bytes);
  if (leaves.complete()) return block_digested(now, block, leaves.block());
  out_.push_back(digest_block{block, std::move(leaves)});   // some came with a gap, or in another order
}

void receiver::handle_block_digest(time_point now, std::uint64_t block, result<digest> d) {
  if (finished_ || block >= blocks_.size()) return;
  const block_extent e = layout_.block(block);
  object_state& s = states_[e.object];
  if (e.table || s.failed || s.done) return;
  if (s.table_known && s.resumable.erase(e.index_in_object, e.index_in_object + 1) != 0) {   // about what an earlier transfer left
    if (s.resumable.empty() && s.hold) {
      s.hold = false;
      arm_nack(now);
    }
    if (remaining_[block] == 0) return digest_whole(now, block);   // meanwhile all of it has come
    blocks_[block] = block_state::pending;
    // Unreadable, or written to since it was read, perhaps with a damaged segment: the rest of it is fetched, and all of it checked.
    if (!d || remaining_[block] != static_cast<std::uint32_t>(e.last_segment - e.first_segment)) return;
    reader r(std::span(s.table).subspan((e.index_in_object + 1) * digest::size, digest::size));
    digest expected;
    std::ranges::copy(r.bytes(digest::size), expected.bytes.begin());
    if (*d == expected) {   // it counts only when it is exactly what the sender has
      have_.insert(e.first_segment, e.last_segment);
      requested_.erase(e.first_segment, e.last_segment);
      remaining_[block] = 0;
      counters_.resumed_bytes += e.bytes;
      computed_[block] = *d;
      blocks_[block] = block_state::verified;
      counters_.bytes_verified += e.bytes;
      ++s.verified;
    }
    return check_object(now, e.object);
  }
  if (blocks_[block] != block_state::checking || remaining_[block] != 0) return;
  if (!d) return fail_object(now, e.object, d.error());
  block_digested(now, block, *d);
}

void receiver::block_digested(time_point now, std::uint64_t block, const digest& d) {
  computed_[block] = d;
  blocks_[block] = block_state::digested;
  check_block(now, block);
}

void receiver::check_block(time_point now, std::uint64_t block) {
  const block_extent e = layout_.block(block);
  object_state& s = states_[e.object];
  if (s.failed || s.done || !s.table_known || blocks_[block] != block_state::digested) return;
  const auto expected = std::span(s.table).subspan((e.index_in_object + 1) * digest::size, digest::size);
  if (!std::ranges::equal(expected, computed_[block].bytes)) return block_bad(now, block);
  blocks_[block] = block_state::verified;
  counters_.bytes_verified += e.bytes;
  ++s.verified;
  check_object(now, e.object);
}

void receiver::block_bad(time_point now, std::uint64_t block) {
  const block_extent e = layout_.block(block);
  ++counters_.bad_blocks;
  blocks_[block] = block_state::pending;
  remaining_[block] = static_cast<std::uint32_t>(e.last_segment - e.first_segment);
  have_.erase(e.first_segment, e.last_segment);
  requested_.erase(e.first_segment, e.last_segment);
  if (counters_.bad_blocks > 16 + layout_.blocks()) return fail_object(now, e.object, {errc::integrity, 0, "blocks of '" + printable(objects_[e.object].name) +
      "' keep failing their digests: the source changed while it was sent, or memory or network hardware of a host is faulty"});
  raise_horizon(now, horizon_);   // perhaps nothing more will come to do it
}

void receiver::table_arrived(time_point now, std::uint32_t object) {
  object_state& s = states_[object];
  const object_extent& extent = layout_.object(object);
  const manifest& m = objects_[object];
  std::vector<digest> rows(m.blocks());
  for (std::size_t i = 0; i < rows.size(); ++i) std::copy_n(s.table.begin() + static_cast<std::ptrdiff_t>((i + 1) * digest::size), digest::size, rows[i].bytes.begin());
  std::copy_n(s.table.begin(), digest::size, s.root.bytes.begin());
  if (root_digest(m.name, m.size(), rows) != s.root) return block_bad(now, extent.table_block);   // asked for again, as a whole
  blocks_[extent.table_block] = block_state::verified;
  s.table_known = true;
  if (s.current_root && *s.current_root == s.root) {   // this very version is here already
    s.current = s.done = true;
    s.ended = now;
    counters_.resumed_bytes += m.size();
    counters_.bytes_verified += m.size();
    release(object);
    out_.push_back(discard_object{object});
    ++ended_objects_;
    return check_all_done(now);
  }
  s.current_root.reset();
  for (std::uint64_t b = extent.first_block; b < extent.table_block && s.table_known; ++b) check_block(now, b);
  if (s.failed || s.done) return;
  s.resumable.erase(rows.size(), ~std::uint64_t(0));   // a record of another version may name more
  const auto hints = s.resumable.to_vector();
  for (const range& r : hints)
    for (std::uint64_t row = r.first; row < r.last; ++row) {
      const std::uint64_t block = extent.first_block + row;
      const bool untouched = blocks_[block] == block_state::pending &&
                             remaining_[block] == static_cast<std::uint32_t>(layout_.block(block).last_segment - layout_.block(block).first_segment);
      if (untouched) {
        blocks_[block] = block_state::checking;
        out_.push_back(digest_block{block, leaf_digests(layout_.block(block).bytes)});
      } else {
        s.resumable.erase(row, row + 1);
      }
    }
  if (s.resumable.empty()) s.hold = false;
  arm_nack(now);
  check_object(now, object);
}

void receiver::check_object(time_point now, std::uint32_t object) {
  object_state& s = states_[object];
  const object_extent& e = layout_.object(object);
  if (!s.table_known || s.failed || s.done || s.committing || s.verified != e.table_block - e.first_block) return;
  s.committing = true;
  out_.push_back(commit_object{object});
  times_.whole = now;
}

void receiver::handle_committed(time_point now, std::uint32_t object, result<void> r) {
  object_state& s = states_[object];
  if (finished_ || s.done || s.failed) return;
  if (!r) return fail_object(now, object, r.error());
  s.done = true;
  s.ended = now;
  ++ended_objects_;
  check_all_done(now);
}

void receiver::handle_store_error(time_point now, std::uint32_t object, error e) { fail_object(now, object, std::move(e)); }

void receiver::fail_object(time_point now, std::uint32_t object, error e) {
  object_state& s = states_[object];
  if (s.failed || s.done) return;
  s.failed = true;
  s.problem = std::move(e);
  s.ended = now;
  release(object);
  out_.push_back(note{log_level::error, "'" + printable(objects_[object].name) + "': " + describe(s.problem)});
  ++ended_objects_;
  check_all_done(now);
}

void receiver::release(std::uint32_t object) {
  if (!have_layout_) return;
  const object_extent& e = layout_.object(object);
  have_.insert(e.first_segment, e.last_segment);
  requested_.erase(e.first_segment, e.last_segment);
}

void receiver::check_all_done(time_point now) {
  if (all_done_ || leaving_ || !all_opened_ || ended_objects_ < wanted_objects_) return;
  all_done_ = true;
  std::uint32_t failed = 0;
  error first;
  for (const object_state& s : states_)
    if (s.failed && ++failed == 1) first = s.problem;
  if (failed != 0) {
    outcome_ = first;
    outcome_.what = std::to_string(failed) + " of " + std::to_string(wanted_objects_) + " objects failed; the first: " + first.what;
  }
  done_interval_ = std::max<duration>(2 * grtt_, 5ms);
  send_done(now);
}

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

range_set receiver::complete_blocks(std::uint32_t object) const {
  range_set rows;
  if (!have_layout_) return object < states_.size() ? states_[object].resumable : rows;
  const object_extent& e = layout_.object(object);
  for (std::uint64_t b = e.first_block; b < e.table_block; ++b)
    if (blocks_[b] == block_state::digested || blocks_[b] == block_state::verified) rows.insert(b - e.first_block, b - e.first_block + 1);
  for (const auto& [first, last] : states_[object].resumable) rows.insert(first, last);
  return rows;
}

digest_table receiver::digests(std::uint32_t object) const {
  digest_table t;
  const object_state& s = states_[object];
  t.root = s.root;
  if (!have_layout_) return t;
  const object_extent& e = layout_.object(object);
  t.blocks.assign(computed_.begin() + static_cast<std::ptrdiff_t>(e.first_block), computed_.begin() + static_cast<std::ptrdiff_t>(e.table_block));
  return t;
}

std::vector<object_report> receiver::reports() const {
  std::vector<object_report> out;
  for (std::size_t o = 0; o < states_.size(); ++o) {
    const object_state& s = states_[o];
    if (!s.wanted) continue;
    object_report r;
    r.name = objects_[o].name;
    r.version = objects_[o].version.value;
    r.bytes = objects_[o].size();
    r.encoding = s.current ? "none" : "whole";
    if (s.started != never && s.ended != never) r.seconds = seconds(s.ended - s.started);
    if (!s.done) r.problem = s.problem.code == errc::ok ? error{errc::incomplete, 0, "not complete"} : s.problem;
    out.push_back(std::move(r));
  }
  return out;
}

// --- asking for what is missing ---------------------------------------------------------------------------------------------

duration receiver::rto() const {
  // While the first pass goes on there is no hurry, and an answer may queue behind it.
  const duration base = !at_tail() || response_ == duration(0) || group_size_ > 16 ? std::max<duration>({4 * grtt_, 4 * rtt_, 4 * response_, 20ms}) : std::max<duration>({2 * response_, 2 * rtt_, 4ms});
  return std::min<duration>(base * (1 << std::min(retries_, 6u)), 1s);
}

// Of what was asked for once only: an answer to the first of two questions looks quick to the second (Karn).
void receiver::measure_response(time_point now, const range& arrived) {
  std::array<const request*, 16> answered;
  std::size_t n = 0;
  for (std::size_t i = 0; i < std::min(requests_.size(), answered.size()); ++i)
    if (const request& r = requests_[i]; r.first_time && arrived.first <= r.segments.first && r.segments.first < arrived.last) answered[n++] = &r;
  std::ranges::sort(answered.begin(), answered.begin() + static_cast<std::ptrdiff_t>(n), {}, [](const request* r) { return r->segments.first; });   // as they came
  for (std::size_t i = 0; i < n; ++i) {
    const duration sample = now - answered[i]->sent;
    if (response_ == duration(0) || !at_tail()) response_ = sample;
    else response_ = sample < response_ ? (response_ + 3 * sample) / 4 : (3 * response_ + sample) / 4;   // the first pass made it long
  }
}

// The sender has answered all it knew of when this packet left: what we asked for a response earlier and is not here was lost
// on the way, there or back.
void receiver::repairs_drained(time_point now, std::uint64_t answer) {
  // When the packet answers one of our questions the sender knew of that, and of all earlier ones.
  const auto asked = std::ranges::find_if(requests_.rbegin(), requests_.rend(), [&](const request& r) { return r.segments.first <= answer && answer < r.segments.last; });
  const time_point known = asked != requests_.rend() ? asked->sent : now - std::max<duration>(response_ / 2, 300us);
  bool lost = false;
  while (!requests_.empty() && requests_.front().sent <= known) {
    const range r = requests_.front().segments;
    requests_.pop_front();
    const std::uint64_t missing = requested_.erase(r.first, r.last);
    lost = missing != 0 || lost;
    judge_answers(0, missing);
  }
  if (lost) arm_nack(now);
}

// A slow port drops most of a large answer: what came of it is what may be asked for at once. Nothing else paces the answers
// to one receiver, and what is dropped is charged to it.
void receiver::judge_answers(std::uint64_t arrived, std::uint64_t missing) {
  answered_ += arrived;
  unanswered_ += missing;
  const std::uint64_t asked = answered_ + unanswered_;
  if (asked < ask_window_) return;
  ask_window_ = unanswered_ > asked / 4 ? std::max<std::uint64_t>(answered_ * ask_window_ / asked, ask_window_least)
                                        : std::min<std::uint64_t>(ask_window_ + ask_window_ / 4, ask_window_most);
  answered_ = unanswered_ = 0;
}

std::uint64_t receiver::ask_limit() const {
  const std::uint64_t packet = (segment_bytes_ == 0 ? 1472 : segment_bytes_) * 2 + 1024;   // what a socket is charged, generously
  return std::clamp<std::uint64_t>(options_.buffer_bytes / 2 / packet, 8, ask_window_);
}

void receiver::raise_horizon(time_point now, std::uint64_t horizon) {
  if (horizon > horizon_) horizon_ = horizon;
  if (settling_ < horizon_ && settle_due_ == never) {
    settling_ = horizon_;
    settle_due_ = now + std::max<duration>(reorder_least, grtt_ / 4);
  }
  if (have_.first_gap(0, horizon_)) arm_nack(now);
}

void receiver::arm_nack(time_point now) {
  if (nack_due_ != never || all_done_ || leaving_) return;
  // While the first pass goes on nobody waits for repairs: gather many gaps in one NACK. Then be quick.
  const duration most = deaf_ ? duration(0) : group_size_ > 16 ? std::max<duration>(4 * grtt_, at_tail() ? 1ms : 4ms) : !at_tail() ? std::max<duration>(grtt_ / 2, 3ms) : group_size_ <= 1 ? duration(0) : std::min<duration>(grtt_ / 4, 500us);
  const duration settle = settle_due_ == never ? duration(0) : std::max<duration>(settle_due_ - now, duration(0));
  nack_due_ = now + settle + nack_backoff(rng_.uniform(), most, group_size_);
}

bool receiver::askable(std::uint64_t segment) const {
  const std::uint32_t o = layout_.object_of_segment(segment);
  return !states_[o].hold || segment >= layout_.object(o).table_segment;
}

void receiver::expire_requests(time_point now) {
  bool expired = false;
  if (now < answered_at_ + rto()) return;   // answers still come: the others may queue behind them, here or on the way
  while (!requests_.empty() && requests_.front().expires <= now) {
    const range r = requests_.front().segments;
    requests_.pop_front();
    if (const std::uint64_t missing = requested_.erase(r.first, r.last); missing != 0) {
      expired = true;
      judge_answers(0, missing);
    }
  }
  if (expired) {
    if (counters_.segments == progress_mark_) retries_ = std::min(retries_ + 1, 6u);
    else retries_ = 0;
    progress_mark_ = counters_.segments;
    arm_nack(now);
  }
}

void receiver::send_nacks(time_point now) {
  nack_due_ = never;
  if (token_.value == 0 || !have_layout_ || all_done_ || leaving_) return;
  if (options_.multicast == multicast_use::require && group_heard_at_ == never) return;   // nothing is taken by unicast before the group was heard
  const std::uint64_t limit = ask_limit();
  const std::uint64_t end = deaf_ ? layout_.segments() : settled_;
  const time_point until = now + rto();
  nack n;
  n.session = session_;
  n.token = token_;
  n.unicast = deaf_;
  n.sequence = sequence_;
  n.received = received_;
  n.unicast_sequence = unicast_sequence_;
  std::uint64_t at = 0, asked = requested_.count();
  std::size_t datagrams = 0;
  bool any = false;
  const auto flush = [&] {
    if (n.ranges.empty()) return;
    ++counters_.nacks;
    counters_.nack_ranges += n.ranges.size();
    send(n);
    n.ranges.clear();
    ++datagrams;
    any = true;
  };
  while (asked < limit && datagrams < nack_datagrams_max) {
    const auto gap = have_.first_gap(at, end);
    if (!gap) break;
    range r = *gap;
    at = r.last;
    if (!askable(r.first)) {   // waits for its digest table: go on there
      const std::uint64_t table = layout_.object(layout_.object_of_segment(r.first)).table_segment;
      at = table;
      continue;
    }
    // A gap may reach from an object that may be asked for into one that waits.
    const std::uint32_t o = layout_.object_of_segment(r.first);
    if (r.last > layout_.object(o).last_segment) at = r.last = layout_.object(o).last_segment;
    while (const auto free = requested_.first_gap(r.first, r.last)) {
      range ask = *free;
      ask.last = std::min(ask.last, ask.first + std::min<std::uint64_t>(limit - asked, 0xffff'ffff));
      if (ask.first >= ask.last) break;
      n.ranges.push_back(ask);
      requested_.insert(ask.first, ask.last);
      requests_.push_back({now, until, ask, ask.first >= asked_up_to_});
      asked_up_to_ = std::max(asked_up_to_, ask.last);
      asked += ask.size();
      r.first = ask.last;
      if (n.ranges.size() == nack_ranges_max) flush();
      if (asked >= limit || datagrams >= nack_datagrams_max) break;
    }
  }
  flush();
  if (any) {
    if (unanswered_since_ == never) unanswered_since_ = now;
    status_due_ = now + keepalive;   // a NACK says as much as a STATUS
    status_sequence_ = sequence_;
    status_pending_ = confirm_pending_ = false;
  }
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
  for (const object_state& s : states_) j.asks_only = j.asks_only || s.hold;   // what is here must not be sent again
  j.rails = rails_;
  j.echo_us = echo_us_;
  j.held_us = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(now - echo_at_).count());
  j.buffer_bytes = options_.buffer_bytes;
  j.datagram_bytes = datagram_known() ? datagram_bytes_ : std::uint16_t(0);
  j.host = options_.host.substr(0, host_bytes_max);
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

void receiver::send_done(time_point now) {
  done d;
  d.session = session_;
  d.token = token_;
  d.state = leaving_ ? done_state::leaving : outcome_.code == errc::ok ? done_state::complete : done_state::failed;
  d.code = static_cast<std::uint8_t>(outcome_.code);
  for (const object_state& s : states_) d.objects_complete += s.done, d.objects_failed += s.failed;
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
  if (now >= catalogue_due_ && !have_catalogue_) {
    const std::uint64_t chunks = (catalogue_bytes_ + catalogue_chunk_bytes - 1) / catalogue_chunk_bytes;
    nack n{session_, token_, nack_space::catalogue_chunks, deaf_, sequence_, received_, unicast_sequence_, {}};
    std::uint64_t at = 0;
    while (n.ranges.size() < nack_ranges_max) {
      const auto gap = catalogue_chunks_.first_gap(at, chunks);
      if (!gap) break;
      n.ranges.push_back(*gap);
      at = gap->last;
    }
    if (token_.value != 0 && !n.ranges.empty()) send(n);
    catalogue_due_ = now + std::max<duration>(8 * grtt_, 30ms);
  }
  if (now >= nack_due_) send_nacks(now);
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
    if (now - heard_at_ > options_.sender_silence && !all_done_)
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
    if (unanswered_since_ != never && !all_done_ && !leaving_) {
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
  time_point t = std::min({join_due_, catalogue_due_, nack_due_, settle_due_, done_due_, silence_check_});
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
