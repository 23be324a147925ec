#include "transports/udp/datagrams.hpp"

#include <algorithm>

namespace ddf {

datagrams::datagrams(std::span<const std::byte> bytes, std::size_t size)
    : heads_(bytes.data()), rests_(bytes.data() + std::min(head, bytes.size())), head_stride_(size), rest_stride_(size),
      count_((bytes.size() + size - 1) / size), size_(size), last_(bytes.size() - (count_ - 1) * size) {}

datagrams::datagrams(places heads, places rests, std::size_t count, std::size_t size, std::size_t last, std::vector<std::byte>& scratch)
    : heads_(heads.first), rests_(rests.first), head_stride_(heads.stride), rest_stride_(rests.stride), count_(count), size_(size), last_(last), scratch_(&scratch) {}

std::optional<data_run> datagrams::run_from(std::size_t i) const {
  const std::size_t size = bytes(i);
  if (size <= head) return std::nullopt;
  const std::size_t equal = size == size_ ? count_ - i - (last_ == size_ ? 0 : 1) : 1;
  return take_run(packet_array{heads_ + i * head_stride_, head_stride_, rests_ + i * rest_stride_, rest_stride_, size - head, equal});
}

std::span<const std::byte> datagrams::datagram(std::size_t i) const {
  const std::size_t size = bytes(i);
  if (scratch_ == nullptr) return {heads_ + i * head_stride_, size};
  const std::size_t of_head = std::min(size, head);
  scratch_->resize(size);
  std::copy_n(heads_ + i * head_stride_, of_head, scratch_->begin());
  std::copy_n(rests_ + i * rest_stride_, size - of_head, scratch_->begin() + static_cast<std::ptrdiff_t>(of_head));
  return *scratch_;
}

}  // namespace ddf
