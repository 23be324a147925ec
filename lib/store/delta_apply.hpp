// Applies a delta: from the stream and a base to the blocks of a target, each proven before it counts.
#pragma once
#include <atomic>
#include "lib/session/receiver.hpp"
#include "lib/store/delta_make.hpp"
#include "lib/store/sink.hpp"

namespace ddf {

/// Input:  the whole stream; `base` with its bytes; the sink that takes the target. `wanted` is where the delta is said to lead.
/// Output: the target's digest table, and the blocks that are written and have their digests. A block that comes out wrong
///         (its base changed since) is simply not among them: it is fetched whole.
/// Errors: integrity (not a delta of this target), stale_base (made for another base), io; interrupted.
/// Cost:   one read of base and stream, one write of the target; a few blocks of memory per thread.
result<patch> apply_stream(const scratch_file& stream, std::uint64_t stream_bytes, const manifest& target, const digest& target_root, const delta_base& base, object_sink& sink,
                           unsigned threads, const std::atomic<bool>& abandon);

}  // namespace ddf
