#include <ddf/subscriber.hpp>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "lib/model/object_name.hpp"
#include "lib/runtime/bulk_lanes.hpp"
#include "lib/runtime/rails.hpp"
#include "lib/runtime/reception.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr std::uint32_t receive_buffer_least = 1 << 20;   // less is told: it limits how fast a group may go
static constexpr std::size_t sessions_max = 16;      // at once
static constexpr std::size_t remembered_max = 256;   // ended sessions whose late packets are not mistaken for new ones

// 30, 0.5: without trailing zeros.
static std::string seconds_text(std::chrono::nanoseconds d) {
  std::string text = std::to_string(seconds(duration(d)));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

class subscriber_impl final : public subscriber {
 public:
  subscriber_impl(const subscriber_options& options, network_plan plan)
      : work_(asio::make_work_guard(io_)), commits_(1), memory_(options.keep), lanes_(io_), reader_(io_, lanes_), plan_(std::move(plan)), id_{random_number()}, rng_(random_number()),
        shell_{io_, options, commits_, memory_, nullptr, [this](const manifest& m) { return wanted(m); },
               [this](const std::shared_ptr<const object>& o) { deliver(o); }, [this](const send_message& m) { send(m); }, [this] { rejoin(); },
               reader_, [this](std::uint32_t rail) { return local_address(rail); }},
        query_timer_(io_, [this] { ask_for_senders(); }), check_timer_(io_, [this] { check(); }) {}

  ~subscriber_impl() override {
    stop();
    if (thread_.joinable()) {
      wait();
      asio::post(io_, [this] { io_.stop(); });
      thread_.join();
    }
    commits_.join();
  }

  result<void> open_all() {
    const subscriber_options& o = shell_.options;
    if (!o.output_directory.empty()) {
      const std::string state = o.state_directory.empty() ? default_state_directory() : o.state_directory;
      auto tree = output_tree::open({o.output_directory, state, o.keep});
      if (!tree) return tl::unexpected(tree.error());
      tree_ = std::move(*tree);
      shell_.tree = tree_.get();
    }
    udp_socket::options so;
    so.ttl = plan_.ttl;
    so.buffer_bytes = o.socket_buffer;
    if (plan_.verbs)
      if (auto ok = open_bulk(); !ok) return ok;
    if (o.multicast != multicast_use::off) {
      auto group = udp_socket::open_group(plan_.group, so);
      if (!group) {
        if (o.multicast == multicast_use::require) return tl::unexpected(group.error());
        shell_.log(log_level::warning, describe(group.error()) + ". Going on without multicast");
      } else {
        group_ = std::move(*group);
        std::size_t joined = 0;
        error first;
        for (const network_interface& n : plan_.interfaces.rails) {
          if (auto ok = group_->join(n.index, plan_.source ? &*plan_.source : nullptr); ok) ++joined;
          else {
            if (first.code == errc::ok) first = ok.error();
            shell_.log(log_level::warning, n.name + ": " + describe(ok.error()));
          }
        }
        if (joined == 0) return tl::unexpected(first);
        if (plan_.interfaces.rails.size() > 1) group_->tell_interface();
      }
    }
    endpoint any;
    any.v6 = plan_.group.v6;
    auto unicast = udp_socket::open_unicast(any, plan_.interfaces.rails.front().index, so);
    if (!unicast) return tl::unexpected(unicast.error());
    unicast_ = std::move(*unicast);
    if (plan_.interfaces.rails.size() > 1) unicast_->tell_interface();
    const std::uint32_t granted = group_ ? group_->receive_buffer() : unicast_->receive_buffer();
    if (granted < receive_buffer_least)
      shell_.log(log_level::warning, "the receive buffer is " + std::to_string(granted) + " bytes: enough for a slow start only, the sender will hold back. Raise it: sysctl -w net.core.rmem_max=33554432");
    return {};
  }

  result<void> subscribe(const std::string& pattern, callback on_object) override {
    if (started_) return fail(errc::invalid_argument, "subscribe() comes before start()");
    if (pattern.empty() || !is_utf8(pattern)) return fail(errc::invalid_argument, "pattern '" + printable(pattern) + "' is empty or not UTF-8; '**' matches every name");
    subscriptions_.push_back({pattern, std::move(on_object)});
    return {};
  }

  result<void> start() override {
    if (started_) return fail(errc::invalid_argument, "started already");
    if (subscriptions_.empty()) subscriptions_.push_back({"**", {}});
    started_ = true;
    started_at_ = now();
    last_session_ = started_at_;
    if (group_) {
      group_descriptor_ = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(group_->fd()));
      listen(*group_descriptor_, *group_, true);
    }
    for (const auto& b : bulk_) listen(b);
    unicast_descriptor_ = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(unicast_->fd()));
    listen(*unicast_descriptor_, *unicast_, false);
    ask_for_senders();
    check_timer_.at(now() + 500ms);
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  result<std::shared_ptr<const object>> get(const std::string& name, std::uint64_t version) override {
    if (!tree_) return memory_.get(name, version);
    auto lease = tree_->lease(name, version_id{version});
    if (!lease) return tl::unexpected(lease.error());
    return std::shared_ptr<const object>(std::make_shared<received_object>((*lease)->description(), (*lease)->path(), *lease));
  }

  report wait() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return finished_; });
    return report_;
  }
  bool wait_for(std::chrono::nanoseconds limit) override {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, limit, [this] { return finished_; });
  }
  progress snapshot() const override {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  void stop() override {
    if (!started_) {
      const std::lock_guard lock(mutex_);
      if (!finished_) report_.outcome = {errc::interrupted, 0, "stopped before it started"};
      finished_ = true;
      return;
    }
    asio::post(io_, [this] {
      if (ending_) return;
      stopping_ = true;
      if (active_.empty()) return end(shell_.options.follow ? last_outcome_ : error{errc::interrupted, 0, "interrupted while waiting for a sender"});
      const auto all = active_;
      for (const auto& r : all) r->stop({errc::interrupted, 0, "interrupted; what arrived is kept for a resume"});
    });
  }

 private:
  struct subscription {
    std::string pattern;
    callback on_object;
  };

  bool wanted(const manifest& m) const {
    return std::ranges::any_of(subscriptions_, [&](const subscription& s) { return name_matches(m.name, s.pattern); });
  }

  void deliver(const std::shared_ptr<const object>& o) const {   // commit thread
    for (const subscription& s : subscriptions_)
      if (s.on_object && name_matches(o->name(), s.pattern)) s.on_object(o);
  }

  // --- packets in -------------------------------------------------------------------------------------------------------

  void listen(asio::posix::stream_descriptor& descriptor, udp_socket& socket, bool to_group) {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [this, &descriptor, &socket, to_group](const asio::error_code& e) {
      if (e || ending_) return;
      if (to_group)   // what an announcement says was sent may have come the other way: look there first
        for (const auto& b : bulk_) take_all(*b);
      take_all(socket, [&](const datagrams& d) { handle(d, to_group); });
      for (std::size_t i = 0; i < active_.size(); ++i) active_[i]->arm();
      if (!ending_) listen(descriptor, socket, to_group);
      publish_snapshot();
    });
  }

  /// Output: whether nothing is left; else it has to be called again without waiting.
  template <class Handle>
  bool take_all(bulk_receiver& from, Handle handle_all) {
    for (int round = 0; round < 64 && !ending_; ++round) {
      receive_time_ = now();
      const std::size_t n = from.receive([&](const datagrams& d) {
        handle_all(d);
        drain();
      });
      if (n == 0) return true;
      for (const auto& r : active_) r->flush();
      drain();
    }
    return false;
  }

  // --- DATA to the group that does not come by a socket -------------------------------------------------------------------

  struct bulk_rail {
    std::uint32_t rail = 0;
    std::unique_ptr<verbs_receiver> lane;   // null: went away, to be opened again
    std::unique_ptr<asio::posix::stream_descriptor> descriptor;
  };

  result<void> open_bulk() {
    auto& rails = plan_.interfaces.rails;
    std::vector<network_interface> usable;
    result<void> first;
    for (const network_interface& n : rails) {
      auto lane = open_bulk_receiver(shell_.options, plan_, n, first_patience);
      if (!lane) {
        if (first) first = tl::unexpected(lane.error());
        shell_.log(plan_.interfaces_named ? log_level::warning : log_level::debug, n.name + ": " + describe(lane.error()));
        continue;
      }
      shell_.log(log_level::info, "receiving from the group by " + (*lane)->name() + " on " + n.name + " (" + std::to_string((*lane)->slots()) + " buffers)");
      auto b = std::make_shared<bulk_rail>();
      b->rail = static_cast<std::uint32_t>(usable.size());
      usable.push_back(n);
      adopt(*b, std::move(*lane));
      bulk_.push_back(std::move(b));
    }
    if (usable.empty()) return first;
    rails = std::move(usable);
    return {};
  }

  void adopt(bulk_rail& b, std::unique_ptr<verbs_receiver> lane) {
    b.lane = std::move(lane);
    b.descriptor = std::make_unique<asio::posix::stream_descriptor>(io_, ::dup(b.lane->fd()));
  }

  void listen(const std::shared_ptr<bulk_rail>& b) {
    if (!b->descriptor) return;
    b->descriptor->async_wait(asio::posix::stream_descriptor::wait_read, [this, weak = std::weak_ptr(b)](const asio::error_code& e) {
      if (const auto alive = weak.lock(); alive && !e) serve(alive);
    });
  }

  void serve(const std::shared_ptr<bulk_rail>& b) {
    if (ending_) return;
    const bool all = take_all(*b);
    for (std::size_t i = 0; i < active_.size(); ++i) active_[i]->arm();
    publish_snapshot();
    if (all) return listen(b);
    asio::post(io_, [this, b] { serve(b); });
  }

  bool take_all(bulk_rail& b) {
    return !b.lane || take_all(*b.lane, [&](const datagrams& d) { handle(b, d); });
  }

  void handle(const bulk_rail& b, const datagrams& d) {
    for (std::size_t i = 0; i < d.count();) {
      const auto run = d.run_from(i);
      i += run ? run->count : 1;
      const auto r = run ? std::ranges::find(active_, run->head.session_tag, [](const auto& a) { return static_cast<std::uint32_t>(a->engine().session().value); }) : active_.end();
      if (r != active_.end()) (*r)->handle_run(receive_time_, (*r)->sender_on(b.rail), true, *run);
      else dropped_["foreign"] += run ? run->count : 1;
    }
  }

  void reopen(const std::shared_ptr<bulk_rail>& b) {
    const network_interface& n = plan_.interfaces.rails[b->rail];
    b->descriptor.reset();
    b->lane.reset();
    auto lane = open_bulk_receiver(shell_.options, plan_, n, later_patience);
    if (!lane) return shell_.log(log_level::debug, n.name + ": " + describe(lane.error()));
    adopt(*b, std::move(*lane));
    listen(b);
    shell_.log(log_level::info, "receiving from the group by " + b->lane->name() + " again");
  }

  void check_bulk() {
    for (const auto& b : bulk_) {
      const error* const problem = b->lane ? b->lane->look() : nullptr;
      if (problem != nullptr) shell_.log(log_level::warning, describe(*problem));
      if (!b->lane || problem != nullptr) reopen(b);
    }
  }

  void drain() {
    // A reception may end here and leave the list: by index, from a copy of the pointer.
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const auto r = active_[i];
      r->drain(receive_time_);
    }
  }

  std::uint32_t rail_of(unsigned interface) const {
    for (std::size_t i = 0; i < plan_.interfaces.rails.size(); ++i)
      if (plan_.interfaces.rails[i].index == interface) return static_cast<std::uint32_t>(i);
    return 0;
  }

  std::string local_address(std::uint32_t rail) const {
    if (rail >= plan_.interfaces.rails.size()) return {};
    const endpoint* a = plan_.interfaces.rails[rail].address_for(plan_.group);
    return a == nullptr ? std::string() : address_text(*a);
  }

  void handle(const datagrams& d, bool to_group) {
    const path from{d.from, rail_of(d.interface)};
    for (std::size_t i = 0; i < d.count();) {
      if (const auto run = d.run_from(i)) {
        handle(from, to_group, *run);
        i += run->count;
      } else {
        handle(from, to_group, d.datagram(i++));
      }
    }
  }

  void handle(const path& from, bool to_group, const data_run& run) {
    for (const auto& r : active_)
      if (static_cast<std::uint32_t>(r->engine().session().value) == run.head.session_tag)   // the engine knows the sender's addresses
        return r->handle_run(receive_time_, from, to_group, run);
    dropped_["foreign"] += run.count;
  }

  void handle(const path& from, bool to_group, std::span<const std::byte> bytes) {
    const auto session = peek_session(bytes);
    if (!session || !type_of(bytes)) {
      ++dropped_["foreign"];
      return;
    }
    for (const auto& r : active_)
      if (r->engine().session() == *session) {
        if (to_group && !bulk_.empty() && *type_of(bytes) == packet_type::announce) r->announced_by(from);
        return r->handle_datagram(receive_time_, from, to_group, bytes);
      }
    if (*type_of(bytes) != packet_type::announce || std::ranges::find(ended_, *session) != ended_.end()) {
      ++dropped_[*type_of(bytes) == packet_type::query ? "query" : "other_session"];
      return;
    }
    if (!parse_message(bytes)) {
      ++dropped_["malformed"];
      return;
    }
    begin(*session, from, to_group, bytes);
  }

  void begin(session_id session, path from, bool to_group, std::span<const std::byte> bytes) {
    if (stopping_ || ending_) return;
    if (plan_.source && from.peer.address != plan_.source->address) {
      ++dropped_["other_source"];
      return;
    }
    if (active_.size() >= sessions_max) {
      ++dropped_["too_many_sessions"];
      return;
    }
    if (!shell_.options.follow && std::ranges::any_of(active_, [](const auto& r) { return r->engine().joined(); })) {
      ++dropped_["other_session"];   // one session was asked for, and is being received
      return;
    }
    receiver_options o;
    o.id = receiver_id{id_.value ^ session.value ? id_.value ^ session.value : 1};
    o.host = host_name();
    o.buffer_bytes = group_ ? group_->receive_buffer() : unicast_->receive_buffer();
    for (const auto& b : bulk_)
      if (b->lane && (o.group_buffer_bytes == 0 || b->lane->buffer_bytes() < o.group_buffer_bytes)) o.group_buffer_bytes = b->lane->buffer_bytes();
    o.wanted = shell_.wanted;
    if (shell_.options.bytes_max != 0) o.bytes_max = shell_.options.bytes_max;
    else if (!tree_) o.bytes_max = memory_bytes() / 2;
    if (tree_) o.bytes_free = tree_->bytes_free();
    o.multicast = group_ ? shell_.options.multicast : multicast_use::off;
    o.sender_silence = shell_.options.sender_silence;
    o.reads = offered_lanes(shell_.options.repair);
    o.reads_required = lane_required(shell_.options.repair);
    auto r = std::make_shared<reception>(shell_, session, from, std::move(o));
    active_.push_back(r);
    last_session_ = receive_time_;
    r->begin([this](reception& ended) { reception_ended(ended); });
    if (to_group && !bulk_.empty()) r->announced_by(from);
    r->handle_datagram(receive_time_, from, to_group, bytes);
    const std::string rail = from.rail < plan_.interfaces.rails.size() ? plan_.interfaces.rails[from.rail].name : "?";
    shell_.log(log_level::info, "heard a sender at " + to_string(from.peer) + " by " + rail);
    used_interfaces_.insert(used_interfaces_.end(), rail);
  }

  void reception_ended(reception& r) {
    ended_.push_back(r.engine().session());
    if (ended_.size() > remembered_max) ended_.pop_front();
    const auto it = std::ranges::find_if(active_, [&](const auto& a) { return a.get() == &r; });
    if (it == active_.end()) return;
    const auto keep = *it;
    active_.erase(it);
    last_session_ = now();
    if (r.engine().withdrawn()) {
      shell_.log(log_level::info, "a sender asked who holds what, and sends nothing (a dry run)");
      if (stopping_ && active_.empty()) end({errc::interrupted, 0, "interrupted while waiting for a sender"});
      return;
    }
    if (r.engine().wanted_nothing()) {
      shell_.log(log_level::info, "a session held nothing that was asked for");
      offered_.clear();
      for (const manifest& m : r.engine().objects()) {
        if (offered_.size() >= 200) {
          offered_ += ", …";
          break;
        }
        offered_ += (offered_.empty() ? "'" : ", '") + printable(m.name) + "'";
      }
      if (stopping_ && active_.empty()) end({errc::interrupted, 0, "interrupted while waiting for a sender"});
      return;
    }
    keep->add_to(report_building_);
    ++sessions_;
    if (!shell_.options.follow) {
      if (r.outcome().code != errc::ok && r.engine().joined() == false && !stopping_ && !active_.empty()) return;
      return end(r.outcome());
    }
    // A follower goes on after a session that failed; it ends well when the last one did.
    if (r.outcome().code != errc::ok && !stopping_) shell_.log(log_level::error, describe(r.outcome()));
    last_outcome_ = r.outcome();
    if (stopping_ && active_.empty()) end(last_outcome_);
  }

  // --- packets out ------------------------------------------------------------------------------------------------------

  void send(const send_message& m) {
    // The interface that was named wins; otherwise the system's routes decide, as they did for the packet that came.
    const bool forced = plan_.interfaces_named && m.to.peer.rail < plan_.interfaces.rails.size() && !plan_.interfaces.rails[m.to.peer.rail].loopback;
    int e = 0;
    if (unicast_->send(m.to.peer.peer, forced ? plan_.interfaces.rails[m.to.peer.rail].index : 0, m.datagram, &e) != udp_socket::sent::all && e != EAGAIN) ++dropped_[std::string("send: ") + std::strerror(e)];
  }

  void ask_for_senders() {
    if (ending_ || stopping_) return;
    const bool idle = std::ranges::none_of(active_, [](const auto& r) { return r->engine().joined(); });
    if (idle) {
      const auto q = write_message(query{id_}, control_bytes_max);
      for (const network_interface& n : plan_.interfaces.rails) {
        endpoint to = plan_.query;
        if (to.v6) to.scope = n.index;
        const bool left = unicast_->send(to, n.index, q) == udp_socket::sent::all;
        if (left || !n.loopback) continue;
        to = *n.address_for(plan_.group);   // Linux routes no IPv6 multicast on the loopback interface: ask this host itself
        to.port = plan_.group.port;
        (void)unicast_->send(to, 0, q);
      }
      if (plan_.source) {
        endpoint to = *plan_.source;
        (void)unicast_->send(to, 0, q);
      }
    }
    query_interval_ = std::min<duration>(query_interval_ * 3, 2s);
    query_timer_.at(now() + query_interval_);
  }

  void rejoin() {
    if (!group_) return;
    const endpoint* source = plan_.source ? &*plan_.source : nullptr;
    for (const network_interface& n : plan_.interfaces.rails) {
      group_->leave(n.index, source);
      (void)group_->join(n.index, source);
    }
    asio::post(io_, [this] {   // not while what came by them is being handled
      for (const auto& b : bulk_)
        if (!ending_) reopen(b);
    });
    shell_.log(log_level::debug, "left and joined the group again");
  }

  // --- once or twice a second ---------------------------------------------------------------------------------------------

  void check() {
    if (ending_) return;
    refresh_interfaces();
    check_bulk();
    const bool waiting = std::ranges::none_of(active_, [](const auto& r) { return r->engine().joined(); });
    const duration timeout = shell_.options.timeout;
    if (waiting && !active_.empty() && !shell_.options.follow && now() - active_.front()->engine().when().first_heard > std::min(duration(shell_.options.sender_silence), timeout))
      return end({errc::network, 0, "a sender at " + to_string(active_.front()->engine().sender_path().peer) + " is heard, but what it answers does not arrive: a firewall on this host or on the way drops unicast UDP to this program (nft list ruleset)"});
    if (waiting && !shell_.options.follow && now() - last_session_ > timeout && now() - started_at_ > timeout) {
      if (!offered_.empty()) return end({errc::no_sender, 0, "a sender was heard, but nothing it offers was asked for: it has " + offered_ + ". Name one of these, or a pattern that matches ('**' matches every name)"});
      return end({errc::no_sender, 0,
                  "no sender was heard on " + to_string(plan_.group) + " within " + seconds_text(timeout) + " s (listening on " +
                      describe(plan_.interfaces.rails, plan_.group) + "). Is mcsend running with the same --group? Check --interface, the firewall (UDP port " + std::to_string(plan_.group.port) +
                      "), and the switch's IGMP snooping; give --source ADDR to reach the sender where no multicast passes"});
    }
    publish_snapshot();
    check_timer_.at(now() + 500ms);
  }

  // An interface that was deleted and made again has lost its membership without a word.
  void refresh_interfaces() {
    auto all = list_interfaces();
    if (!all) return;
    auto choice = choose_interfaces(*all, shell_.options.interfaces, plan_.group);
    if (!choice) return;
    for (const network_interface& n : choice->rails) {
      const auto known = std::ranges::find(plan_.interfaces.rails, n.name, &network_interface::name);
      const bool same = known != plan_.interfaces.rails.end() && known->index == n.index;
      if (same) continue;
      if (known != plan_.interfaces.rails.end()) *known = n;
      else if (plan_.interfaces.rails.size() < 16 && !plan_.verbs) plan_.interfaces.rails.push_back(n);
      else continue;
      if (group_) group_->tell_interface();
      unicast_->tell_interface();
      if (group_) (void)group_->join(n.index, plan_.source ? &*plan_.source : nullptr);
      shell_.log(log_level::info, "joined on " + n.name + ", which is new");
    }
  }

  void publish_snapshot() {
    const time_point t = now();
    if (t < snapshot_due_) return;
    snapshot_due_ = t + 40ms;
    progress p;
    for (const auto& r : active_) {
      const progress one = r->snapshot();
      if (one.phase != progress::phase::discovering || active_.size() == 1) p = one;
    }
    const double elapsed = seconds(t - rate_at_);
    const std::lock_guard lock(mutex_);
    p.bytes_per_s = progress_.bytes_per_s;
    if (elapsed > 0.2) {
      p.bytes_per_s = p.bytes_done >= rate_bytes_ ? static_cast<double>(p.bytes_done - rate_bytes_) / elapsed : 0;
      rate_at_ = t;
      rate_bytes_ = p.bytes_done;
    }
    progress_ = std::move(p);
  }

  void end(error outcome) {
    if (ending_) return;
    ending_ = true;
    query_timer_.cancel();
    check_timer_.cancel();
    report r = std::move(report_building_);
    r.outcome = std::move(outcome);
    r.bulk.transport = shell_.options.transport;
    std::ranges::sort(used_interfaces_);
    used_interfaces_.erase(std::unique(used_interfaces_.begin(), used_interfaces_.end()), used_interfaces_.end());
    r.interfaces = used_interfaces_;
    for (const auto& [reason, n] : dropped_) r.dropped[reason] += n;
    const std::uint64_t full = (group_ ? group_->kernel_drops() : 0) + unicast_->kernel_drops();
    if (full != 0) {
      r.dropped["receive buffer full"] += full;
      const std::uint32_t granted = group_ ? group_->receive_buffer() : unicast_->receive_buffer();
      r.warnings.push_back(std::to_string(full) + " packets found the receive buffer full (" + std::to_string(granted) + " bytes granted); they were sent again. " +
                           (granted >= shell_.options.socket_buffer ? "This host was too busy to take them in time" : "Raise it: sysctl -w net.core.rmem_max=33554432"));
    }
    {
      const std::lock_guard lock(mutex_);
      report_ = std::move(r);
      progress_.phase = progress::phase::finished;
      if (report_.outcome.code == errc::ok && progress_.bytes_total != 0) progress_.bytes_done = progress_.bytes_total;
      finished_ = true;
    }
    done_.notify_all();
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::thread_pool commits_;
  memory_versions memory_;
  lanes lanes_;
  memory_reader reader_;
  network_plan plan_;
  receiver_id id_;
  prng rng_;
  subscriber_shell shell_;
  std::unique_ptr<output_tree> tree_;
  std::vector<std::shared_ptr<bulk_rail>> bulk_;
  std::unique_ptr<udp_socket> group_, unicast_;
  std::unique_ptr<asio::posix::stream_descriptor> group_descriptor_, unicast_descriptor_;
  std::vector<subscription> subscriptions_;
  std::vector<std::shared_ptr<reception>> active_;
  std::deque<session_id> ended_;
  lazy_timer query_timer_, check_timer_;
  duration query_interval_ = 50ms;
  time_point receive_time_{}, started_at_{}, last_session_{}, snapshot_due_{}, rate_at_{};
  std::uint64_t rate_bytes_ = 0, sessions_ = 0;
  std::map<std::string, std::uint64_t> dropped_;
  std::vector<std::string> used_interfaces_;
  report report_building_;
  error last_outcome_;
  std::string offered_;   // by a session that held nothing that was asked for
  bool started_ = false, stopping_ = false, ending_ = false;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  report report_;
  progress progress_;
};

result<std::unique_ptr<subscriber>> subscriber::open(const subscriber_options& options) {
  if (options.timeout <= 0ns) return fail(errc::invalid_argument, "timeout: must be positive");
  auto plan = plan_network(options);
  if (!plan) return tl::unexpected(plan.error());
  for (const std::string& s : plan->interfaces.skipped)
    if (options.log) options.log(plan->interfaces_named ? log_level::warning : log_level::debug, "interface " + s);
  const std::string rails = describe(plan->interfaces.rails, plan->group);
  if (auto ok = check_lane(options, *plan); !ok) return tl::unexpected(ok.error());
  auto s = std::make_unique<subscriber_impl>(options, std::move(*plan));
  if (auto ok = s->open_all(); !ok) return tl::unexpected(ok.error());
  if (options.log) options.log(log_level::info, "listening on " + rails);
  return std::unique_ptr<subscriber>(std::move(s));
}

}  // namespace ddf
