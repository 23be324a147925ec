#include "transports/fabric/fabric_progress.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "transports/fabric/cut_connections.hpp"
#include "transports/fabric/fabric_error.hpp"

namespace ddf {

using namespace std::chrono_literals;

namespace {
constexpr auto silence_max = 250ms;      // of a peer with something overdue, before its connection is ended
constexpr auto cut_again = 1s;           // without effect: once more
constexpr auto backoff_first = 100us, backoff_max = 20000us;
constexpr auto lost_pause = 20ms;        // ofi_rxm learns of a lost connection at most 10 ms later, and fails what comes before that

std::string_view name_of(const remote_read& r) { return {reinterpret_cast<const char*>(r.peer.data()), r.peer.size()}; }
}  // namespace

fabric_progress::fabric_progress(fabric_handles& handles, const fabric_options& options, fabric_counts& counts)
    : h_(handles),
      counts_(counts),
      per_peer_max_(std::max(1u, options.outstanding_max / 4)),   // peers that died must not take all there is
      peers_max_(std::max(1u, options.peers_max)),
      piece_bytes_(std::clamp<std::size_t>(handles.message_max, 1, fabric_piece_bytes)),
      operations_(std::max(1u, options.outstanding_max)) {
  for (operation& o : operations_) free_.push_back(&o);
}

void fabric_progress::add(time_point now, remote_read r, fabric_endpoint::answer done) {
  transfers_.emplace_back();
  transfer& t = transfers_.back();
  t.self = std::prev(transfers_.end());
  const auto longest = std::chrono::hours(24 * 365);
  t.deadline = deadlines_.emplace(now + std::clamp<std::chrono::nanoseconds>(r.deadline, 0ns, longest), &t);
  t.r = std::move(r);
  t.done = std::move(done);
  enqueue(t);
}

// Its peer's queue, or the line of those whose peers there is no room for.
void fabric_progress::enqueue(transfer& t) {
  if (t.waits) return;
  if (t.at == nullptr) {
    t.at = place(name_of(t.r));
    if (t.at != nullptr) ++t.at->transfers;
  }
  t.waits = true;
  if (t.at == nullptr) return void(homeless_.push_back(&t));
  t.at->waiting.push_back(&t);
  if (!t.at->listed) {
    t.at->listed = true;
    ready_.push_back(t.at);
  }
}

// The peer of that name; null when there are as many as there may be and all have something to do.
fabric_progress::peer* fabric_progress::place(std::string_view name) {
  auto it = peers_.find(name);
  if (it == peers_.end()) {
    if (peers_.size() >= peers_max_) {
      const auto idle = std::ranges::find_if(by_use_, [](const peer* p) { return p->transfers == 0 && !p->cutting && !p->listed; });
      if (idle == by_use_.end()) return nullptr;
      peer& old = **idle;
      if (old.known) remove_address(old);
      tally(counts_.dropped);
      by_use_.erase(idle);
      std::erase(late_, &old);
      peers_.erase(peers_.find(old.name));
    }
    it = peers_.try_emplace(std::string(name)).first;
    it->second.name = name;
    it->second.used = by_use_.insert(by_use_.end(), &it->second);
  }
  by_use_.splice(by_use_.end(), by_use_, it->second.used);
  return &it->second;
}

void fabric_progress::remove_address(peer& p) {
  p.known = p.connected = false;
  if (!h_.by_process) h_.calls.av_remove(h_.av, p.handle);
}

std::optional<fabric_progress::range> fabric_progress::next_range(const transfer& t) const {
  if (!t.again.empty()) return t.again.back();
  if (t.given < t.r.bytes) return range{t.given, std::min(piece_bytes_, t.r.bytes - t.given)};
  return std::nullopt;
}

bool fabric_progress::post(time_point now) {
  if (broken_) return false;
  while (!homeless_.empty()) {
    transfer& t = *homeless_.front();
    peer* const p = place(name_of(t.r));
    if (p == nullptr) break;
    homeless_.pop_front();
    t.waits = false;
    t.at = p;
    ++p->transfers;
    enqueue(t);
  }
  bool gave = false;
  for (std::size_t turns = ready_.size(); turns > 0 && !free_.empty(); --turns) {
    peer& p = *ready_.front();
    ready_.pop_front();
    gave |= give(p, now);
    p.listed = !p.waiting.empty();
    if (p.listed) ready_.push_back(&p);
  }
  return gave;
}

bool fabric_progress::give(peer& p, time_point now) {
  if (p.cutting || p.spoilt || now < p.next_try) return false;
  if (!p.known) {
    const std::span<const std::byte> address = h_.native_address(std::as_bytes(std::span(p.name)));
    int e = 0;
    if (address.empty()) e = -FI_EINVAL;
    else if (!h_.by_process) e = h_.calls.av_insert(h_.av, address.data(), &p.handle);
    else if (const auto process = parse_process_name(address)) p.process = *process;
    else e = -FI_EINVAL;
    if (e != 0) {
      fail_waiting(p, fabric_error(h_.provider, fabric_step::address, -e));
      return true;
    }
    p.known = true;
  }
  bool gave = false;
  for (std::uint32_t turn = 0; turn < per_peer_max_ && p.known && !p.spoilt && !free_.empty() && p.in_flight < per_peer_max_ && !p.waiting.empty(); ++turn) {
    transfer& t = *p.waiting.front();
    const range part = *next_range(t);
    operation& o = *free_.back();
    o.of = &t;
    o.part = part;
    free_.pop_back();
    ++t.in_flight, ++p.in_flight, ++in_flight_;
    const std::span<std::byte> into = t.r.into->bytes().subspan(t.r.offset + part.begin, part.bytes);
    const std::uint64_t from = t.r.address + part.begin;
    const ssize_t e = h_.by_process ? 0 : h_.calls.read(h_.endpoint, into.data(), into.size(), t.r.into->descriptor_, p.handle, from, t.r.key, &o);
    if (e == -FI_EAGAIN) {
      --t.in_flight, --p.in_flight, --in_flight_;
      o.of = nullptr;
      free_.push_back(&o);
      if (p.connected) tally(counts_.busy);
      p.backoff = std::clamp<clock::duration>(p.backoff * 2, backoff_first, p.connected ? clock::duration(1ms) : clock::duration(backoff_max));
      p.next_try = now + p.backoff;
      return gave;
    }
    gave = true;
    p.backoff = {};
    if (!t.again.empty()) t.again.pop_back();
    else {
      if (t.given > 0) tally(counts_.splits);
      t.given += part.bytes;
    }
    if (!next_range(t)) {
      p.waiting.pop_front();
      t.waits = false;
    }
    if (e != 0) {
      ended(o, static_cast<int>(-e), 0, now);
      continue;
    }
    if (!p.connected) {
      p.connected = true;
      tally(counts_.connections);
    }
    if (p.in_flight == 1) p.heard = now;   // silence counts from when there is something to hear
    if (h_.by_process) ended(o, read_process(h_.calls, p.process, from, t.r.key, into), 0, now);
  }
  return gave;
}

bool fabric_progress::look(time_point now) {
  if (h_.by_process) return false;
  tally(counts_.looks);
  std::array<fabric_completion, 32> done;
  const ssize_t n = h_.calls.cq_read(h_.cq, done);
  broken_ = n < 0;
  if (broken_) {
    // As long as the queue cannot be read nothing is begun, and what is on its way is ended.
    const error e = fabric_error(h_.provider, fabric_step::progress, static_cast<int>(-n));
    while (!homeless_.empty()) {
      transfer& t = *homeless_.front();
      t.failure = e;
      settle(t);
    }
    for (auto& [name, p] : peers_) {
      fail_waiting(p, e);
      if (p.in_flight > 0 && !p.cutting) cut(p, now);
    }
    return false;
  }
  for (const fabric_completion& c : std::span(done).first(static_cast<std::size_t>(n))) {
    auto* const o = static_cast<operation*>(c.context);
    if (o == nullptr || o->of == nullptr) tally(counts_.strays);
    else ended(*o, c.code, c.provider_code, now);
  }
  return n > 0;
}

void fabric_progress::ended(operation& o, int code, int provider_code, time_point now) {
  transfer& t = *o.of;
  peer& p = *t.at;
  const range part = o.part;
  o.of = nullptr;
  free_.push_back(&o);
  --t.in_flight, --p.in_flight, --in_flight_;
  if (code == 0) {
    p.heard = now;
  } else if (p.cutting && !t.overdue && !t.failure && !stopping_) {   // not its fault: over the next connection
    t.again.push_back(part);
  } else if (!t.failure) {
    t.failure = fabric_error(h_.provider, fabric_step::read, code, provider_code);
  }
  if (code != 0) {
    p.connected = false;
    if (!h_.by_process) p.next_try = now + lost_pause;
    // One error stops a queue pair for good, and ofi_rxm keeps using it. A TCP connection it gives up by itself.
    p.spoilt = !h_.by_process && !h_.by_socket;
  }
  if (p.in_flight == 0) {
    if (p.spoilt && p.known) remove_address(p);
    p.spoilt = false;
    if (p.cutting) after_cut(p, now);
  }
  settle(t);
}

// Answers a read of which the provider has nothing any more, if it is done or failed.
void fabric_progress::settle(transfer& t) {
  if (t.failure && t.waits) withdraw(t);
  if (t.in_flight > 0) return;
  if (t.failure) return answer(t, tl::unexpected(*t.failure));
  if (next_range(t)) return enqueue(t);
  answer(t, {});
}

void fabric_progress::withdraw(transfer& t) {
  std::erase(t.at != nullptr ? t.at->waiting : homeless_, &t);
  t.waits = false;
}

void fabric_progress::fail_waiting(peer& p, const error& e) {
  const std::deque<transfer*> waiting = std::exchange(p.waiting, {});
  for (transfer* t : waiting) {
    t->waits = false;
    if (!t->failure) t->failure = e;
    settle(*t);
  }
}

void fabric_progress::answer(transfer& t, result<void> outcome) {
  if (t.at != nullptr) {
    --t.at->transfers;
    if (t.overdue) --t.at->overdue;
  }
  if (outcome) {
    tally(counts_.reads);
    tally(counts_.read_bytes, t.r.bytes);
  } else {
    tally(counts_.failed);
  }
  const fabric_endpoint::answer done = std::move(t.done);
  if (t.deadline != deadlines_.end()) deadlines_.erase(t.deadline);
  transfers_.erase(t.self);
  done(std::move(outcome));
}

error fabric_progress::too_late(const transfer& t) const {
  error e = fabric_error(h_.provider, fabric_step::read, FI_ETIMEDOUT);
  if (t.at == nullptr) e.what += "; all connections were busy (peers_max)";
  else if (!t.at->connected) e.what += "; no connection came about";
  return e;
}

void fabric_progress::expire(time_point now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    transfer& t = *deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    t.deadline = deadlines_.end();
    if (!t.failure) {
      tally(counts_.timed_out);
      t.failure = too_late(t);
    }
    if (t.in_flight > 0) {
      t.overdue = true;
      ++t.at->overdue;
      if (std::ranges::find(late_, t.at) == late_.end()) late_.push_back(t.at);
    }
    settle(t);
  }
  for (std::size_t i = 0; i < late_.size();) {
    peer& p = *late_[i];
    if (p.cutting && !p.held && now >= p.cut_at + cut_again) {
      p.held = true;
      tally(counts_.held, p.overdue);
      end_connection(p);
    } else if (!p.cutting && p.overdue > 0 && now >= p.heard + silence_max) {
      cut(p, now);
    }
    if (p.overdue > 0 || p.cutting) {
      ++i;
    } else {
      late_[i] = late_.back();
      late_.pop_back();
    }
  }
}

// Makes the provider give back the memory it may still write to.
void fabric_progress::cut(peer& p, time_point now) {
  p.cutting = true;
  p.held = false;
  p.cut_at = now;
  p.connected = false;
  tally(counts_.cut);
  if (std::ranges::find(late_, &p) == late_.end()) late_.push_back(&p);
  end_connection(p);
}

void fabric_progress::end_connection(peer& p) {
  if (h_.by_socket) cut_connections(h_.native_address(), h_.native_address(std::as_bytes(std::span(p.name))));
  else if (p.known) remove_address(p);
}

void fabric_progress::after_cut(peer& p, time_point now) {
  p.cutting = false;
  p.backoff = {};
  p.next_try = now + lost_pause;
}

fabric_progress::time_point fabric_progress::next() const {
  time_point t = time_point::max();
  if (!deadlines_.empty()) t = deadlines_.begin()->first;
  for (const peer* p : ready_)
    if (!broken_ && !p->cutting && !p->spoilt && p->in_flight < per_peer_max_ && !free_.empty()) t = std::min(t, p->next_try);
  for (const peer* p : late_) {
    if (!p->cutting) t = std::min<time_point>(t, p->heard + silence_max);
    else if (!p->held) t = std::min<time_point>(t, p->cut_at + cut_again);
  }
  return t;
}

void fabric_progress::stop(time_point now) {
  stopping_ = true;
  std::vector<transfer*> all;
  for (transfer& t : transfers_) all.push_back(&t);
  for (transfer* t : all) {
    if (!t->failure) t->failure = error{errc::interrupted, 0, "the endpoint was closed"};
    settle(*t);
  }
  for (auto& [name, p] : peers_)
    if (p.in_flight > 0 && !p.cutting) cut(p, now);
}

void fabric_progress::finish() {
  while (!transfers_.empty()) {
    transfer& t = transfers_.front();
    if (t.waits) withdraw(t);
    if (!t.failure) t.failure = error{errc::interrupted, 0, "the endpoint was closed"};
    answer(t, tl::unexpected(*t.failure));
  }
}

}  // namespace ddf
