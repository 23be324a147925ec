#include "transports/verbs/verbs_group.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace ddf {

packet_memory::~packet_memory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

bool packet_memory::reserve(std::size_t bytes) {
  void* m = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return false;
  bytes_ = {static_cast<std::byte*>(m), bytes};
  ::madvise(m, bytes, MADV_DONTFORK);   // a child that wrote to it would take the pages away from the device
  return true;
}

result<std::unique_ptr<verbs_group>> verbs_group::open(verbs_calls& calls, const verbs_options& o) {
  if (auto ok = calls.load(); !ok) return tl::unexpected(ok.error());
  std::unique_ptr<verbs_group> g(new verbs_group(calls, o));
  g->name_ = address_text(o.local);
  const auto failed = [&](verbs_step step, int code) { return tl::unexpected(verbs_error(g->name_, step, code)); };
  if (const int e = calls.open(&g->channel_); e != 0) return failed(verbs_step::manager, e);
  if (const int e = calls.open(g->channel_, &g->id_); e != 0) return failed(verbs_step::manager, e);
  if (const int e = calls.bind(g->id_, o.local); e != 0) return failed(verbs_step::find, e);
  verbs_event resolved;
  if (const int e = calls.resolve(g->id_, o.local, o.group, static_cast<int>(o.patience.count())); e != 0) return failed(verbs_step::find, e);
  if (const int e = g->wait_for(verbs_event::kind::resolved, resolved); e != 0) return failed(verbs_step::find, e);
  if (const int e = calls.device(g->id_, g->device_); e != 0) return failed(verbs_step::find, e);
  g->name_ = g->device_.name + ":" + std::to_string(g->device_.port);
  if (!o.devices.matches(g->device_.name, g->device_.port))
    return fail(errc::invalid_argument, address_text(o.local) + " is an address of " + g->name_ + ", which the device selector rules out; choose another interface, or another selector");
  if (!g->device_.active) return fail(errc::network, "port " + g->name_ + " is not active (ibv_devinfo): is the cable in, and on InfiniBand a subnet manager running");
  return g;
}

// Of the events that come before it, those that say nothing are passed over.
int verbs_group::wait_for(verbs_event::kind what, verbs_event& out) {
  for (int seen = 0; seen < 8; ++seen) {
    const int e = calls_.next_event(channel_, static_cast<int>(options_.patience.count()), out);
    if (e != 0) return e == EAGAIN ? ETIMEDOUT : e;
    if (out.what == what) return out.status;
    if (out.what == verbs_event::kind::failed) return out.status != 0 ? out.status : EIO;
    if (out.what == verbs_event::kind::ended) return ENODEV;
  }
  return EPROTO;
}

result<void> verbs_group::open_queue(std::uint32_t sends, std::uint32_t receives) {
  const auto failed = [&](int code) { return tl::unexpected(verbs_error(name_, verbs_step::open, code)); };
  if (const int e = calls_.open(id_, &pd_); e != 0) return failed(e);
  if (const int e = calls_.open(id_, &completions_, fd_); e != 0) return failed(e);
  if (const int e = calls_.open(id_, sends + receives, completions_, &cq_); e != 0) return failed(e);
  if (const int e = calls_.open(id_, pd_, cq_, sends, receives); e != 0) return failed(e);
  queue_ = true;
  return {};
}

result<void> verbs_group::register_memory(std::span<std::byte> memory) {
  if (const int e = calls_.open(pd_, memory, &memory_); e != 0) return tl::unexpected(verbs_error(name_, verbs_step::reg, e));
  return {};
}

result<void> verbs_group::join(bool sends_only) {
  const auto failed = [&](verbs_step step, int code) { return tl::unexpected(verbs_error(name_, step, code)); };
  if (const int e = calls_.join(id_, options_.group, sends_only); e != 0) return failed(verbs_step::join, e);
  joined_ = true;   // or about to be
  verbs_event joined;
  if (const int e = wait_for(verbs_event::kind::joined, joined); e != 0) return failed(verbs_step::join, e);
  if (!sends_only) return {};
  address_ = joined.joined;
  if (options_.traffic_class >= 0) address_.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
  if (options_.service_level >= 0) address_.service_level = static_cast<std::uint8_t>(options_.service_level);
  address_.hop_limit = static_cast<std::uint8_t>(std::clamp(options_.ttl, static_cast<int>(address_.hop_limit), 255));
  if (const int e = calls_.open(pd_, address_, &to_); e != 0) return failed(verbs_step::address, e);
  return {};
}

int verbs_group::poll(std::span<verbs_completion> out) {
  if (const int n = calls_.poll(cq_, out); n != 0) return n;
  // What ends between a look and arming makes no event: so look again after it.
  while (calls_.take_event(completions_)) armed_ = false;
  if (!armed_)
    if (const int e = calls_.arm(cq_); e != 0) return -e;
  armed_ = true;
  return calls_.poll(cq_, out);
}

int verbs_group::look() {
  verbs_event e;
  for (int seen = 0; seen < 8; ++seen) {
    if (calls_.next_event(channel_, 0, e) != 0) return 0;
    if (e.what == verbs_event::kind::failed || e.what == verbs_event::kind::ended) return e.status != 0 ? e.status : ENODEV;
  }
  return 0;
}

verbs_group::~verbs_group() {
  if (to_ != nullptr) calls_.close(to_);
  if (joined_) calls_.leave(id_, options_.group);
  if (queue_) calls_.close_queue_pair(id_);
  if (memory_ != nullptr) calls_.close(memory_);
  if (cq_ != nullptr) calls_.close(cq_);
  if (completions_ != nullptr) calls_.close(completions_);
  if (pd_ != nullptr) calls_.close(pd_);
  if (id_ != nullptr) calls_.close(id_);
  if (channel_ != nullptr) calls_.close(channel_);
}

}  // namespace ddf
