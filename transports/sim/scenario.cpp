#include "transports/sim/scenario.hpp"

#include <algorithm>
#include <bit>
#include <sstream>

namespace ddf::sim {

static constexpr std::uint32_t receiver_hosts = 10;   // receivers' host numbers start here; publishers have those below

scenario::scenario(scenario_options o) : options_(std::move(o)), net_(options_.seed) {
  content_ = make(options_.objects);
  receivers_.resize(options_.receivers);
  addresses_.resize(options_.receivers);
  for (std::uint32_t n = 0; n < options_.receivers; ++n) disks_.push_back(std::make_unique<disk>());
  start_sender(content_);
  if (options_.start_receivers)
    for (std::uint32_t n = 0; n < options_.receivers; ++n) start_receiver(n);
}

void scenario::start_receiver(std::uint32_t n) {
  receivers_[n].reset();
  receiver_process::options o = options_.receiver;
  o.node = options_.network;
  o.node.host = receiver_hosts + n;
  if (options_.subtrees != 0) o.node.subtree = 1 + n % options_.subtrees;
  if (options_.each) options_.each(n, o);
  const auto reached_by = static_cast<std::uint32_t>(std::countr_zero(o.node.rails));
  receivers_[n] = std::make_unique<receiver_process>(net_, library_, *disks_[n], std::move(o));
  addresses_[n] = net_.address(receivers_[n]->node(), reached_by);
}

sender_process& scenario::add_sender(const std::vector<object_spec>& objects, sender_process::options o) {
  const auto what = make(objects);
  o.node = options_.network;
  o.node.host = ++sender_hosts_;
  if (o.engine.session.value == 0) o.engine.session = session_id{net_.random().next() | 1};
  library_.add(o.engine.session, what);
  others_.push_back(std::make_unique<sender_process>(net_, what, std::move(o)));
  return *others_.back();
}

void scenario::start_sender() { start_sender(content_); }

void scenario::start_sender(std::shared_ptr<const content> what) {
  sender_process::options o = options_.sender;
  o.node = options_.network;
  o.node.host = 0;
  o.engine.session = session_id{net_.random().next() | 1};
  library_.add(o.engine.session, what);
  content_ = what;
  sender_.reset();
  sender_ = std::make_unique<sender_process>(net_, what, std::move(o));
}

bool scenario::has_all(std::uint32_t n) const {
  return std::ranges::all_of(content_->objects(), [&](const manifest& m) { return disks_[n]->visible(m.name) && disks_[n]->version(m.name) == m.version; });
}

std::uint32_t scenario::complete() const {
  std::uint32_t sum = 0;
  for (std::uint32_t n = 0; n < receivers_.size(); ++n) sum += has_all(n);
  return sum;
}

bool scenario::all_ended() const {
  return (!sender_ || sender_->outcome()) && std::ranges::all_of(receivers_, [](const auto& r) { return !r || r->outcome(); });
}

receiver_report scenario::report(std::uint32_t n) const {
  receiver_report found;
  for (const receiver_report& r : sender_->engine().receivers())
    if (r.id.find('(' + to_string(addresses_[n]) + ')') != std::string::npos) found = r;
  return found;
}

std::uint64_t scenario::nacks_sent() const {
  std::uint64_t sum = 0;
  for (const auto& r : receivers_)
    if (r && r->engine() != nullptr) sum += r->engine()->count().nacks;
  return sum;
}

double scenario::egress_ratio() const {
  return static_cast<double>(net_.ip_bytes_sent(sender_->node())) / static_cast<double>(std::max<std::uint64_t>(content_->size(), 1));
}

std::string scenario::summary() const {
  std::ostringstream s;
  s << "seed " << options_.seed << ", " << seconds(net_.now().time_since_epoch()) << " s: " << complete() << " of " << receivers() << " have all";
  if (sender_) {
    const auto& c = sender_->engine().count();
    s << "; sender " << (sender_->outcome() ? std::string(name(sender_->outcome()->code)) + " '" + sender_->outcome()->what + "'" : "state " + std::to_string(int(sender_->engine().state())))
      << ", bulk " << c.bulk_segments << ", repairs " << c.multicast_repairs << " + " << c.unicast_repairs << ", nacks " << c.nacks << ", window " << sender_->engine().window();
    for (const auto& [reason, n] : c.dropped) s << ", " << reason << ' ' << n;
  }
  std::uint32_t shown = 0;
  for (std::uint32_t n = 0; n < receivers(); ++n) {
    if (has_all(n) || ++shown > 3) continue;
    s << "; receiver " << n;
    if (!receivers_[n]) {
      s << " is dead";
      continue;
    }
    const receiver_process& r = *receivers_[n];
    if (r.outcome()) s << " ended " << name(r.outcome()->code) << " '" << r.outcome()->what << "'";
    if (r.engine() == nullptr) {
      s << " heard of nothing";
      continue;
    }
    const auto& c = r.engine()->count();
    s << " segments " << c.segments << " of " << r.engine()->segments().segments() << ", nacks " << c.nacks << ", bad " << c.bad_blocks << (r.engine()->deaf() ? ", deaf" : "");
    for (const auto& [reason, k] : c.dropped) s << ", " << reason << ' ' << k;
  }
  return s.str();
}

node_options clean_network() {
  node_options o;
  o.up.jitter = o.down.jitter = 0us;
  return o;
}

node_options rough_network(std::uint64_t seed) {
  prng random(seed * 77 + 5);
  node_options o;
  for (link_options* l : {&o.up, &o.down}) {
    l->loss = random.uniform() < 0.3 ? 0 : 0.08 * random.uniform();
    l->duplicate = random.uniform() < 0.5 ? 0 : 0.03 * random.uniform();
    l->reorder = random.uniform() < 0.5 ? 0 : 0.1 * random.uniform();
    l->burst_start = random.uniform() < 0.7 ? 0 : 0.005 * random.uniform();
    l->burst_end = 0.05 + 0.3 * random.uniform();
    l->delay = std::chrono::microseconds(5 + random.next() % 300);
    l->jitter = std::chrono::microseconds(random.next() % 50);
    if (random.uniform() < 0.3) l->rate_bytes_per_s = 20'000'000 + random.next() % 100'000'000;
  }
  return o;
}

}  // namespace ddf::sim
