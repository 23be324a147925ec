// What happens next: events in order of time, and of the order they were made when times are equal.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>
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

class event_queue {   // a binary heap
 public:
  void push(time_point when, event_kind kind, std::uint32_t node, std::uint32_t slot) {
    heap_.push_back({when, next_order_++, kind, node, slot});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const event e = heap_.back();
    heap_.pop_back();
    return e;
  }
  bool empty() const { return heap_.empty(); }
  time_point next() const { return heap_.front().when; }

 private:
  static bool later(const event& a, const event& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }
  std::vector<event> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace ddf::sim
