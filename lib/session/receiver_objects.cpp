// The receiver's objects: catalogue, room for them, blocks as they fill and are proven, and the end of each.
#include "lib/session/receiver.hpp"

#include <algorithm>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/cursor.hpp"
#include "lib/wire/plan_codec.hpp"

namespace ddf {

using namespace std::chrono_literals;

void receiver::take_catalogue(time_point now, std::span<const std::byte> bytes) {
  auto parsed = parse_catalogue(bytes);
  if (!parsed) return finish(now, {errc::refused, 0, "the sender's catalogue is refused: " + parsed.error().what});
  objects_ = std::move(*parsed);
  have_catalogue_ = true;
  catalogue_objects_ = objects_.size();
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

void receiver::take_plan(time_point now, std::span<const std::byte> bytes) {
  auto parsed = parse_plan(bytes, objects_);
  if (!parsed) return finish(now, {errc::refused, 0, "the sender's plan is refused: " + parsed.error().what});
  plan_ = std::move(*parsed);
  take_layout(now);
}

void receiver::handle_opened(time_point now, std::uint32_t object, result<opened_object> r) {
  if (finished_) return;
  object_state& s = states_[object];
  if (is_delta(object)) {
    s.opened = true;
    if (!r) handle_patched(now, object, tl::unexpected(r.error()));
    return;
  }
  s.opened = true;
  if (!r) {
    fail_object(now, object, r.error());
  } else {
    s.resumable = std::move(r->resumable);
    s.current_root = r->current;
    s.held = std::move(r->held);
    for (held_version& h : s.held) h.object = object;
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
  if (needed > options_.bytes_free) return no_room(now, needed);
  join_due_ = now;
  take_layout(now);
  check_all_done(now);
}

void receiver::take_layout(time_point now) {
  if (have_layout_ || !all_opened_ || segment_bytes_ == 0 || (planned_.bytes != 0 && !planned_.taken)) return;
  have_layout_ = true;
  for (const delta_stream& d : plan_.deltas) objects_.push_back(delta_manifest(d, objects_[d.object]));
  states_.resize(objects_.size());
  layout_ = layout(objects_, segment_bytes_, catalogue_objects_);
  remaining_.resize(layout_.blocks());
  blocks_.resize(layout_.blocks(), block_state::pending);
  computed_.resize(layout_.blocks());
  for (std::uint64_t b = 0; b < layout_.blocks(); ++b) {
    const block_extent e = layout_.block(b);
    remaining_[b] = static_cast<std::uint32_t>(e.last_segment - e.first_segment);
  }
  choose_ways(now);
  for (std::uint32_t o = 0; o < states_.size(); ++o) {
    if (states_[o].wanted && !states_[o].failed) states_[o].table.resize(digest_table::bytes(objects_[o].blocks()));
    else release(o);
  }
  if (deaf_) raise_horizon(now, layout_.segments());
  check_all_done(now);
}

// By the rule that the sender follows too.
void receiver::choose_ways(time_point now) {
  std::uint64_t needed = 0;
  for (std::uint32_t o = 0; o < catalogue_objects_; ++o) {
    object_state& s = states_[o];
    if (!s.wanted || s.failed || plan_.root_of(o) == nullptr) continue;
    if (s.current_root == *plan_.root_of(o)) {
      become_current(now, o);
      continue;
    }
    if (objects_[o].consistent == consistency::immutable && s.current_root) {
      fail_object(now, o, {errc::refused, 0, "'" + printable(objects_[o].name) + "' is immutable, and other bytes of that name are here: remove them, or publish under another name"});
      continue;
    }
    s.current_root.reset();
    s.hold = !s.resumable.empty();
    needed += objects_[o].size() - std::min<std::uint64_t>(objects_[o].size(), s.resumable.count() * objects_[o].block_bytes);
    const delivery w = delivery_for(plan_, o, s.held);
    if (w.by != delivery::kind::delta) continue;   // a kept version of that very root would be another name's business: it is fetched
    const delta_stream& d = plan_.deltas[w.delta];
    const auto delta = static_cast<std::uint32_t>(catalogue_objects_ + w.delta);
    s.patching = true;
    s.started = now;
    s.hold = false;
    s.resumable.clear();   // the delta makes them faster than they can be proven
    release(o);
    for (const range& r : d.whole) {
      const range segments = layout_.segments_of_rows(o, r.first, r.last);
      have_.erase(segments.first, segments.last);
    }
    states_[delta].wanted = true;
    counters_.bytes_wanted += d.bytes;
    needed += d.bytes;
    out_.push_back(open_object{delta});
  }
  if (needed > options_.bytes_free) return no_room(now, needed);   // that another version is here is known only now
}

void receiver::no_room(time_point now, std::uint64_t needed) {
  stop(now, {errc::too_large, 0, "what is missing here takes " + std::to_string(needed) + " bytes, and " + std::to_string(options_.bytes_free) + " are free: make room in the output folder or ask for fewer objects"});
}

void receiver::become_current(time_point now, std::uint32_t object) {
  object_state& s = states_[object];
  s.current = s.done = true;
  s.ended = now;
  counters_.resumed_bytes += objects_[object].size();
  counters_.bytes_verified += objects_[object].size();
  release(object);
  out_.push_back(discard_object{object});
  ++ended_objects_;
}

void receiver::handle_patched(time_point now, std::uint32_t delta, result<patch> r) {
  object_state& ds = states_[delta];
  if (finished_ || !is_delta(delta) || ds.done) return;
  ds.done = true;
  ds.ended = now;
  release(delta);
  const delta_stream& d = this->delta(delta);
  object_state& s = states_[d.object];
  if (s.failed || s.done || !s.patching) return;
  const manifest& m = objects_[d.object];
  if (r && (r->table.blocks.size() != m.blocks() || r->table.root != *plan_.root_of(d.object) || root_digest(m.name, m.size(), r->table.blocks) != r->table.root))
    r = fail(errc::integrity, "the delta does not make the version that was announced");
  s.patching = false;
  if (!r) {
    out_.push_back(note{log_level::warning, "'" + printable(m.name) + "': the delta from version " + std::to_string(d.base_version.value) + " could not be used (" + describe(r.error()) + "); the whole is fetched instead"});
    ++counters_.deltas_failed;
    return need_whole(now, d.object);
  }
  const object_extent& e = layout_.object(d.object);
  s.patched = true;
  s.root = r->table.root;
  std::copy(s.root.bytes.begin(), s.root.bytes.end(), s.table.begin());
  for (std::size_t i = 0; i < r->table.blocks.size(); ++i) std::ranges::copy(r->table.blocks[i].bytes, s.table.begin() + static_cast<std::ptrdiff_t>((i + 1) * digest::size));
  s.table_known = true;
  blocks_[e.table_block] = block_state::verified;
  remaining_[e.table_block] = 0;
  r->rows.erase(m.blocks(), ~std::uint64_t(0));
  for (const auto& [first, last] : r->rows)
    for (std::uint64_t row = first; row < last; ++row) {
      const std::uint64_t block = e.first_block + row;
      const block_extent b = layout_.block(block);
      if (remaining_[block] != static_cast<std::uint32_t>(b.last_segment - b.first_segment)) continue;   // it came whole, or comes
      remaining_[block] = 0;
      blocks_[block] = block_state::verified;
      computed_[block] = r->table.blocks[row];
      have_.insert(b.first_segment, b.last_segment);
      counters_.bytes_verified += b.bytes;
      counters_.patched_bytes += b.bytes;
      ++s.verified;
    }
  need_whole(now, d.object);
  for (std::uint64_t b = e.first_block; b < e.table_block; ++b) check_block(now, b);
  check_object(now, d.object);
}

// Of an object that was left to a delta: what is not here is asked for.
void receiver::need_whole(time_point now, std::uint32_t object) {
  const object_extent& e = layout_.object(object);
  for (std::uint64_t b = e.first_block; b <= e.table_block; ++b) {
    const block_extent extent = layout_.block(b);
    if (remaining_[b] == static_cast<std::uint32_t>(extent.last_segment - extent.first_segment)) have_.erase(extent.first_segment, extent.last_segment);   // nothing of it has come
  }
  raise_horizon(now, horizon_);
}

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
  if (const block_extent e = layout_.block(block); is_delta(e.object) && !states_[e.object].table_known) out_.push_back(delta_arrived{e.object, e.offset, e.bytes});
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
    become_current(now, object);
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
  if (is_delta(object)) {
    out_.push_back(apply_delta{object, delta(object).object});
    return;
  }
  times_.whole = now;
  if (!group_commit_ || commit_heard_) {
    out_.push_back(commit_object{object});
    return;
  }
  s.prepared = true;
  ++prepared_objects_;
  if (prepared_objects_ + ended_objects_ == wanted_objects_) send_prepared(now);
}

void receiver::on(time_point now, const commit_group&) {
  if (commit_heard_ || !group_commit_) return;
  if (prepared_objects_ + ended_objects_ < wanted_objects_) return;   // not for us: the rest will be here, and we will ask
  commit_heard_ = true;
  prepared_due_ = never;
  done_interval_ = duration(0);
  for (std::uint32_t o = 0; o < catalogue_objects_; ++o)
    if (states_[o].prepared && !states_[o].failed && !states_[o].done) out_.push_back(commit_object{o});
  check_all_done(now);
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
  if (is_delta(object)) return handle_patched(now, object, tl::unexpected(std::move(e)));   // the whole will do
  s.failed = true;
  s.problem = std::move(e);
  if (group_commit_ && !commit_heard_) {   // together or not at all
    prepared_due_ = never;
    for (std::uint32_t o = 0; o < catalogue_objects_; ++o)
      if (object_state& other = states_[o]; other.wanted && !other.failed && !other.done) {
        if (other.prepared) --prepared_objects_;
        other.prepared = false;
        fail_object(now, o, {errc::incomplete, 0, "it was to be switched together with '" + printable(objects_[object].name) + "', which failed"});
      }
  }
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
  if (sender_closed_) return finish(now, outcome_);   // nobody is left to be told
  done_interval_ = std::max<duration>(2 * grtt_, 5ms);
  send_done(now);
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
    if (!s.wanted || is_delta(static_cast<std::uint32_t>(o))) continue;
    object_report r;
    r.name = objects_[o].name;
    r.version = objects_[o].version.value;
    r.bytes = objects_[o].size();
    r.encoding = s.current ? "none" : s.patched ? "delta" : "whole";
    if (s.started != never && s.ended != never) r.seconds = seconds(s.ended - s.started);
    if (!s.done) r.problem = s.problem.code == errc::ok ? error{errc::incomplete, 0, "not complete"} : s.problem;
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace ddf
