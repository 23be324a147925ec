// What happens next: events in order of time, and of the order they were made when times are equal.
//
// A thousand receivers keep hundreds of thousands of packets on their way, most of them due soon: those lie in a wheel of
// buckets of a few microseconds; only the bucket in hand is a heap. What is due later waits in another heap.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "lib/model/assert.hpp"
#include "lib/model/time.hpp"

namespace ddf::sim {

enum class event_kind : std::uint8_t { arrive, process, timer, call };

struct event {
  time_point when;
  std::uint64_t order;   // makes equal times a total order, so that a run repeats exactly
  event_kind kind;
  std::uint32_t node;
  std::uint32_t slot;    // of the packet on its way, or of the function to call
};

class event_queue {
 public:
  /// Input: `when` not before the last event that was popped.
  void push(time_point when, event_kind kind, std::uint32_t node, std::uint32_t slot) {
    put({when, next_order_++, kind, node, slot});
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  time_point next() { return advance(), current_.front().when; }   // not when empty
  event pop() {
    advance();
    --size_;
    return take(current_);
  }

 private:
  static constexpr int bucket_shift = 11;   // 2 us
  static constexpr std::int64_t buckets = 1 << 14;

  static bool later(const event& a, const event& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }
  static std::int64_t bucket_of(const event& e) { return e.when.time_since_epoch().count() >> bucket_shift; }
  static void add(std::vector<event>& heap, const event& e) {
    heap.push_back(e);
    std::push_heap(heap.begin(), heap.end(), later);
  }
  static event take(std::vector<event>& heap) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const event e = heap.back();
    heap.pop_back();
    return e;
  }

  void put(const event& e) {
    const std::int64_t bucket = bucket_of(e);
    if (bucket <= bucket_) return add(current_, e);
    if (bucket >= bucket_ + buckets) return add(far_, e);
    const auto i = static_cast<std::size_t>(bucket % buckets);
    if (wheel_[i].empty()) {
      filled_[i / 64] |= std::uint64_t{1} << i % 64;
      if (wheel_[i].capacity() == 0 && !spare_.empty()) {
        wheel_[i].swap(spare_.back());
        spare_.pop_back();
      }
    }
    wheel_[i].push_back(e);
  }

  std::optional<std::int64_t> next_filled() const {   // the bucket after bucket_ that is not empty
    const auto start = static_cast<std::size_t>((bucket_ + 1) % buckets);
    for (std::size_t k = 0; k <= filled_.size(); ++k) {
      const std::size_t word = (start / 64 + k) % filled_.size();
      std::uint64_t bits = filled_[word];
      if (k == 0) bits &= ~std::uint64_t{0} << start % 64;
      if (k == filled_.size()) bits &= ~(~std::uint64_t{0} << start % 64);
      if (bits == 0) continue;
      const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      return bucket_ + 1 + static_cast<std::int64_t>((i + static_cast<std::size_t>(buckets) - start) % static_cast<std::size_t>(buckets));
    }
    return std::nullopt;
  }

  void advance() {
    DDF_ASSERT(size_ != 0);
    while (current_.empty()) {
      const auto next = next_filled();
      const std::int64_t target = next ? *next : bucket_of(far_.front());
      bucket_ = far_.empty() ? target : std::min(target, bucket_of(far_.front()));
      const auto i = static_cast<std::size_t>(bucket_ % buckets);
      if (!wheel_[i].empty()) {
        filled_[i / 64] &= ~(std::uint64_t{1} << i % 64);
        spare_.push_back(std::move(current_));
        current_ = std::move(wheel_[i]);
        wheel_[i] = {};
        std::make_heap(current_.begin(), current_.end(), later);
      }
      while (!far_.empty() && bucket_of(far_.front()) < bucket_ + buckets) put(take(far_));
    }
  }

  std::int64_t bucket_ = 0;
  std::vector<event> current_, far_;
  std::vector<std::vector<event>> wheel_ = std::vector<std::vector<event>>(buckets), spare_;
  std::array<std::uint64_t, buckets / 64> filled_{};
  std::uint64_t next_order_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ddf::sim
