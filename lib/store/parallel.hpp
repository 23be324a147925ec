// The same work on several threads, which take what there is to do in turns.
#pragma once
#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace ddf {

/// Runs `work()` on several threads, this one among them, and returns when all have.
/// Input: `wanted` threads; 0: one per processor, at most 8. No more than half as many as there are `items`.
template <class Work>
void in_parallel(unsigned wanted, std::size_t items, Work&& work) {
  constexpr unsigned most = 8;   // what comes from memory or a disk is no faster on more
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t threads = std::min<std::size_t>(wanted != 0 ? wanted : std::min(processors, most), items / 2 + 1);
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back([&work] { work(); });
  work();
}

}  // namespace ddf
