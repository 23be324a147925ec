#include "lib/runtime/reception.hpp"

#include <algorithm>

#include "codecs/block_digest.hpp"
#include "lib/model/object_name.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr std::size_t gathered_max = 1000;              // pieces of one pwritev; the system takes 1,024
static constexpr duration checkpoint_interval = 1s;
static constexpr std::uint64_t checkpoint_bytes = 64 << 20;    // and not oftener than this much has come

reception::reception(subscriber_shell& shell, session_id session, path sender, receiver_options options)
    : shell_(shell), rng_(random_number()), engine_(std::move(options), session, sender, rng_, now()), timer_(shell.io, [this] {
        if (ended_) return;
        const time_point t = now();
        engine_.handle_timeout(t);
        drain(t);
        flush();
        drain(t);
        arm();
      }) {
  created_ = now();
  gathered_.reserve(gathered_max);
}

reception::~reception() = default;

void reception::begin(std::function<void(reception&)> on_end) {
  on_end_ = std::move(on_end);
  begun_ = true;
}

void reception::stop(error reason) {
  if (ended_) return;
  const time_point t = now();
  engine_.stop(t, std::move(reason));
  drain(t);
  arm();
}

void reception::drain(time_point t) {
  while (!ended_) {
    for (const place_segments& p : engine_.placements()) place(p);
    engine_.placements_taken();
    auto a = engine_.poll_action(t);
    if (!a) break;
    perform(t, *a);
  }
}

void reception::arm() {
  if (ended_) return;
  const time_point t = now();
  if (t >= checkpoint_due_) checkpoint(t);
  timer_.at(engine_.next_timeout());
}

void reception::perform(time_point t, receiver_action& a) {
  if (auto* p = std::get_if<place_segments>(&a)) {
    place(*p);
  } else if (auto* m = std::get_if<send_message>(&a)) {
    shell_.send(*m);
  } else if (auto* d = std::get_if<digest_block>(&a)) {
    digest_rest(t, *d);
  } else if (auto* o = std::get_if<open_object>(&a)) {
    open(t, o->object);
  } else if (auto* c = std::get_if<commit_object>(&a)) {
    commit(c->object);
  } else if (auto* x = std::get_if<discard_object>(&a)) {
    slot& s = slots_[x->object];
    if (s.sink) s.sink->discard();
    s.sink.reset();
    const manifest& described = engine_.objects()[x->object];
    if (shell_.tree != nullptr) s.path = shell_.tree->final_path(described);
    shell_.log(log_level::info, "'" + printable(described.name) + "' is here already in this version");
    // Whoever waits for this version has it: tell them as if it had just come.
    asio::post(shell_.commits, [self = shared_from_this(), m = described, path = s.path] { self->shell_.deliver(self->present(m, path)); });
  } else if (auto* y = std::get_if<apply_delta>(&a)) {
    flush();
    if (const auto& applier = slots_[y->delta].applier) applier->complete();
  } else if (auto* h = std::get_if<delta_arrived>(&a)) {
    flush();
    if (const auto& applier = slots_[h->delta].applier) applier->arrived(h->offset, h->bytes);
  } else if (auto* r = std::get_if<read_segments>(&a)) {
    read(*r);
  } else if (std::holds_alternative<rejoin_group>(a)) {
    shell_.rejoin();
  } else if (auto* n = std::get_if<note>(&a)) {
    shell_.log(n->level, n->text);
    if (n->level == log_level::warning && warnings_.size() < 100) warnings_.push_back(n->text);
  } else if (auto* f = std::get_if<receiver_finished>(&a)) {
    end(f->outcome);
  }
}

std::vector<held_version> reception::held(const manifest& m) const { return shell_.tree != nullptr ? shell_.tree->held(m) : shell_.memory.held(m); }

void reception::open(time_point t, std::uint32_t object) {
  slots_.resize(engine_.objects().size());
  const manifest& m = engine_.objects()[object];
  opened_object opened;
  if (engine_.is_delta(object)) {
    auto file = scratch_file::make(shell_.tree == nullptr ? std::string() : shell_.tree->directory());
    if (!file) return engine_.handle_opened(t, object, tl::unexpected(file.error()));
    slots_[object].sink = std::make_shared<scratch_sink>(std::move(*file));
    begin_apply(object);
    return engine_.handle_opened(t, object, std::move(opened));
  }
  opened.held = held(m);
  // Of an immutable object whatever is here counts, also when its size or its mode is another.
  if (!opened.held.empty() && (opened.held.front().current || m.consistent == consistency::immutable)) opened.current = opened.held.front().root;
  if (!m.base.empty()) {   // versions of another object serve as bases, but are no version of this one
    manifest other = m;
    other.name = m.base;
    for (held_version h : held(other)) {
      h.current = false;
      opened.held.push_back(h);
    }
  }
  if (shell_.tree == nullptr) {
    auto sink = memory_sink::open(m);
    if (!sink) return engine_.handle_opened(t, object, tl::unexpected(sink.error()));
    slots_[object].sink = std::move(*sink);
  } else {
    auto sink = shell_.tree->open_object(m);
    if (!sink) return engine_.handle_opened(t, object, tl::unexpected(sink.error()));
    slots_[object].sink = std::move(sink->sink);
    opened.resumable = std::move(sink->resumable);
  }
  engine_.handle_opened(t, object, std::move(opened));
}

// Beside the loop, while the delta still arrives.
void reception::begin_apply(std::uint32_t delta) {
  const auto stream = std::dynamic_pointer_cast<scratch_sink>(slots_[delta].sink);
  const delta_stream& d = engine_.delta(delta);
  delta_applier::task t;
  t.stream = stream->file();
  t.stream_bytes = d.bytes;
  t.target = engine_.objects()[d.object];
  t.target_root = *engine_.plan().root_of(d.object);
  t.sink = slots_[d.object].sink;
  t.open_base = [&shell = shell_, m = t.target, root = d.base_root] {
    const auto open = [&](const std::string& name) { return shell.tree != nullptr ? shell.tree->open_base(name, root) : shell.memory.base(name, root); };
    auto base = open(m.name);
    return base || m.base.empty() ? base : open(m.base);
  };
  slots_[delta].applier = std::make_unique<delta_applier>(std::move(t), [self = weak_from_this(), io = &shell_.io, delta](result<patch> made, double took) {
    asio::post(*io, [self, delta, took, made = std::move(made)]() mutable {
      const auto r = self.lock();
      if (!r || r->ended_) return;
      r->apply_seconds_ += took;
      const time_point at = now();
      r->slots_[delta].applier.reset();
      r->engine_.handle_patched(at, delta, std::move(made));
      r->slots_[delta].sink.reset();
      r->drain(at);
      r->arm();
    });
  });
}

void reception::read(const read_segments& r) {
  // Never at once: the engine is asked for actions just now.
  asio::post(shell_.io, [self = weak_from_this(), r] {
    const auto alive = self.lock();
    if (!alive || alive->ended_) return;
    alive->shell_.reader.read(alive->engine_.session(), r, alive->shell_.local_address(r.rail), [self, id = r.id](result<std::span<const std::byte>> segments) {
      const auto reading = self.lock();
      if (!reading || reading->ended_) return;
      const time_point t = now();
      reading->engine_.handle_read(t, id, std::move(segments));
      reading->drain(t);
      reading->flush();   // before the memory is used again
      reading->drain(t);
      reading->arm();
    });
  });
}

// A version that is complete here, for whoever asked to be told. On the commit thread.
std::shared_ptr<const object> reception::present(const manifest& m, const std::string& path) const {
  if (shell_.tree == nullptr) {
    const auto held = shell_.memory.find(m.name, 0);
    if (held) return held;
    return std::make_shared<received_object>(m, path, nullptr);
  }
  auto lease = shell_.tree->lease(m.name, m.version);
  if (!lease) lease = shell_.tree->lease(m.name, version_id{0});   // an equal one of another number
  return std::make_shared<received_object>(m, path, lease && (*lease)->description().size() == m.size() ? *lease : nullptr);
}

void reception::place(const place_segments& p) {
  const bool follows = !gathered_.empty() && p.object == gathered_object_ && p.part == gathered_part_ && p.offset == gathered_end_;
  if (!follows || gathered_.size() + p.run.count > gathered_max) flush();
  if (gathered_.empty()) {
    gathered_object_ = p.object;
    gathered_part_ = p.part;
    gathered_offset_ = gathered_end_ = p.offset;
  }
  p.run.each_piece([&](std::size_t, std::span<const std::byte> bytes) {
    const bool adjoins = !gathered_.empty() && static_cast<const std::byte*>(gathered_.back().iov_base) + gathered_.back().iov_len == bytes.data();
    if (adjoins) gathered_.back().iov_len += bytes.size();
    else gathered_.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
  });
  gathered_end_ += p.run.bytes();
}

void reception::flush() {
  if (gathered_.empty()) return;
  slot& s = slots_[gathered_object_];
  if (s.sink && !s.failed) {
    const time_point from = now();
    const auto ok = s.sink->write(gathered_part_, gathered_offset_, gathered_);
    const time_point t = now();
    apply_seconds_ += seconds(t - from);
    if (!ok) {
      s.failed = true;
      engine_.handle_store_error(t, gathered_object_, ok.error());   // whoever called goes on to drain
    }
  }
  gathered_.clear();
}

void reception::digest_rest(time_point t, digest_block& d) {
  flush();
  const block_extent e = engine_.segments().block(d.block);
  slot& s = slots_[e.object];
  if (!s.sink || s.failed) return;
  const time_point from = now();
  result<void> ok;
  for (auto m = d.leaves.missing_from(0); m.bytes != 0 && ok; m = d.leaves.missing_from(m.offset + m.bytes)) {
    if (block_buffer_.size() < m.bytes) block_buffer_.resize(m.bytes);
    const auto into = std::span(block_buffer_).first(m.bytes);
    ok = s.sink->read(e.part, e.offset + m.offset, into);
    if (ok) d.leaves.read(m, into);
  }
  result<digest> whole = ok ? result<digest>(d.leaves.block()) : tl::unexpected(ok.error());
  verify_seconds_ += seconds(now() - from);
  engine_.handle_block_digest(t, d.block, std::move(whole));
}

void reception::commit(std::uint32_t object) {
  flush();
  slot& s = slots_[object];
  if (s.failed || !s.sink) return;
  asio::post(shell_.commits, [self = shared_from_this(), object, sink = s.sink, digests = engine_.digests(object), m = engine_.objects()[object]] {
    const time_point from = now();
    auto committed = sink->commit(digests);
    const double took = seconds(now() - from);
    if (committed) {
      if (const auto memory = std::dynamic_pointer_cast<memory_sink>(sink)) {
        const auto whole = std::make_shared<received_object>(m, digests, memory);
        self->shell_.memory.add(whole);
        self->shell_.deliver(whole);
      } else {
        self->shell_.deliver(self->present(m, *committed));
      }
    }
    asio::post(self->shell_.io, [self, object, took, committed = std::move(committed)] {
      if (self->ended_) return;
      self->commit_seconds_ += took;
      const time_point t = now();
      if (committed) {
        self->slots_[object].path = *committed;
        self->engine_.handle_committed(t, object, {});
      } else {
        self->engine_.handle_committed(t, object, tl::unexpected(committed.error()));
      }
      self->slots_[object].sink.reset();
      self->drain(t);
      self->arm();
    });
  });
}

// Which blocks are on disk is written down now and then: a receiver that is killed resumes from there.
void reception::checkpoint(time_point t) {
  checkpoint_due_ = t + checkpoint_interval;
  if (engine_.count().bytes - checkpointed_ < checkpoint_bytes) return;
  checkpointed_ = engine_.count().bytes;
  const auto reports = engine_.objects().size();
  for (std::uint32_t o = 0; o < reports && o < slots_.size(); ++o) {
    slot& s = slots_[o];
    if (!s.sink || s.failed) continue;
    const range_set complete = engine_.complete_blocks(o);
    if (!complete.empty()) (void)s.sink->checkpoint(complete);
  }
}

void reception::end(const error& outcome) {
  if (ended_) return;
  flush();
  ended_ = true;
  outcome_ = outcome;
  timer_.cancel();
  for (slot& s : slots_) s.applier.reset();   // before the sinks they write to
  for (std::uint32_t o = 0; o < slots_.size(); ++o) {
    slot& s = slots_[o];
    if (!s.sink) continue;
    const range_set complete = engine_.complete_blocks(o);
    if (complete.empty()) s.sink->discard();
    else if (auto ok = s.sink->keep(complete); !ok) shell_.log(log_level::warning, "keeping what arrived of '" + printable(engine_.objects()[o].name) + "': " + describe(ok.error()));
    s.sink.reset();
  }
  if (on_end_) asio::post(shell_.io, [self = shared_from_this()] { self->on_end_(*self); });
}

void reception::add_to(report& r) const {
  const auto& c = engine_.count();
  const auto& t = engine_.when();
  const time_point end = t.finished == never ? now() : t.finished;
  const time_point joined = t.joined == never ? end : t.joined;
  const time_point first = t.first_data == never ? joined : t.first_data;
  const time_point whole = t.whole == never ? end : t.whole;
  auto objects = engine_.reports();
  std::size_t i = 0;
  for (std::uint32_t o = 0; o < engine_.objects().size() && i < objects.size(); ++o)
    if (objects[i].name == engine_.objects()[o].name) {
      if (o < slots_.size() && objects[i].problem.code == errc::ok) objects[i].path = slots_[o].path;
      ++i;
    }
  std::uint64_t bytes = 0;
  for (object_report& o : objects) {
    if (o.problem.code == errc::ok) bytes += o.bytes;
    r.objects.push_back(std::move(o));
  }
  r.seconds += seconds(end - joined);
  if (r.seconds > 0) r.goodput_bytes_per_s = static_cast<double>(bytes) / r.seconds;
  r.stages.discover += seconds(joined - created_);
  r.stages.wire += seconds(std::max(whole, first) - first);
  r.stages.verify += verify_seconds_;
  r.stages.apply += apply_seconds_;
  r.stages.commit += commit_seconds_;
  r.bulk.segments += c.segments - c.repaired_segments;
  r.bulk.bytes += c.bytes - c.repaired_bytes;
  r.repair.unicast_bytes += c.unicast_bytes;
  r.repair.multicast_bytes += c.repaired_bytes - c.unicast_bytes;
  r.repair.read_bytes += c.read_bytes;
  r.repair.nacks += c.nacks;
  r.resumed_bytes += c.resumed_bytes;
  r.delta_bytes += c.patched_bytes;
  r.bad_blocks += c.bad_blocks;
  for (const auto& [reason, n] : c.dropped) r.dropped[reason] += n;
  if (c.duplicates != 0) r.dropped["duplicate"] += c.duplicates;
  r.warnings.insert(r.warnings.end(), warnings_.begin(), warnings_.end());
  r.outcome = outcome_;
}

progress reception::snapshot() const {
  progress p;
  const auto& c = engine_.count();
  p.bytes_total = c.bytes_wanted;
  p.bytes_done = std::min(c.bytes_wanted, c.bytes + c.resumed_bytes + c.patched_bytes);
  p.nacks = c.nacks;
  p.repaired_bytes = c.repaired_bytes;
  p.receivers_joined = engine_.joined() ? 1 : 0;
  const bool whole = p.bytes_total != 0 && p.bytes_done == p.bytes_total;
  p.phase = ended_ ? progress::phase::finished : !engine_.joined() ? progress::phase::discovering : whole ? progress::phase::committing
          : engine_.sender_state() == session_state::flushing ? progress::phase::repairing : progress::phase::receiving;
  if (!engine_.objects().empty()) p.current = engine_.objects().front().name;
  return p;
}

}  // namespace ddf
