// DATA packets by multicast of InfiniBand or RoCE: datagrams of an RDMA device (UD), that the kernel neither sees nor copies.
//
// A sender is a member that only sends: the device gives it no packet of the group, nor its own. A receiver hears every packet of the
// group; whose they are, those of a sender on the same device among them, is told by the session in each.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>
#include "transports/bulk_lane.hpp"
#include "transports/verbs/verbs_group.hpp"

namespace ddf {

class verbs_sender final : public bulk_sender {
 public:
  /// Errors: unsupported, refused, too_large, network, each with what is missing and the cure. May take seconds.
  static result<std::unique_ptr<verbs_sender>> open(verbs_calls& calls, const verbs_options& o);

  std::size_t send_batch(std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error) override;
  int room_fd() const override { return group_->fd(); }
  void look() override;
  const error* problem() const override { return problem_ ? &*problem_ : nullptr; }

  const verbs_device& device() const { return group_->device(); }
  const std::string& name() const { return group_->name(); }
  std::uint32_t datagram_bytes() const override { return group_->device().mtu; }
  std::uint32_t header_bytes() const override;

 private:
  verbs_sender(std::unique_ptr<verbs_group> group, std::uint32_t slots) : group_(std::move(group)), slots_(slots) {}
  void take_completions();
  std::uint64_t free_slots() const { return slots_ - (posted_ - ended_); }

  packet_memory memory_;                 // a packet each; outlives its registration
  std::unique_ptr<verbs_group> group_;
  const std::uint32_t slots_;
  std::uint64_t posted_ = 0, ended_ = 0; // packets since the start; they end in the order they were posted
  std::uint64_t told_ = 0;               // … up to the last that makes a completion
  bool v6_ = false;
  std::optional<error> problem_;
};

class verbs_receiver final : public bulk_receiver {
 public:
  static result<std::unique_ptr<verbs_receiver>> open(verbs_calls& calls, const verbs_options& o);

  int fd() const override { return group_->fd(); }
  /// `datagrams::from` stays empty: an InfiniBand address is not an address of the sender's interface.
  std::size_t receive(const std::function<void(const datagrams&)>& handler) override;
  /// What ended it: it has to be opened again. Looks at what the fabric has told; a few times a second.
  const error* look();

  const std::string& name() const { return group_->name(); }
  std::uint32_t buffer_bytes() const { return slots_ * group_->device().mtu; }
  std::uint32_t slots() const { return slots_; }

 private:
  verbs_receiver(std::unique_ptr<verbs_group> group, std::uint32_t slots);
  result<void> give_back();
  std::byte* head(std::size_t slot) const { return memory_.bytes().data() + slot * head_stride; }
  std::byte* rest(std::size_t slot) const { return memory_.bytes().data() + slots_ * head_stride + slot * rest_stride_; }

  static constexpr std::size_t routing_bytes = 40;   // before every datagram that is received, whether it was routed (GRH) or not
  static constexpr std::size_t head_stride = 64;     // these, and the header of a DATA packet
  static constexpr std::size_t taken_most = 256;

  packet_memory memory_;                 // heads, then what follows them: payloads of neighbours adjoin
  std::unique_ptr<verbs_group> group_;
  const std::uint32_t slots_;
  const std::size_t rest_stride_;
  std::uint64_t given_ = 0, taken_ = 0;  // slots, since the start; the device fills them in the order they were given
  std::vector<verbs_completion> completions_;
  std::vector<verbs_receive> receives_;
  std::vector<std::byte> scratch_;
  std::optional<error> problem_;
};

}  // namespace ddf
