#include "transports/sim/receiver_process.hpp"

#include <algorithm>

namespace ddf::sim {

receiver_process::receiver_process(network& net, const library& l, disk& d, options o)
    : net_(net), library_(l), disk_(d), options_(std::move(o)), node_(net.attach(*this, options_.node)), random_(net.random().next()) {
  options_.engine.id = receiver_id{random_.next()};
  if (options_.engine.host.empty()) options_.engine.host = "host" + std::to_string(options_.node.host);
  options_.engine.buffer_bytes = options_.node.buffer_bytes;
  query_due_ = net.now() + std::chrono::duration_cast<duration>(options_.query_interval * random_.uniform());
  update_timer();
}

receiver_process::~receiver_process() {
  *alive_ = false;
  for (auto& [id, s] : sessions_)
    if (!s.outcome) end(s, {errc::interrupted, 0, "killed"});
  net_.detach(node_);
}

const receiver* receiver_process::engine(session_id s) const {
  const auto it = sessions_.find(s);
  return it == sessions_.end() ? nullptr : it->second.engine.get();
}

static const std::optional<error> nothing;
const std::optional<error>& receiver_process::outcome(session_id s) const {
  const auto it = sessions_.find(s);
  return it == sessions_.end() ? nothing : it->second.outcome;
}
const std::optional<error>& receiver_process::outcome() const { return order_.empty() ? nothing : outcome(order_.front()); }

receiver_process::session_entry* receiver_process::find(std::span<const std::byte> bytes) {
  if (const auto h = parse_data_header(bytes)) {
    session_entry* found = nullptr;   // of two with one tag the one that still runs; the engine knows its sender's address
    for (auto& [id, s] : sessions_)
      if (static_cast<std::uint32_t>(id.value) == h->session_tag && (found == nullptr || !s.outcome)) found = &s;
    return found;
  }
  const auto id = peek_session(bytes);
  if (!id) return nullptr;
  const auto it = sessions_.find(*id);
  return it == sessions_.end() ? nullptr : &it->second;
}

void receiver_process::receive(time_point now, path from, bool to_group, std::span<const std::byte> bytes) {
  session_entry* s = find(bytes);
  if (s == nullptr && type_of(bytes) == packet_type::announce) {
    const auto m = parse_message(bytes);
    const auto* a = m ? std::get_if<announce>(&*m) : nullptr;
    const auto truth = a == nullptr ? nullptr : library_.find(a->session);
    if (truth) {
      s = &sessions_[a->session];
      s->engine = std::make_unique<receiver>(options_.engine, a->session, from, random_, now);
      s->truth = truth;
      order_.push_back(a->session);
    }
  }
  if (s == nullptr) {
    ++foreign_;
    return;
  }
  s->engine->handle_datagram(now, from, to_group, bytes);
  drain(now, *s);
  update_timer();
}

void receiver_process::query(time_point now) {
  query_due_ = never;
  if (!sessions_.empty()) return;
  query_due_ = now + options_.query_interval;
  const auto d = std::make_shared<const datagram>(write_message(ddf::query{options_.engine.id}, control_bytes_max));
  net_.send(node_, {true, options_.node.rails, {}}, d);
  if (options_.known_sender) net_.send(node_, {false, 0, {*options_.known_sender, 0}}, d);
}

void receiver_process::wake(time_point now) {
  if (now >= query_due_) query(now);
  for (auto& [id, s] : sessions_) {
    if (s.engine->next_timeout() > now) continue;
    s.engine->handle_timeout(now);
    drain(now, s);
  }
  update_timer();
}

void receiver_process::stop(error reason) {
  for (auto& [id, s] : sessions_) {
    s.engine->stop(net_.now(), reason);
    drain(net_.now(), s);
  }
  update_timer();
}

void receiver_process::update_timer() {
  time_point t = query_due_;
  for (const auto& [id, s] : sessions_) t = std::min(t, s.engine->next_timeout());
  net_.wake_at(node_, t);
}

void receiver_process::later(duration d, session_id id, std::function<void(time_point, session_entry&)> what) {
  net_.at(net_.now() + d, [this, id, alive = alive_, what = std::move(what)] {
    if (!*alive) return;
    session_entry& s = sessions_.at(id);
    what(net_.now(), s);
    drain(net_.now(), s);
    update_timer();
  });
}

void receiver_process::end(session_entry& s, const error& outcome) {
  s.outcome = outcome;
  for (const auto& [object, key] : s.keys)
    if (s.engine->is_delta(object)) disk_.discard(key);
    else if (!key.empty()) disk_.keep(key, s.engine->complete_blocks(object));
}

void receiver_process::drain(time_point now, session_entry& s) {
  const session_id id = s.engine->session();
  while (auto action = s.engine->poll_action(now)) {
    net_.note_in_trace(action->index() ^ std::uint64_t(node_) << 32);
    if (const auto* m = std::get_if<send_message>(&*action)) {
      net_.send(node_, m->to, std::make_shared<const datagram>(m->datagram));
    } else if (const auto* p = std::get_if<place_segments>(&*action)) {
      p->run.each_piece([&](std::size_t at, std::span<const std::byte> bytes) {
        if (auto ok = disk_.write(s.keys.at(p->object), p->part, p->offset + at, bytes); !ok) s.engine->handle_store_error(now, p->object, ok.error());
      });
    } else if (const auto* b = std::get_if<digest_block>(&*action)) {
      later(options_.digest_delay, id, [this, block = b->block](time_point when, session_entry& e) {
        const block_extent extent = e.engine->segments().block(block);
        if (const std::string& key = e.keys.at(extent.object); !key.empty()) e.engine->handle_block_digest(when, block, disk_.digest_of_block(key, extent));
      });
    } else if (const auto* o = std::get_if<open_object>(&*action)) {
      later(options_.open_delay, id, [this, object = o->object](time_point when, session_entry& e) {
        std::string& key = e.keys[object];
        if (e.engine->is_delta(object) && e.truth->objects().size() != e.engine->objects().size()) e.truth = e.truth->with(e.engine->plan());
        auto opened = e.engine->is_delta(object) ? disk_.open_delta(e.engine->objects()[object], e.truth, object, key) : disk_.open(e.engine->objects()[object], e.truth, object, key);
        if (!opened) key.clear();
        e.engine->handle_opened(when, object, std::move(opened));
      });
    } else if (const auto* c = std::get_if<commit_object>(&*action)) {
      later(options_.commit_delay, id, [this, object = c->object](time_point when, session_entry& e) {
        auto done = disk_.commit(e.keys.at(object), e.engine->digests(object).root);
        if (done) e.keys.at(object).clear();
        e.engine->handle_committed(when, object, std::move(done));
      });
    } else if (const auto* a = std::get_if<apply_delta>(&*action)) {
      later(options_.apply_delay, id, [this, delta = a->delta, object = a->object](time_point when, session_entry& e) {
        e.engine->handle_patched(when, delta, disk_.apply(e.keys.at(delta), e.keys.at(object), e.engine->delta(delta), *e.truth));
        disk_.discard(e.keys.at(delta));
        e.keys.at(delta).clear();
      });
    } else if (const auto* r = std::get_if<read_segments>(&*action)) {
      network::node_id from = 0;
      for (const std::byte digit : r->fabric) from = from << 8 | std::to_integer<network::node_id>(digit);
      net_.read(node_, from, r->address, r->key, r->bytes, options_.read_deadline, [this, id, grant = r->id, alive = alive_](std::optional<std::vector<std::byte>> bytes) {
        if (!*alive) return;
        session_entry& e = sessions_.at(id);
        e.engine->handle_read(net_.now(), grant, bytes ? result<std::span<const std::byte>>(*bytes) : fail(errc::network, "the read was not answered in time"));
        drain(net_.now(), e);
        update_timer();
      });
    } else if (const auto* d = std::get_if<discard_object>(&*action)) {
      disk_.discard(s.keys.at(d->object));
      s.keys.at(d->object).clear();
    } else if (std::holds_alternative<rejoin_group>(*action)) {
      ++rejoins_;
      net_.rejoin(node_);
    } else if (const auto* n = std::get_if<note>(&*action)) {
      notes_.push_back(n->text);
    } else if (const auto* f = std::get_if<receiver_finished>(&*action)) {
      end(s, f->outcome);
      if (on_end_) on_end_(*this);
    }
  }
}

}  // namespace ddf::sim
