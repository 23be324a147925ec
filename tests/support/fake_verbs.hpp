// RDMA devices and the fabric between them, in memory: what a queue pair sends reaches the receive buffers of every member.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "tests/support/allocations.hpp"
#include "transports/verbs/verbs_calls.hpp"

namespace ddf::test {

class fake_verbs final : public verbs_calls {
 public:
  enum class call { load, channel, id, bind, resolve, event, device, join, pd, completions, cq, queue, memory, address, send, receive, poll, arm };

  verbs_device device_is{"fake0", 1, 1024, true, true, 4096, 8192};
  int fails_after = -1;            // calls, of those that can fail; -1: none fails
  int fails_with = EIO;
  std::set<call> failing;          // of these only; empty: of all
  bool holds_sends = false;        // they do not end
  int send_status = 0, receive_status = 0;
  std::uint32_t sends_taken = ~0u; // at once, though more were asked for
  int resolve_status = 0, join_status = 0;
  bool silent = false;             // the fabric answers nothing
  std::uint64_t not_delivered = 0; // no buffer was there
  std::size_t open_handles = 0;
  std::size_t allocated = 0;       // bytes, by this fake, while packets pass
  std::vector<group_address> addressed;

  ~fake_verbs() override = default;

  /// All sends that were held end.
  void end_sends() {
    for (auto& q : queues_)
      while (!q->sending.empty()) end_send(*q);
  }
  void tell(verbs_event e) {
    for (auto& q : queues_) q->events->push_back(e);
  }

  result<void> load() override {
    if (const int e = fails(call::load); e != 0) return fail(errc::unsupported, "not here", e);
    return {};
  }
  int open(rdma_event_channel** out) override {
    if (const int e = fails(call::channel); e != 0) return e;
    channels_.push_back(std::make_unique<std::deque<verbs_event>>());
    *out = reinterpret_cast<rdma_event_channel*>(channels_.back().get());
    return opened();
  }
  int open(rdma_event_channel* channel, rdma_cm_id** out) override {
    if (const int e = fails(call::id); e != 0) return e;
    queues_.push_back(std::make_unique<queue>());
    queues_.back()->events = reinterpret_cast<std::deque<verbs_event>*>(channel);
    *out = reinterpret_cast<rdma_cm_id*>(queues_.back().get());
    return opened();
  }
  int bind(rdma_cm_id*, const endpoint&) override { return fails(call::bind); }
  int resolve(rdma_cm_id* id, const endpoint&, const endpoint&, int) override {
    if (const int e = fails(call::resolve); e != 0) return e;
    of(id).events->push_back({resolve_status == 0 ? verbs_event::kind::resolved : verbs_event::kind::failed, resolve_status, {}});
    return 0;
  }
  int next_event(rdma_event_channel* channel, int, verbs_event& out) override {
    if (const int e = fails(call::event); e != 0) return e;
    auto& events = *reinterpret_cast<std::deque<verbs_event>*>(channel);
    if (silent || events.empty()) return EAGAIN;
    out = events.front();
    events.pop_front();
    return 0;
  }
  int device(rdma_cm_id*, verbs_device& out) override {
    out = device_is;
    return fails(call::device);
  }
  int join(rdma_cm_id* id, const endpoint& group, bool sends_only) override {
    if (const int e = fails(call::join); e != 0) return e;
    of(id).group = group;
    of(id).member = !sends_only;
    verbs_event e{join_status == 0 ? verbs_event::kind::joined : verbs_event::kind::failed, join_status, {}};
    e.joined.queue_pair = 0xffffff;
    e.joined.hop_limit = 1;
    of(id).events->push_back({verbs_event::kind::other, 0, {}});
    of(id).events->push_back(e);
    return 0;
  }
  void leave(rdma_cm_id* id, const endpoint&) override { of(id).member = false; }

  int open(rdma_cm_id* id, ibv_pd** out) override { return handle(call::pd, id, out); }
  int open(rdma_cm_id* id, ibv_comp_channel** out, int& fd) override {
    if (const int e = handle(call::completions, id, out); e != 0) return e;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return errno;
    of(id).readable = ends;
    fd = ends[0];
    return 0;
  }
  int open(rdma_cm_id* id, std::uint32_t, ibv_comp_channel*, ibv_cq** out) override { return handle(call::cq, id, out); }
  int open(rdma_cm_id*, ibv_pd*, ibv_cq*, std::uint32_t, std::uint32_t) override { return fails(call::queue) != 0 ? fails_with : opened(); }
  int open(ibv_pd* pd, std::span<std::byte> memory, ibv_mr** out) override {
    if (const int e = handle(call::memory, pd, out); e != 0) return e;
    reinterpret_cast<queue*>(pd)->memory = memory;
    return 0;
  }
  int open(ibv_pd* pd, const group_address& to, ibv_ah** out) override {
    addressed.push_back(to);
    return handle(call::address, pd, out);
  }

  int post(rdma_cm_id* id, ibv_ah*, const group_address&, ibv_mr*, std::span<const verbs_send> sends, std::size_t& posted) override {
    const own_allocations counted(*this);
    posted = 0;
    if (const int e = fails(call::send); e != 0) return e;
    queue& q = of(id);
    for (const verbs_send& s : sends) {
      if (q.sending.size() >= sends_taken) return ENOMEM;
      ++posted;
      q.sending.push_back({s.id, s.told});
      for (auto& other : queues_)
        if (other->member && other->group == q.group) deliver(*other, {s.at, s.bytes});
      if (!holds_sends) end_send(q);
    }
    return 0;
  }
  int post(rdma_cm_id* id, ibv_mr*, std::span<const verbs_receive> receives, std::size_t& posted) override {
    const own_allocations counted(*this);
    posted = 0;
    if (const int e = fails(call::receive); e != 0) return e;
    for (const verbs_receive& r : receives) of(id).buffers.push_back(r);
    posted = receives.size();
    return 0;
  }
  int poll(ibv_cq* cq, std::span<verbs_completion> out) override {
    if (const int e = fails(call::poll); e != 0) return -e;
    const own_allocations counted(*this);
    auto& ended = reinterpret_cast<queue*>(cq)->ended;
    const std::size_t n = std::min(out.size(), ended.size());
    std::copy_n(ended.begin(), n, out.begin());
    ended.erase(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(n));
    return static_cast<int>(n);
  }
  int arm(ibv_cq* cq) override {
    reinterpret_cast<queue*>(cq)->armed = true;
    return fails(call::arm);
  }
  bool take_event(ibv_comp_channel* channel) override {
    char byte = 0;
    return ::read(reinterpret_cast<queue*>(channel)->readable[0], &byte, 1) == 1;
  }

  void close(ibv_ah*) override { --open_handles; }
  void close(ibv_mr*) override { --open_handles; }
  void close_queue_pair(rdma_cm_id*) override { --open_handles; }
  void close(ibv_cq*) override { --open_handles; }
  void close(ibv_comp_channel* channel) override {
    for (const int fd : reinterpret_cast<queue*>(channel)->readable) ::close(fd);
    --open_handles;
  }
  void close(ibv_pd*) override { --open_handles; }
  void close(rdma_cm_id* id) override {
    std::erase_if(queues_, [&](const auto& q) { return q.get() == &of(id); });
    --open_handles;
  }
  void close(rdma_event_channel* channel) override {
    std::erase_if(channels_, [&](const auto& c) { return c.get() == reinterpret_cast<std::deque<verbs_event>*>(channel); });
    --open_handles;
  }

 private:
  struct own_allocations {
    explicit own_allocations(fake_verbs& f) : fake(f) {}
    ~own_allocations() { fake.allocated += bytes_allocated() - before; }
    own_allocations(const own_allocations&) = delete;
    own_allocations& operator=(const own_allocations&) = delete;
    fake_verbs& fake;
    std::size_t before = bytes_allocated();
  };
  struct queue {
    std::deque<verbs_event>* events = nullptr;
    endpoint group;
    bool member = false, armed = false;
    std::array<int, 2> readable{-1, -1};
    std::span<std::byte> memory;
    std::deque<verbs_receive> buffers;
    std::deque<std::pair<std::uint64_t, bool>> sending;
    std::deque<verbs_completion> ended;
  };
  static queue& of(rdma_cm_id* id) { return *reinterpret_cast<queue*>(id); }

  int opened() {
    ++open_handles;
    return 0;
  }
  template <class From, class To>
  int handle(call which, From* from, To** out) {
    if (const int e = fails(which); e != 0) return e;
    *out = reinterpret_cast<To*>(from);
    return opened();
  }
  int fails(call which) {
    if (fails_after < 0 || (!failing.empty() && !failing.contains(which))) return 0;
    return fails_after-- == 0 ? fails_with : 0;
  }
  void end(queue& q, const verbs_completion& c) {
    q.ended.push_back(c);
    if (q.armed && ::write(q.readable[1], "x", 1) == 1) q.armed = false;
  }
  void end_send(queue& q) {
    const auto [id, told] = q.sending.front();
    q.sending.pop_front();
    if (told || send_status != 0) end(q, {id, send_status, 0});
  }
  void deliver(queue& to, std::span<const std::byte> datagram) {
    if (to.buffers.empty()) {
      ++not_delivered;
      return;
    }
    const verbs_receive r = to.buffers.front();
    to.buffers.pop_front();
    std::vector<std::byte> all(40, std::byte{0xee});   // routing, that says nothing to us
    all.insert(all.end(), datagram.begin(), datagram.end());
    std::span<const std::byte> left(all);
    for (const auto& piece : r.pieces) {
      const std::size_t n = std::min<std::size_t>(left.size(), piece.bytes);
      const bool inside = piece.at >= to.memory.data() && piece.at + n <= to.memory.data() + to.memory.size();
      if (inside) std::copy_n(left.begin(), n, piece.at);
      else return end(to, {r.id, 4, 0});   // protection error
      left = left.subspan(n);
    }
    end(to, {r.id, left.empty() ? receive_status : 1, static_cast<std::uint32_t>(all.size())});
  }

  std::vector<std::unique_ptr<std::deque<verbs_event>>> channels_;
  std::vector<std::unique_ptr<queue>> queues_;
};

}  // namespace ddf::test
