#include "lib/runtime/publication.hpp"

#include "lib/runtime/delta_planning.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>

namespace ddf {

using namespace std::chrono_literals;

static constexpr int batches_per_turn = 16;   // then what has arrived is looked at
static constexpr duration snapshot_interval = 40ms;
static constexpr std::size_t bases_most = 8;         // deltas of one object in one session

publication::publication(publisher_shell& shell, std::vector<session_source::item> items, const publish_options& options, std::uint64_t base_version,
                         std::vector<std::string> warnings)
    : shell_(shell), source_(std::move(items)), options_(options), rng_(random_number()), warnings_(std::move(warnings)), base_version_(base_version) {
  for (std::size_t i = 0; i < source_.objects(); ++i) {
    manifests_.push_back(source_.object(i).description);
    progress_.bytes_total += manifests_.back().size();
  }
  if (!manifests_.empty()) progress_.current = manifests_.front().name;
}

publication::~publication() = default;

report publication::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return finished_; });
  return report_;
}

bool publication::wait_for(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, limit, [this] { return finished_; });
}

progress publication::snapshot() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void publication::cancel() {
  asio::post(shell_.io, [self = shared_from_this()] {
    self->cancel_asked_ = true;
    if (!self->begun_ || self->ended_) return;
    const sender& engine = *self->engine_;
    error how{errc::interrupted, 0, "interrupted at the sender"};
    if (self->options_.serve && engine.receivers_complete() == engine.receivers_joined()) how = {};
    else if (self->options_.serve && engine.served() == 0) how = engine.outcome();   // nobody was interrupted
    self->engine_->stop(now(), std::move(how));
    self->drive();
  });
}

void publication::begin(std::function<void()> on_end) {
  on_end_ = std::move(on_end);
  begun_ = true;
  sender_options o;
  o.session = session_id{random_number()};
  o.objects = manifests_;
  const bool v6 = shell_.plan.group.v6;
  std::uint32_t largest = 0;
  for (const sender_rail_socket& r : shell_.rails) {
    sender_rail rail{datagram_bytes(r.interface, v6, shell_.options.mtu), header_bytes(v6), r.interface.name};
    if (r.bulk) {
      rail.datagram_bytes = std::min(rail.datagram_bytes, r.bulk->datagram_bytes());
      rail.header_bytes = r.bulk->header_bytes();
    }
    largest = std::max(largest, rail.datagram_bytes);
    o.rails.push_back(std::move(rail));
  }
  for (std::size_t i = 0; i < source_.objects(); ++i) o.tables_known.push_back(source_.table_known(i));
  o.plans = true;
  o.reads = offered_lanes(shell_.options.repair);
  o.reads_required = lane_required(shell_.options.repair);
  o.group_commit = options_.commit_together;
  o.multicast = shell_.options.multicast;
  o.batch_segments = std::clamp<std::uint32_t>(65'500 / largest, 1, 44);
  o.rate_bytes_per_s = shell_.options.rate_bytes_per_s;
  o.expect = options_.expect;
  o.wait = options_.wait > 0ns ? duration(options_.wait) : options_.expect != 0 ? duration(60s) : duration(2s);
  o.deadline = options_.deadline;
  o.quorum = options_.quorum;
  o.linger = options_.linger;
  o.serve = options_.serve;
  o.make_token = random_number;
  engine_ = std::make_unique<sender>(std::move(o), rng_, now());
  for (sender_rail_socket& r : shell_.rails)
    if (r.socket) r.socket->set_multicast_loop(true);
  timer_ = std::make_unique<lazy_timer>(shell_.io, [this] {
    if (ended_) return;
    engine_->handle_timeout(now());
    drive();
  });
  snapshot_at_ = now();
  if (cancel_asked_) engine_->stop(now(), {errc::interrupted, 0, "interrupted at the sender"});
  engine_->handle_timeout(now());
  drive();
}

void publication::handle_datagram(const path& from, std::span<const std::byte> bytes) {
  if (ended_) return;
  if (!local_receivers_ && is_local(shell_.all_interfaces, from.peer) && !shell_.rails[from.rail].interface.loopback) {
    local_receivers_ = true;   // receivers on this host hear us only when packets loop back
    for (sender_rail_socket& r : shell_.rails)
      if (r.socket) r.socket->set_multicast_loop(true);
  }
  engine_->handle_datagram(now(), from, bytes);
}

// --- actions --------------------------------------------------------------------------------------------------------------

void publication::drive() {
  if (ended_ || driving_ || waiting_) return;
  driving_ = true;
  const auto self = shared_from_this();
  int batches = 0;
  bool more = false;
  while (!ended_ && !waiting_) {
    auto a = engine_->poll_action(now());
    if (!a) break;
    if (std::holds_alternative<send_segments>(*a) && ++batches == batches_per_turn) {
      perform(*a);
      more = true;
      break;
    }
    perform(*a);
  }
  driving_ = false;
  if (ended_) return;
  if (!loop_decided_ && engine_->state() != session_state::gathering) {
    loop_decided_ = true;
    // A copy of everything for ourselves would cost as much as a receiver does.
    if (!local_receivers_)
      for (sender_rail_socket& r : shell_.rails)
        if (r.socket) r.socket->set_multicast_loop(false);
  }
  if (engine_->state() == session_state::lingering && engine_->receivers_complete() != 0) remember();
  const time_point t = now();
  if (t >= snapshot_due_) {
    publish_snapshot(t);
    for (sender_rail_socket& r : shell_.rails)
      if (r.bulk) r.bulk->look();
  }
  if (more && !waiting_) asio::post(shell_.io, [self] { self->drive(); });
  timer_->at(std::min(engine_->next_timeout(), t + snapshot_interval));
}

void publication::perform(sender_action& a) {
  if (auto* m = std::get_if<send_message>(&a)) {
    perform(*m);
  } else if (auto* s = std::get_if<send_segments>(&a)) {
    send_data(*s);
  } else if (auto* g = std::get_if<grant_segments>(&a)) {
    lend(*g);
  } else if (auto* taken = std::get_if<release_grant>(&a)) {
    shell_.lender.take_back(engine_->id(), taken->id);
  } else if (auto* p = std::get_if<prepare_digests>(&a)) {
    prepare(p->object);
  } else if (std::holds_alternative<plan_session>(a)) {
    plan();
  } else if (auto* n = std::get_if<note>(&a)) {
    shell_.log(n->level, n->text);
    if (n->level == log_level::warning && warnings_.size() < 100) warnings_.push_back(n->text);
  } else if (auto* f = std::get_if<sender_finished>(&a)) {
    end(f->outcome);
  }
}

void publication::perform(send_message& m) {
  const auto send_one = [&](std::size_t rail, const endpoint& to) {
    sender_rail_socket& r = shell_.rails[rail];
    if (!r.socket) return send_failed(rail, ENODEV, 1);
    int e = 0;
    const auto outcome = r.socket->send(to, 0, m.datagram, &e);
    packet_headers_ += header_bytes(to.v6);
    if (outcome != udp_socket::sent::all) send_failed(rail, e, 1);
  };
  if (!m.to.group) return send_one(m.to.peer.rail, m.to.peer.peer);
  for (std::size_t r = 0; r < shell_.rails.size(); ++r)
    if (m.to.rails >> r & 1) {
      endpoint to = shell_.plan.group;
      if (to.v6) to.scope = shell_.rails[r].interface.index;
      send_one(r, to);
    }
}

bool publication::send_data(send_segments& s) {
  const bool first_pass = (s.flags & data_header::repair) == 0;
  auto payloads = source_.payloads(engine_->segments(), std::span(s.segments).first(s.count), first_pass);
  if (!payloads) {
    source_failed(payloads.error());
    return true;
  }
  payloads_.assign(payloads->begin(), payloads->end());
  header_bytes_.resize(s.count);
  headers_.resize(s.count);
  for (std::uint32_t i = 0; i < s.count; ++i) {
    write_data_header(header_of(s, i, engine_->id()), header_bytes_[i]);
    headers_[i] = {header_bytes_[i].data(), data_header::wire_size};
  }
  targets_.clear();
  if (s.to.group) {
    for (std::size_t r = 0; r < shell_.rails.size(); ++r)
      if (s.to.rails >> r & 1) targets_.push_back(r);
  } else {
    targets_.push_back(s.to.peer.rail);
  }
  pending_ = s;
  pending_done_ = 0;
  return resume_data();
}

bool publication::resume_data() {
  while (!targets_.empty()) {
    const std::size_t rail = targets_.front();
    sender_rail_socket& r = shell_.rails[rail];
    const bool to_group = pending_->to.group;
    const auto headers = std::span(headers_).subspan(pending_done_), payloads = std::span(payloads_).subspan(pending_done_);
    sent outcome = sent::failed;
    int e = ENODEV;
    if (to_group && r.bulk) {
      const std::size_t n = r.bulk->send_batch(headers, payloads, outcome, &e);
      pending_done_ += n;
      packet_headers_ += n * r.bulk->header_bytes();
    } else if (!to_group && r.socket) {
      const endpoint& to = pending_->to.peer.peer;
      const std::size_t n = r.socket->send_batch(to, 0, headers, payloads, outcome, &e);
      pending_done_ += n;
      packet_headers_ += n * header_bytes(to.v6);
    }
    if (outcome == sent::would_block) {
      waiting_ = true;
      using asio::posix::stream_descriptor;
      const bool for_room = to_group && r.room;
      (for_room ? *r.room : *r.descriptor).async_wait(for_room ? stream_descriptor::wait_read : stream_descriptor::wait_write, [self = shared_from_this()](const asio::error_code& failed) {
        self->waiting_ = false;
        if (self->ended_ || failed) return;
        if (self->resume_data()) self->drive();
      });
      return false;
    }
    if (outcome == sent::queue_full) {
      engine_->handle_queue_full(now());
      ++send_errors_[e];
    } else if (outcome == sent::failed) {
      send_failed(rail, e, headers_.size() - pending_done_);   // as if lost on the way: they will be asked for
    }
    targets_.erase(targets_.begin());
    pending_done_ = 0;
  }
  pending_.reset();
  return true;
}

void publication::send_failed(std::size_t rail, int e, std::size_t packets) {
  if (e == EAGAIN) return;
  const bool first = send_errors_[e] == 0;
  send_errors_[e] += packets;
  sender_rail_socket& r = shell_.rails[rail];
  if (first) {
    const error* const lane = r.bulk ? r.bulk->problem() : nullptr;
    std::string text = "sending by " + r.interface.name + " failed: " + (lane != nullptr ? describe(*lane) : std::strerror(e));
    if (e == EPERM || e == EACCES) text += " (a firewall on this host refuses it: nft list ruleset)";
    if (e == EMSGSIZE) text += " (larger than the interface's MTU: give --mtu)";
    if (e == ENETUNREACH || e == EHOSTUNREACH) text += " (no route: ip route get " + address_text(shell_.plan.group) + ")";
    if (lane == nullptr && (e == ENODEV || e == ENETDOWN)) text += " (the interface is down or gone; sending goes on when it is back)";
    shell_.log(log_level::warning, text);
    if (warnings_.size() < 100) warnings_.push_back(text);
  }
  engine_->handle_queue_full(now());   // do not spin on a link that takes nothing
  if ((e == ENODEV || e == EADDRNOTAVAIL || e == ENETUNREACH || e == EINVAL) && now() >= r.reopen_due) {
    r.reopen_due = now() + 200ms;
    shell_.reopen_rail(rail);
  }
}

void publication::source_failed(const error& e) {
  engine_->stop(now(), e);
}

void publication::prepare(std::uint32_t object) {
  // Beside the loop: the receivers that already have something wait for it, the others are served meanwhile.
  asio::post(shell_.workers, [self = shared_from_this(), object] {
    const time_point from = now();
    auto t = self->source_.compute_digests(object, self->abandon_digests_);
    const double took = seconds(now() - from);
    asio::post(self->shell_.io, [self, object, took, t = std::move(t)]() mutable {
      if (self->ended_) return;
      self->prepare_seconds_ += took;
      if (!t) {
        self->source_failed(t.error());
      } else {
        self->source_.take_digests(object, std::move(*t));
        self->engine_->handle_digests_ready(now(), object);
      }
      self->drive();
    });
  });
}

void publication::lend(const grant_segments& g) {
  const network_interface& n = shell_.rails[std::min<std::size_t>(g.rail, shell_.rails.size() - 1)].interface;
  const endpoint* local = n.address_for(shell_.plan.group);
  const auto fill = [self = shared_from_this(), segments = g.segments](std::span<std::byte> out) -> result<void> {
    if (self->ended_) return fail(errc::interrupted, "the publication ended");
    for (const range& r : segments) {
      const std::uint64_t bytes = self->engine_->segments().load_of(r.first, r.last).bytes;
      if (auto ok = self->source_.copy(self->engine_->segments(), r, out.first(bytes)); !ok) {
        self->source_failed(ok.error());
        return ok;
      }
      out = out.subspan(bytes);
    }
    return {};
  };
  shell_.lender.lend(engine_->id(), g, local == nullptr ? std::string() : address_text(*local), fill, [self = shared_from_this(), id = g.id](result<sender::granted_memory> where) {
    if (self->ended_) return;
    self->engine_->handle_granted(now(), id, std::move(where));
    if (!self->driving_) self->drive();
  });
}

// --- deltas -----------------------------------------------------------------------------------------------------------

void publication::plan() {
  claim_versions();
  auto p = std::make_shared<delta_planning>();
  for (std::uint32_t o = 0; o < manifests_.size(); ++o) {
    if (engine_->held_roots(o).empty()) continue;
    const session_source::item& it = source_.object(o);
    p->objects.push_back({o, manifests_[o], it.source, it.digests, source_.table_known(o), {}, {}, std::nullopt, {}});
  }
  p->forced = options_.base != "auto";
  p->wants_deltas = options_.base != "none" && options_.consistent != consistency::immutable;
  p->options.profile = options_.fast ? delta::profile::fast : delta::profile::tight;
  p->options.scratch_folder = shell_.scratch_folder;
  std::vector<std::string> names;
  for (std::size_t r = 0; r < shell_.rails.size(); ++r)
    if (engine_->active_rails() >> r & 1) names.push_back(shell_.rails[r].interface.name);
  if (const double link = link_bytes_per_s(names); link > 0) p->measured.link = link;
  if (shell_.options.rate_bytes_per_s != 0) p->measured.link = std::min(p->measured.link, static_cast<double>(shell_.options.rate_bytes_per_s));
  // Measured per core of such hosts, on files in the page cache; receivers are taken to be like this one.
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  p->measured.encode = 1.3e9 * cores;
  p->measured.apply = 1.0e9 * cores;
  if (p->measured.link > 2.5e9) p->options.profile = delta::profile::fast;   // above 20 Gbit/s tight coding is slower than the link
  // The bases that receivers hold and that are known here.
  for (delta_planning::object& o : p->objects) {
    const std::string& name = o.description.base.empty() ? o.description.name : o.description.base;
    const auto former = shell_.former.find(name);
    const bool open_still = former != shell_.former.end() && former->second.source->check_open().has_value();
    const auto roots = engine_->held_roots(o.index);
    const auto held = [&](const digest& root) { return std::ranges::binary_search(roots, root); };
    const auto usable = [&](version_id v) { return base_version_ == 0 || base_version_ == v.value; };
    if (open_still && held(former->second.described.digests.root) && usable(former->second.described.description.version)) o.bases.push_back(base_from(former->second.described, former->second.source));
    const auto remembered = shell_.bases.list(name);
    // The caller's own copy of what was published last.
    if (const auto& mine = source_.object(o.index).former; mine && !remembered.empty() && remembered.front().description.parts == o.description.parts && held(remembered.front().digests.root))
      o.bases.push_back(base_from(remembered.front(), mine));
    for (const published_base& b : remembered) {
      if (o.bases.size() >= bases_most || !held(b.digests.root) || !usable(b.description.version)) continue;
      if (std::ranges::any_of(o.bases, [&](const delta_base& known) { return known.digests.root == b.digests.root; })) continue;
      o.bases.push_back(shell_.bases.open(b));
    }
    o.demand = engine_->demand_for(o.index, [&](const digest& root) {
      return (o.digests_known && root == o.digests.root) || std::ranges::any_of(o.bases, [&](const delta_base& b) { return b.digests.root == root; });
    });
    if (!o.description.base.empty()) continue;   // what follows is said about earlier versions of the object itself
    if (options_.has_changed && (former != shell_.former.end() || !remembered.empty())) {
      o.changed_from = former != shell_.former.end() ? former->second.described.digests.root : remembered.front().digests.root;
      for (const byte_range& r : options_.changed)
        if (r.bytes != 0) o.changed.insert(r.offset, r.offset + r.bytes);
    }
    if (options_.consistent == consistency::append_only && !o.bases.empty()) {
      const manifest& last = o.bases.front().description;
      if (last.size() <= o.description.size() && last.block_bytes == o.description.block_bytes) {
        o.changed_from = o.bases.front().digests.root;
        o.changed.insert(last.size() / last.block_bytes * last.block_bytes, std::max(o.description.size(), std::uint64_t{1}));
      }
    }
  }
  if (p->objects.empty() && !options_.on_plan && !options_.dry_run) return engine_->handle_plan(now(), {});
  const time_point from = now();
  asio::post(shell_.workers, [self = shared_from_this(), p, from] {
    const auto done = p->run(self->abandon_digests_);
    asio::post(self->shell_.io, [self, p, from, done] {
      if (self->ended_) return;
      self->plan_seconds_ += seconds(now() - from);
      self->planned(done ? result<std::shared_ptr<delta_planning>>(p) : tl::unexpected(done.error()));
      self->drive();
    });
  });
}

void publication::planned(result<std::shared_ptr<delta_planning>> r) {
  if (!r) return source_failed(r.error());
  delta_planning& p = **r;
  plan_ = std::move(p.report);
  for (std::string& w : p.warnings) {
    shell_.log(log_level::warning, w);
    if (warnings_.size() < 100) warnings_.push_back(std::move(w));
  }
  // Objects of which nobody holds anything.
  for (std::uint32_t o = 0; o < manifests_.size(); ++o) {
    if (std::ranges::any_of(p.objects, [&](const delta_planning::object& known) { return known.index == o; })) continue;
    const std::uint32_t n = engine_->demand_for(o).with_nothing;
    if (n == 0 || plan_.choices.size() >= 1000) continue;
    const double took = static_cast<double>(manifests_[o].size()) / std::min(p.measured.link, p.measured.place);
    plan_.choices.push_back({manifests_[o].name, n, "nothing", "whole", 0, manifests_[o].size(), 0, took, "there is no base to start from"});
    plan_.objects.push_back({manifests_[o].name, manifests_[o].size()});
    plan_.group_bytes += manifests_[o].size();
    plan_.seconds += took;
  }
  if (options_.on_plan) options_.on_plan(plan_);
  if (options_.dry_run) return engine_->stop(now(), error{});
  for (delta_planning::object& o : p.objects) source_.take_digests(o.index, std::move(o.digests));
  for (session_source::item& d : p.deltas) source_.add(std::move(d));
  engine_->handle_plan(now(), std::move(p.plan));
}

// --- the end --------------------------------------------------------------------------------------------------------------

// A version number is used up before anyone can have something under it: a sender that is killed does not give it to other bytes.
void publication::claim_versions() {
  if (options_.dry_run || options_.consistent == consistency::immutable) return;
  for (std::size_t i = 0; i < manifests_.size(); ++i) {
    const session_source::item& it = source_.object(i);
    published_version v{it.description.version, it.source->identity(), {}};
    const auto known = shell_.published.load(it.description.name);
    if (known && known->version == v.version && known->identity == v.identity) continue;
    if (source_.table_known(i)) v.digests = it.digests;
    if (auto ok = shell_.published.save(it.description.name, v); !ok) {
      shell_.log(log_level::warning, "remembering what is published: " + describe(ok.error()));
      break;
    }
  }
}

// Beside the loop, because copies may be made. As soon as everybody is served: a sender that stays may be killed, or its file
// overwritten.
void publication::remember() {
  if (remembered_) return;
  remembered_ = true;
  struct one {
    std::string name;
    published_version version;
    bool whole = false;   // its digests are known
    published_base base;
    std::shared_ptr<object_source> source;
  };
  auto all = std::make_shared<std::vector<one>>();
  for (std::size_t i = 0; i < manifests_.size(); ++i) {
    const session_source::item& it = source_.object(i);
    one v{it.description.name, {it.description.version, it.source->identity(), {}}, false, {}, it.source};
    if (source_.table_known(i)) {
      v.whole = true;
      v.version.digests = it.digests;
      v.base = {it.description, v.version.identity, it.source->path(), it.digests};
      if (!v.base.path.empty() && it.description.parts.size() <= files_held_most) shell_.former[it.description.name] = {v.base, it.source};
    }
    all->push_back(std::move(v));
  }
  auto done = std::make_shared<std::promise<void>>();
  remembering_ = done->get_future();
  asio::post(shell_.workers, [self = shared_from_this(), all, done] {
    const publisher_shell& shell = self->shell_;
    result<void> ok;
    for (const one& v : *all)
      if (ok) ok = shell.published.save(v.name, v.version);
    for (const one& v : *all)
      if (ok && v.whole) ok = shell.bases.save(v.base, *v.source);
    if (!ok) self->shell_.log(log_level::warning, "remembering what was published: " + describe(ok.error()));
    done->set_value();
  });
}

void publication::end(const error& outcome_in) {
  error outcome = outcome_in;
  if (timer_) timer_->cancel();
  if (outcome.code == errc::ok)
    if (auto ok = source_.check_read(); !ok) {
      outcome = ok.error();
      if (outcome.code == errc::source_changed) outcome.what += "; receivers verified the version that was read, but it is no longer what is here";
    }
  ended_ = true;
  abandon_digests_ = true;
  report r = make_report(outcome);
  // What somebody has under this version is the version, whatever became of the file.
  if (!options_.dry_run && (outcome.code != errc::source_changed || engine_->receivers_complete() != 0)) remember();
  if (remembering_.valid()) remembering_.wait();   // who publishes next finds it
  {
    const std::lock_guard lock(mutex_);
    report_ = std::move(r);
    progress_.phase = progress::phase::finished;
    progress_.receivers_joined = engine_->receivers_joined();
    progress_.receivers_complete = engine_->receivers_complete();
    progress_.receivers_active = 0;
    if (outcome.code == errc::ok) progress_.bytes_done = progress_.bytes_total;
    finished_ = true;
  }
  done_.notify_all();
  // The ticket may outlive the publisher and its loop, the timer must not; it may be the timer that called us, so later.
  asio::post(shell_.io, [self = shared_from_this(), on_end = std::move(on_end_)] {
    self->timer_.reset();
    if (on_end) on_end();
  });
}

report publication::make_report(const error& outcome) const {
  report r;
  r.sender = true;
  r.outcome = outcome;
  const auto& times = engine_->when();
  const auto& count = engine_->count();
  const time_point end = times.ended == never ? now() : times.ended;
  const time_point started = times.started == never ? end : times.started;
  const time_point flushed = times.flushed == never ? end : times.flushed;
  r.seconds = seconds(end - started);
  std::uint64_t total = 0;
  for (const manifest& m : manifests_) {
    total += m.size();
    object_report o;
    o.name = m.name;
    o.version = m.version.value;
    o.bytes = m.size();
    o.seconds = r.seconds;
    const auto index = static_cast<std::uint32_t>(r.objects.size());
    const bool by_delta = std::ranges::any_of(engine_->plan().deltas, [&](const delta_stream& d) { return d.object == index; });
    if (by_delta) o.encoding = engine_->first_pass_has(index) ? "delta+whole" : "delta";
    else if ((count.data_segments == 0 || !engine_->first_pass_has(index)) && m.size() != 0 && engine_->receivers_complete() != 0) o.encoding = "none";   // everybody had it
    o.problem = outcome;
    r.objects.push_back(std::move(o));
  }
  if (r.seconds > 0 && outcome.code == errc::ok && count.data_segments != 0) r.goodput_bytes_per_s = static_cast<double>(total) / r.seconds;
  r.stages.discover = seconds(started - times.opened);
  r.stages.prepare = prepare_seconds_ + plan_.prepare_seconds;
  r.stages.plan = plan_seconds_ - std::min(plan_seconds_, plan_.prepare_seconds);
  r.plan = plan_;
  r.stages.wire = seconds(flushed - started);
  r.stages.repair = seconds(end - flushed);
  r.bulk.transport = shell_.options.transport;
  r.bulk.segments = count.bulk_segments;
  r.bulk.bytes = count.bulk_bytes;
  r.repair.multicast_bytes = count.multicast_repair_bytes;
  r.repair.unicast_bytes = count.unicast_repair_bytes + count.read_bytes;
  r.repair.read_bytes = count.read_bytes;
  r.repair.nacks = count.nacks;
  const std::uint64_t sent = count.bulk_bytes + count.multicast_repair_bytes + r.repair.unicast_bytes + count.control_bytes + packet_headers_;
  r.egress_ratio = total == 0 ? 0 : static_cast<double>(sent) / static_cast<double>(total);
  r.receivers = engine_->receivers();
  for (std::uint32_t o = 0; o < manifests_.size() && o < 100; ++o) {
    const auto holders = engine_->holders(o);
    for (std::size_t i = 0; i < holders.size(); ++i)
      if (holders[i].holds) r.receivers[i].holds[manifests_[o].name] = holders[i].holds->version.value;
  }
  for (std::size_t i = 0; i < shell_.rails.size(); ++i)
    if (engine_->active_rails() >> i & 1) r.interfaces.push_back(shell_.rails[i].interface.name);
  r.dropped = count.dropped;
  for (const auto& [e, n] : send_errors_) r.dropped["send: " + std::string(std::strerror(e))] += n;
  for (const sender_rail_socket& rail : shell_.rails)
    if (rail.socket && rail.socket->kernel_drops() != 0) r.dropped["receive buffer full"] += rail.socket->kernel_drops();
  r.warnings = warnings_;
  return r;
}

void publication::publish_snapshot(time_point t) {
  progress p;
  const layout& l = engine_->segments();
  const std::lock_guard lock(mutex_);
  p = progress_;
  p.receivers_joined = engine_->receivers_joined();
  p.receivers_complete = engine_->receivers_complete();
  p.receivers_active = engine_->served();
  p.nacks = engine_->count().nacks;
  p.repaired_bytes = engine_->count().multicast_repair_bytes + engine_->count().unicast_repair_bytes + engine_->count().read_bytes;
  if (l.segments() != 0) p.bytes_done = static_cast<std::uint64_t>(static_cast<double>(p.bytes_total) * static_cast<double>(engine_->bulk_segment()) / static_cast<double>(l.segments()));
  switch (engine_->state()) {
    case session_state::gathering: p.phase = progress::phase::discovering; break;
    case session_state::streaming: p.phase = progress::phase::sending; break;
    case session_state::flushing: p.phase = progress::phase::repairing; break;
    case session_state::lingering: p.phase = progress::phase::lingering; break;
  }
  const double elapsed = seconds(t - snapshot_at_);
  if (elapsed > 0.2) {
    p.bytes_per_s = static_cast<double>(p.bytes_done - std::min(p.bytes_done, snapshot_bytes_)) / elapsed;
    snapshot_at_ = t;
    snapshot_bytes_ = p.bytes_done;
  }
  if (l.segments() != 0 && engine_->bulk_segment() < l.segments()) p.current = engine_->objects()[l.object_of_segment(engine_->bulk_segment())].name;
  progress_ = std::move(p);
  snapshot_due_ = t + snapshot_interval;
}

}  // namespace ddf
