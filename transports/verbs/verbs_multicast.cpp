#include "transports/verbs/verbs_multicast.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "lib/wire/data_header.hpp"

namespace ddf {

// --- sending --------------------------------------------------------------------------------------------------------------

static constexpr std::uint32_t slots_least = 16;
static constexpr std::size_t posted_most = 64, told_every = 16;   // a completion costs as much as a packet; too few hold back a full ring

result<std::unique_ptr<verbs_sender>> verbs_sender::open(verbs_calls& calls, const verbs_options& o) {
  auto group = verbs_group::open(calls, o);
  if (!group) return tl::unexpected(group.error());
  const verbs_device& device = (*group)->device();
  const std::uint32_t slots = std::max(std::min({o.send_packets, device.requests_max, device.completions_max - std::min(device.completions_max, 1u)}), slots_least);
  std::unique_ptr<verbs_sender> s(new verbs_sender(std::move(*group), slots));
  s->v6_ = o.group.v6;
  if (!s->memory_.reserve(std::size_t(slots) * device.mtu)) return fail(errc::io, "reserving packets to send", ENOMEM);
  if (auto ok = s->group_->open_queue(slots, 1); !ok) return tl::unexpected(ok.error());
  if (auto ok = s->group_->register_memory(s->memory_.bytes()); !ok) return tl::unexpected(ok.error());
  if (auto ok = s->group_->join(true); !ok) return tl::unexpected(ok.error());
  return s;
}

std::uint32_t verbs_sender::header_bytes() const {
  constexpr std::uint32_t transport = 12 + 8 + 4;   // BTH, DETH, ICRC
  if (!group_->device().ethernet) return 8 + 40 + transport + 2;   // LRH, GRH, VCRC
  return (v6_ ? 40 : 20) + 8 + transport;
}

void verbs_sender::take_completions() {
  std::array<verbs_completion, 64> ended;
  for (;;) {
    const int n = group_->poll(ended);
    if (n < 0 && !problem_) problem_ = verbs_error(name(), verbs_step::poll, -n);
    if (n <= 0) return;
    for (const verbs_completion& c : std::span(ended).first(static_cast<std::size_t>(n))) {
      if (c.status != 0 && !problem_) problem_ = verbs_completion_error(name(), true, c.status);
      ended_ = std::clamp(c.id, ended_, posted_);
    }
  }
}

std::size_t verbs_sender::send_batch(std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error) {
  const auto end = [&](sent how, int code, std::size_t done) {
    outcome = how;
    if (error != nullptr) *error = code;
    return done;
  };
  std::array<verbs_send, posted_most> sends;
  std::size_t done = 0;
  while (done < headers.size()) {
    if (free_slots() < posted_most) take_completions();
    if (problem_) return end(sent::failed, ENODEV, done);
    const std::size_t n = std::min<std::size_t>({free_slots(), headers.size() - done, posted_most});
    if (n == 0) return end(sent::would_block, EAGAIN, done);
    for (std::size_t i = 0; i < n; ++i) {
      const iovec &h = headers[done + i], &p = payloads[done + i];
      if (h.iov_len + p.iov_len > datagram_bytes()) return end(sent::failed, EMSGSIZE, done);
      const std::uint64_t number = posted_ + i;
      std::byte* const slot = memory_.bytes().data() + number % slots_ * datagram_bytes();
      std::byte* const at = std::copy_n(static_cast<const std::byte*>(h.iov_base), h.iov_len, slot);
      std::copy_n(static_cast<const std::byte*>(p.iov_base), p.iov_len, at);
      sends[i] = {number + 1, slot, static_cast<std::uint32_t>(h.iov_len + p.iov_len), i + 1 == n || number % told_every == 0};
    }
    std::size_t posted = 0;
    const int e = group_->post(std::span(std::as_const(sends)).first(n), posted);
    posted_ += posted;
    done += posted;
    for (std::size_t i = posted; i-- != 0;)
      if (sends[i].told) {
        told_ = sends[i].id;
        break;
      }
    if (e == ENOMEM && posted_ != ended_) {   // the device's queue is fuller than ours
      take_completions();
      if (problem_) return end(sent::failed, ENODEV, done);
      return told_ > ended_ ? end(sent::would_block, EAGAIN, done) : end(sent::queue_full, ENOBUFS, done);
    }
    if (e != 0) {
      problem_ = verbs_error(name(), verbs_step::send, e);
      return end(sent::failed, ENODEV, done);
    }
  }
  return end(sent::all, 0, done);
}

void verbs_sender::look() {
  if (problem_) return;
  if (const int e = group_->look(); e != 0) problem_ = verbs_error(name(), verbs_step::join, e);
}

// --- receiving ------------------------------------------------------------------------------------------------------------

result<std::unique_ptr<verbs_receiver>> verbs_receiver::open(verbs_calls& calls, const verbs_options& o) {
  auto group = verbs_group::open(calls, o);
  if (!group) return tl::unexpected(group.error());
  const verbs_device& device = (*group)->device();
  const std::uint32_t slots = std::max(std::min({o.buffer_bytes / device.mtu, device.requests_max, device.completions_max - std::min(device.completions_max, 1u)}), slots_least);
  std::unique_ptr<verbs_receiver> r(new verbs_receiver(std::move(*group), slots));
  if (!r->memory_.reserve(slots * (head_stride + r->rest_stride_))) return fail(errc::io, "reserving receive buffers", ENOMEM);
  if (auto ok = r->group_->open_queue(1, slots); !ok) return tl::unexpected(ok.error());
  if (auto ok = r->group_->register_memory(r->memory_.bytes()); !ok) return tl::unexpected(ok.error());
  if (auto ok = r->give_back(); !ok) return tl::unexpected(ok.error());
  if (auto ok = r->group_->join(false); !ok) return tl::unexpected(ok.error());
  return r;
}

verbs_receiver::verbs_receiver(std::unique_ptr<verbs_group> group, std::uint32_t slots)
    : group_(std::move(group)), slots_(slots), rest_stride_(group_->device().mtu - data_header::wire_size), completions_(taken_most) {
  receives_.reserve(taken_most);
}

result<void> verbs_receiver::give_back() {
  while (given_ != taken_ + slots_) {
    receives_.clear();
    for (std::uint64_t number = given_; number != taken_ + slots_ && receives_.size() < taken_most; ++number) {
      const std::size_t slot = number % slots_;
      receives_.push_back({number, {{{head(slot), routing_bytes + data_header::wire_size}, {rest(slot), static_cast<std::uint32_t>(rest_stride_)}}}});
    }
    std::size_t posted = 0;
    const int e = group_->post(receives_, posted);
    given_ += posted;
    if (e == ENOMEM && given_ != taken_) return {};   // the next call gives the rest: some are there still
    if (e != 0) return tl::unexpected(verbs_error(name(), verbs_step::receive, e));
  }
  return {};
}

std::size_t verbs_receiver::receive(const std::function<void(const datagrams&)>& handler) {
  if (problem_) return 0;
  if (auto ok = give_back(); !ok) {
    problem_ = ok.error();
    return 0;
  }
  const int n = group_->poll(completions_);
  if (n < 0) problem_ = verbs_error(name(), verbs_step::poll, -n);
  if (n <= 0) return 0;
  // Neighbours of one size are handed over as one.
  std::size_t first = 0, count = 0, size = 0;
  const auto end_row = [&] {
    if (count != 0) handler(datagrams({head(first) + routing_bytes, head_stride}, {rest(first), rest_stride_}, count, size, size, scratch_));
    count = 0;
  };
  std::size_t packets = 0;
  for (const verbs_completion& c : std::span(completions_).first(static_cast<std::size_t>(n))) {
    ++taken_;
    if (c.status != 0) {
      if (!problem_) problem_ = verbs_completion_error(name(), false, c.status);
      continue;
    }
    const std::size_t slot = c.id % slots_;
    if (c.bytes <= routing_bytes || c.bytes > routing_bytes + group_->device().mtu) continue;   // nothing in it
    const std::size_t bytes = c.bytes - routing_bytes;
    if (count != 0 && (bytes != size || slot != first + count)) end_row();
    if (count == 0) first = slot, size = bytes;
    ++count;
    ++packets;
  }
  end_row();
  return std::max<std::size_t>(packets, 1);
}

const error* verbs_receiver::look() {
  if (!problem_)
    if (const int e = group_->look(); e != 0) problem_ = verbs_error(name(), verbs_step::join, e);
  return problem_ ? &*problem_ : nullptr;
}

}  // namespace ddf
