#include "transports/sim/network.hpp"

#include <bit>
#include <stdexcept>

#include "codecs/digest.hpp"
#include "lib/model/assert.hpp"
#include "lib/wire/data_header.hpp"

namespace ddf::sim {

static constexpr std::uint32_t header_bytes = 28;   // IPv4 and UDP
static constexpr std::uint64_t events_at_once_max = 2'000'000;

static std::uint64_t hash_of(std::span<const std::byte> bytes) {
  const digest d = digest_of(bytes);
  std::uint64_t h = 0;
  for (std::size_t i = 0; i < 8; ++i) h = h << 8 | std::to_integer<std::uint64_t>(d.bytes[i]);
  return h;
}

// What Linux charges a socket for a datagram: its buffer, rounded up, and the structure that describes it.
static std::uint32_t charge(std::size_t datagram_bytes) { return std::bit_ceil(static_cast<std::uint32_t>(datagram_bytes) + 42 + 320) + 256; }

datagram::datagram(std::vector<std::byte> b) : bytes(std::move(b)), hash(hash_of(bytes)) {}

void network::note_in_trace(std::uint64_t value) {
  trace_ ^= value + 0x9e3779b97f4a7c15u + (trace_ << 6) + (trace_ >> 2);
  trace_ *= 0xff51afd7ed558ccdu;
  trace_ ^= trace_ >> 33;
}

// --- hosts --------------------------------------------------------------------------------------------------------------

network::node_id network::attach(process& p, const node_options& o) {
  node n;
  n.who = &p;
  n.options = o;
  if (n.options.port == 0) n.options.port = next_port_++;
  const auto rails = static_cast<std::size_t>(std::bit_width(o.rails));
  n.up.assign(rails, link(o.up));
  n.down.assign(rails, link(o.down));
  nodes_.push_back(std::move(n));
  const auto id = static_cast<node_id>(nodes_.size() - 1);
  for (std::uint32_t r = 0; r < rails; ++r)
    if (o.rails >> r & 1) by_address_[address(id, r)] = id;   // as with SO_REUSEPORT, a port twice goes to the last who binds it
  return id;
}

void network::detach(node_id n) {
  nodes_[n].who = nullptr;
  nodes_[n].open = nullptr;
  ++nodes_[n].incarnation;
}

endpoint network::address(node_id n, std::uint32_t rail) const {
  const node_options& o = nodes_[n].options;
  endpoint e;
  e.address = {10, static_cast<std::uint8_t>(rail), static_cast<std::uint8_t>(o.host / 250), static_cast<std::uint8_t>(o.host % 250 + 1)};
  e.port = o.port;
  return e;
}

endpoint network::group() const {
  endpoint e;
  e.address = {239, 77, 7, 7};
  e.port = 7700;
  return e;
}

void network::rejoin(node_id n) {
  if (rejoin_works) nodes_[n].member = true;
}

void network::pause(node_id n, duration d) { nodes_[n].paused_until = std::max(nodes_[n].paused_until, now_ + d); }

void network::heal() {
  for (node& n : nodes_) {
    n.block = {};
    n.refuses = false;
    n.member = true;
    for (auto* side : {&n.up, &n.down})
      for (link& l : *side) l.options.loss = l.options.burst_start = l.options.corrupt = l.options.duplicate = l.options.reorder = 0;
  }
  subtree_loss_.clear();
  drop_ = nullptr;
}

// --- from one to the other ----------------------------------------------------------------------------------------------

network::sent network::send(node_id from, const destination& to, datagram_ptr d) {
  if (nodes_[from].refuses) return sent::refused;
  const auto ip_bytes = static_cast<std::uint32_t>(d->bytes.size()) + header_bytes;
  const auto leave = [&](std::uint32_t rail, const endpoint& where) -> std::optional<link::passage> {
    node& n = nodes_[from];
    ++counters_.sent;
    counters_.ip_bytes_sent += ip_bytes;
    n.ip_bytes_sent += ip_bytes;
    if (pcap_) pcap_->write(now_, address(from, rail), where, d->bytes);
    if (n.block.out) return ++counters_.lost_blocked, std::nullopt;
    const link::passage p = n.up[rail].pass(now_, ip_bytes, random_);
    if (p.lost == link::loss_cause::none) return p;
    ++(p.lost == link::loss_cause::queue ? counters_.lost_queue : p.lost == link::loss_cause::mtu ? counters_.lost_mtu : counters_.lost_random);
    return std::nullopt;
  };
  if (!to.group) {
    const std::uint32_t rail = to.peer.peer.address[1];   // of the address, whatever the peer calls its rails
    if (rail >= nodes_[from].up.size()) return ++counters_.lost_elsewhere, sent::yes;
    const auto p = leave(rail, to.peer.peer);
    const auto there = by_address_.find(to.peer.peer);
    if (p && there == by_address_.end()) ++counters_.lost_elsewhere;
    else if (p) transmit(from, rail, there->second, false, p->out, d);
    if (p && p->twice && there != by_address_.end()) transmit(from, rail, there->second, false, *p->twice, d);
    return sent::yes;
  }
  for (std::uint32_t rail = 0; rail < nodes_[from].up.size(); ++rail) {
    if ((to.rails >> rail & 1) == 0) continue;
    const auto p = leave(rail, group());
    if (!p) continue;
    std::map<std::uint32_t, bool> lost_below;   // one decision a subtree
    for (const auto& [subtree, loss] : subtree_loss_) lost_below[subtree] = random_.uniform() < loss;
    for (node_id n = 0; n < nodes_.size(); ++n) {
      const node& other = nodes_[n];
      if (n == from || other.who == nullptr || !other.options.in_group || !other.member || (other.options.rails >> rail & 1) == 0) continue;
      if (!lost_below.empty() && other.options.subtree != nodes_[from].options.subtree) {
        const auto here = lost_below.find(other.options.subtree);
        if (here != lost_below.end() && here->second) {
          ++counters_.lost_subtree;
          continue;
        }
      }
      transmit(from, rail, n, true, p->out, d);
      if (p->twice) transmit(from, rail, n, true, *p->twice, d);
    }
  }
  return sent::yes;
}

// Reliable, as what is below it sends again what is lost; a loss costs time.
void network::read(node_id from, node_id to, std::uint64_t address, std::uint64_t key, std::uint64_t bytes, duration deadline, std::function<void(std::optional<std::vector<std::byte>>)> done) {
  const auto reachable = [this](node_id n) { return nodes_[n].who != nullptr && !nodes_[n].block.reads && !nodes_[n].block.unicast_in && !nodes_[n].block.out; };
  const auto incarnation = to < nodes_.size() ? nodes_[to].incarnation : 0;
  const auto fail = [this, deadline](auto call) { at(now_ + deadline, [call] { call(std::nullopt); }); };
  if (to >= nodes_.size() || !reachable(from) || !reachable(to)) return fail(std::move(done));
  constexpr std::uint32_t piece = 1440, frame = 1500;
  const link_options& up = nodes_[to].up[0].options;
  const link_options& down = nodes_[from].down[0].options;
  // Its pieces queue on the cables like everything else; one that is lost comes again a round trip later.
  duration late{0};
  time_point there = now_ + up.delay + down.delay;
  for (std::uint64_t left = bytes; left != 0; left -= std::min<std::uint64_t>(left, piece)) {
    nodes_[to].ip_bytes_sent += frame;
    const double rate = static_cast<double>(std::min(up.rate_bytes_per_s == 0 ? ~std::uint64_t(0) : up.rate_bytes_per_s, down.rate_bytes_per_s == 0 ? ~std::uint64_t(0) : down.rate_bytes_per_s));
    there += std::chrono::duration_cast<duration>(std::chrono::duration<double>(frame / rate));
    if (random_.uniform() < up.loss + down.loss) late = std::max<duration>(late, 2 * (up.delay + down.delay) + 1ms);
  }
  there += up.delay + down.delay + late;
  at(there, [=, this, done = std::move(done)]() mutable {
    const node& n = nodes_[to];
    auto found = reachable(from) && reachable(to) && n.incarnation == incarnation && n.open ? n.open(address, key, bytes) : std::nullopt;
    if (found) return done(std::move(found));
    fail(std::move(done));
  });
}

void network::transmit(node_id from, std::uint32_t rail, node_id to, bool to_group, time_point when, const datagram_ptr& d) {
  node& n = nodes_[to];
  if (!to_group && nodes_[from].options.subtree != n.options.subtree)
    if (const auto s = subtree_loss_.find(n.options.subtree); s != subtree_loss_.end() && random_.uniform() < s->second) {
      ++counters_.lost_subtree;
      return;
    }
  const bool data = type_of(d->bytes) == packet_type::data;
  if ((to_group ? n.block.multicast_in : n.block.unicast_in) || (data && n.block.data_in) || (drop_ && drop_(to, to_group, d->bytes))) {
    ++counters_.lost_blocked;
    return;
  }
  const link::passage p = n.down[rail].pass(when, static_cast<std::uint32_t>(d->bytes.size()) + header_bytes, random_);
  if (p.lost != link::loss_cause::none) {
    ++(p.lost == link::loss_cause::queue ? counters_.lost_queue : p.lost == link::loss_cause::mtu ? counters_.lost_mtu : counters_.lost_random);
    return;
  }
  packet on_its_way{d, path{address(from, rail), rail}, to_group, n.incarnation};
  if (p.corrupt) {
    std::vector<std::byte> bytes = d->bytes;
    for (std::uint64_t flips = 1 + random_.next() % 3; flips != 0; --flips) bytes[random_.next() % bytes.size()] ^= std::byte{1} << random_.next() % 8;
    on_its_way.what = std::make_shared<const datagram>(std::move(bytes));
  }
  if (p.twice) schedule_arrival(to, *p.twice, on_its_way);
  schedule_arrival(to, p.out, std::move(on_its_way));
}

std::uint32_t network::keep(packet p) {
  if (free_packets_.empty()) {
    packets_.push_back(std::move(p));
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  const std::uint32_t slot = free_packets_.back();
  free_packets_.pop_back();
  packets_[slot] = std::move(p);
  return slot;
}

void network::schedule_arrival(node_id to, time_point when, packet p) { events_.push(when, event_kind::arrive, to, keep(std::move(p))); }

// --- at the receiving host ----------------------------------------------------------------------------------------------

void network::arrive(node_id to, std::uint32_t slot) {
  node& n = nodes_[to];
  const packet& p = packets_[slot];
  const bool waiting = n.queue_head != n.queue.size();
  if (p.incarnation != n.incarnation || n.who == nullptr) {
    ++counters_.lost_elsewhere;
  } else if (!waiting && n.busy_until <= now_ && n.paused_until <= now_) {
    return handle(to, slot);
  } else if (n.buffered_bytes + charge(p.what->bytes.size()) > n.options.buffer_bytes) {
    ++counters_.lost_buffer;
    ++n.overflows;
  } else {
    n.buffered_bytes += charge(p.what->bytes.size());
    n.queue.push_back(slot);
    if (!waiting) events_.push(std::max(n.busy_until, n.paused_until), event_kind::process, to, 0);
    return;
  }
  packets_[slot].what.reset();
  free_packets_.push_back(slot);
}

void network::process_next(node_id to) {
  node& n = nodes_[to];
  if (n.queue_head == n.queue.size()) return;
  if (n.paused_until > now_) return events_.push(n.paused_until, event_kind::process, to, 0);
  const std::uint32_t slot = n.queue[n.queue_head++];
  n.buffered_bytes -= charge(packets_[slot].what->bytes.size());
  if (n.queue_head == n.queue.size()) n.queue.clear(), n.queue_head = 0;
  handle(to, slot);
  node& after = nodes_[to];
  if (after.queue_head != after.queue.size()) events_.push(std::max(after.busy_until, now_), event_kind::process, to, 0);
}

void network::handle(node_id to, std::uint32_t slot) {
  const packet p = std::move(packets_[slot]);
  packets_[slot].what.reset();
  free_packets_.push_back(slot);
  node& n = nodes_[to];
  if (n.who == nullptr || p.incarnation != n.incarnation) return;
  n.busy_until = now_ + n.options.per_datagram;
  ++n.received;
  ++counters_.delivered;
  note_in_trace(static_cast<std::uint64_t>(now_.time_since_epoch().count()) ^ p.what->hash ^ std::uint64_t(to) << 48);
  n.who->receive(now_, p.from, p.to_group, p.what->bytes);
}

void network::wake_at(node_id id, time_point when) {
  node& n = nodes_[id];
  n.wanted = when;
  if (when == never || n.wakes_at <= when) return;   // an earlier event will find out
  const duration late = std::chrono::duration_cast<duration>(n.options.timer_slack * random_.uniform());
  n.wakes_at = std::max(when, now_) + late;
  events_.push(n.wakes_at, event_kind::timer, id, 0);
}

void network::fire_timer(node_id id) {
  node& n = nodes_[id];
  if (n.wakes_at != now_) return;   // a later one of two that were queued
  n.wakes_at = never;
  if (n.who == nullptr || n.wanted == never) return;
  if (n.paused_until > now_) {
    n.wakes_at = n.paused_until;
    return events_.push(n.wakes_at, event_kind::timer, id, 0);
  }
  if (n.wanted > now_) return wake_at(id, n.wanted);
  n.who->wake(now_);
}

void network::at(time_point when, std::function<void()> call) {
  std::uint32_t slot = 0;
  if (free_calls_.empty()) {
    slot = static_cast<std::uint32_t>(calls_.size());
    calls_.push_back(std::move(call));
  } else {
    slot = free_calls_.back();
    free_calls_.pop_back();
    calls_[slot] = std::move(call);
  }
  events_.push(std::max(when, now_), event_kind::call, 0, slot);
}

duration network::backlog(node_id n) const {
  duration most{0};
  for (const link& l : nodes_[n].up) most = std::max(most, l.backlog(now_));
  return most;
}

bool network::run_until(const std::function<bool()>& done, duration limit) {
  const time_point end = now_ + limit;
  std::uint64_t at_once = 0;
  while (!done()) {
    if (events_.empty() || events_.next() > end) {
      now_ = end;
      return done();
    }
    const event e = events_.pop();
    at_once = e.when == now_ ? at_once + 1 : 0;
    if (at_once > events_at_once_max) throw std::runtime_error("livelock: the time does not pass any more");
    DDF_ASSERT(e.when >= now_);
    now_ = e.when;
    switch (e.kind) {
      case event_kind::arrive: arrive(e.node, e.slot); break;
      case event_kind::process: process_next(e.node); break;
      case event_kind::timer: fire_timer(e.node); break;
      case event_kind::call: {
        const std::function<void()> call = std::move(calls_[e.slot]);
        calls_[e.slot] = nullptr;
        free_calls_.push_back(e.slot);
        call();
        break;
      }
    }
  }
  return true;
}

}  // namespace ddf::sim
