#include "transports/sim/sender_process.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace ddf::sim {

static constexpr std::uint32_t header_bytes = 28;

sender_process::sender_process(network& net, std::shared_ptr<const content> what, options o)
    : net_(net), content_(std::move(what)), options_(std::move(o)), node_(net.attach(*this, options_.node)), random_(net.random().next()) {
  sender_options& e = options_.engine;
  if (e.session.value == 0) e.session = session_id{net.random().next() | 1};
  if (e.objects.empty()) e.objects = content_->objects();
  if (e.rails.empty())
    for (std::uint32_t r = 0; r < std::bit_width(options_.node.rails); ++r) e.rails.push_back({options_.node.up.mtu - header_bytes, header_bytes, "rail" + std::to_string(r)});
  e.plans = true;
  table_made_ = e.tables_known;
  table_made_.resize(e.objects.size());
  read_.resize(e.objects.size());
  engine_ = std::make_unique<sender>(e, random_, net.now());
  net_.lay_open(node_, [this](std::uint64_t address, std::uint64_t key, std::uint64_t bytes) -> std::optional<std::vector<std::byte>> {
    const auto found = granted_.find(address);
    if (found == granted_.end() || key != options_.engine.session.value || found->second.size() != bytes) return std::nullopt;
    return found->second;
  });
  net_.wake_at(node_, net.now());
}

void sender_process::receive(time_point now, path from, bool, std::span<const std::byte> bytes) {
  engine_->handle_datagram(now, from, bytes);
  drain(now);
}

void sender_process::wake(time_point now) {
  if (now >= engine_->next_timeout()) engine_->handle_timeout(now);
  drain(now);
}

void sender_process::stop(error reason) {
  engine_->stop(net_.now(), std::move(reason));
  drain(net_.now());
}

std::span<const std::byte> sender_process::payload(const segment_extent& e) const {
  const auto all = e.table ? content_->table_bytes(e.object) : content_->part(e.object, e.part);
  return all.subspan(e.offset, e.bytes);
}

// As the runtime does, with deltas whose sizes are given.
void sender_process::plan() {
  session_plan all;
  for (std::uint32_t o = 0; o < content_->objects().size(); ++o) {
    const manifest& m = content_->objects()[o];
    const sender::demand wanted = engine_->demand_for(o);
    plans_.emplace_back();
    if (wanted.bases.empty()) continue;
    object_facts facts;
    facts.bytes = m.size();
    facts.with_nothing = wanted.with_nothing;
    for (const block_place& b : block_places(m)) facts.block_bytes.push_back(b.bytes);
    std::vector<delta_candidate> candidates;
    for (const sender::demand::base& base : wanted.bases) {
      if (base.current && base.root == content_->table(o).root) {
        facts.current += base.receivers;
        continue;
      }
      const auto& specs = content_->deltas(o);
      const auto made = std::ranges::find(specs, base.root, &delta_spec::base_root);
      if (made == specs.end()) {
        facts.with_nothing += base.receivers;
        continue;
      }
      delta_candidate c{made->base_version, made->base_root, base.receivers, 100, made->block_bytes};
      if (c.block_bytes.empty()) c.block_bytes.assign(facts.block_bytes.size(), made->bytes / facts.block_bytes.size());
      candidates.push_back(std::move(c));
    }
    plans_.back() = plan_object(facts, candidates, options_.plan_rates);
    all.roots.push_back({o, content_->table(o).root});
    for (const object_plan::chosen_delta& d : plans_.back().deltas) all.deltas.push_back({o, candidates[d.candidate].base_version, candidates[d.candidate].base_root, d.bytes, d.whole});
    table_made_[o] = true;
  }
  content_ = content_->with(all);
  table_made_.resize(content_->objects().size(), true);
  read_.resize(content_->objects().size());
  engine_->handle_plan(net_.now(), std::move(all));
}

void sender_process::transmit(time_point now, const send_segments& batch) {
  const layout& l = engine_->segments();
  net_.note_in_trace(batch.sequence ^ std::uint64_t(batch.count) << 40 ^ batch.segments[0] << 8 ^ batch.flags);
  bool refused = false;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const std::uint64_t s = batch.segments[i];
    const segment_extent e = l.segment(s);
    if (e.table && !table_made_[e.object]) {
      const object_extent& x = l.object(e.object);
      if (!read_[e.object].contains(x.first_segment, x.table_segment)) throw std::logic_error("a digest table is to be sent before its data was read");
      table_made_[e.object] = true;
    }
    if (!e.table) read_[e.object].insert(s, s + 1);
    const auto bytes = payload(e);
    std::vector<std::byte> d(data_header::wire_size + bytes.size());
    write_data_header(header_of(batch, i, options_.engine.session), std::span<std::byte, data_header::wire_size>(d.data(), data_header::wire_size));
    std::copy(bytes.begin(), bytes.end(), d.begin() + data_header::wire_size);
    ++data_datagrams_;
    if (net_.send(node_, batch.to, std::make_shared<const datagram>(std::move(d))) == network::sent::refused) ++refused_sends_, refused = true;
  }
  if (refused) engine_->handle_queue_full(now);
}

// As an arena would hold it; stamps are not needed here, where what is taken back is gone.
void sender_process::lay_out(time_point now, const grant_segments& g) {
  std::optional<error> failed;
  if (options_.grant_fails) failed = options_.grant_fails(g);
  if (!failed) {
    std::vector<std::byte> bytes;
    for (const range& r : g.segments)
      for (std::uint64_t s = r.first; s < r.last; ++s) {
        const segment_extent e = engine_->segments().segment(s);
        if (e.table && !table_made_[e.object]) throw std::logic_error("a digest table is granted before it is made");
        const auto from = payload(e);
        bytes.insert(bytes.end(), from.begin(), from.end());
      }
    if (bytes.size() != g.bytes) throw std::logic_error("a grant does not say how much it is");
    granted_[g.id] = std::move(bytes);
  }
  net_.at(now + options_.grant_delay, [this, id = g.id, failed, alive = alive_] {
    if (!*alive) return;
    std::vector<std::byte> who;
    for (int shift = 24; shift >= 0; shift -= 8) who.push_back(static_cast<std::byte>(node_ >> shift & 0xff));
    engine_->handle_granted(net_.now(), id, failed ? result<sender::granted_memory>(tl::unexpected(*failed)) : sender::granted_memory{std::move(who), id, options_.engine.session.value});
    drain(net_.now());
  });
}

void sender_process::drain(time_point now) {
  held_up_until_ = never;
  for (;;) {
    if (const duration backlog = net_.backlog(node_); backlog > options_.send_buffer) {
      held_up_until_ = now + backlog - options_.send_buffer / 2;
      break;
    }
    auto action = engine_->poll_action(now);
    if (!action) break;
    net_.note_in_trace(action->index());
    if (const auto* m = std::get_if<send_message>(&*action)) {
      if (net_.send(node_, m->to, std::make_shared<const datagram>(m->datagram)) == network::sent::refused) ++refused_sends_;
    } else if (const auto* b = std::get_if<send_segments>(&*action)) {
      transmit(now, *b);
    } else if (const auto* g = std::get_if<grant_segments>(&*action)) {
      lay_out(now, *g);
    } else if (const auto* r = std::get_if<release_grant>(&*action)) {
      granted_.erase(r->id);
    } else if (const auto* p = std::get_if<prepare_digests>(&*action)) {
      net_.at(now + options_.digest_delay, [this, object = p->object, alive = alive_] {
        if (!*alive) return;
        table_made_[object] = true;
        engine_->handle_digests_ready(net_.now(), object);
        drain(net_.now());
      });
    } else if (std::holds_alternative<plan_session>(*action)) {
      const bool needed = std::ranges::any_of(engine_->objects(), [&, o = 0u](const manifest&) mutable { return !engine_->demand_for(o++).bases.empty(); });
      net_.at(now + (needed ? options_.plan_delay : duration(0)), [this, alive = alive_] {
        if (!*alive) return;
        if (!engine_->finished()) plan();
        drain(net_.now());
      });
    } else if (const auto* n = std::get_if<note>(&*action)) {
      notes_.push_back(n->text);
    } else if (const auto* f = std::get_if<sender_finished>(&*action)) {
      outcome_ = f->outcome;
    }
  }
  net_.wake_at(node_, std::min(engine_->next_timeout(), held_up_until_));
}

}  // namespace ddf::sim
