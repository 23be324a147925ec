// Applies a delta while it arrives: from the stream and a base to the blocks of a target, each proven before it counts.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>
#include "codecs/delta/stream.hpp"
#include "codecs/delta/workspace.hpp"
#include "lib/session/receiver.hpp"
#include "lib/store/delta_base.hpp"
#include "lib/store/scratch.hpp"
#include "lib/store/sink.hpp"

namespace ddf {

class delta_applier {
 public:
  struct task {
    std::shared_ptr<const scratch_file> stream;
    std::uint64_t stream_bytes = 0;
    manifest target;
    digest target_root;
    std::function<result<delta_base>()> open_base;   // with its bytes; called once, on a worker
    std::shared_ptr<object_sink> sink;
    unsigned threads = 0;                            // 0: one per processor, at most 8
  };
  /// `on_end` is called once, from a worker, with the target's digest table and the blocks that are written and have their
  /// digests: a block that comes out wrong (its base changed since) is not among them. It is not called after the destructor.
  /// Errors there: integrity (not a delta of this target), stale_base (made for another base), io.
  /// Cost: one read of base and stream, one write of the target; a few blocks of memory per thread.
  delta_applier(task t, std::function<void(result<patch>, double seconds)> on_end);
  /// Gives up: waits for the block that each thread has in hand.
  ~delta_applier();
  delta_applier(const delta_applier&) = delete;
  delta_applier& operator=(const delta_applier&) = delete;

  /// These bytes of the stream can be read, though they may be damaged still. From one thread.
  void arrived(std::uint64_t offset, std::uint64_t bytes);
  /// The stream is whole and verified.
  void complete();

 private:
  void run();
  result<patch> apply();
  result<void> begin();
  void work();
  result<bool> make(std::size_t row, delta::workspace& w, std::vector<std::byte>& made, std::vector<std::byte>& payload);
  bool wait_for(std::uint64_t first, std::uint64_t last);   // false: given up, or another thread failed

  const task task_;
  const std::function<void(result<patch>, double)> on_end_;
  std::vector<block_place> places_, base_places_;
  std::optional<delta_base> base_;
  std::vector<delta::stream_row> rows_;
  patch patch_;

  std::mutex mutex_;
  std::condition_variable more_;
  range_set here_;                    // bytes of the stream
  bool complete_ = false, given_up_ = false;
  std::vector<std::size_t> again_;    // rows that came out wrong while the stream was not proven
  result<void> outcome_;
  double busy_seconds_ = 0;           // the longest that a thread was at work
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_ = false;
  std::jthread thread_;
};

}  // namespace ddf
