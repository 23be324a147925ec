// Makes deltas: what the blocks of a target cost from one base, and the stream of those that a plan chose.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>
#include "codecs/delta/stream.hpp"
#include "lib/model/range_set.hpp"
#include "lib/store/delta_base.hpp"
#include "lib/store/scratch.hpp"
#include "lib/store/source.hpp"

namespace ddf {

struct made_delta {
  digest base_root;
  version_id base_version{1};
  std::uint64_t base_bytes = 0;
  std::vector<delta::stream_row> rows;     // payloads lie in `payloads` at `places`, in any order
  std::vector<std::uint64_t> places;
  std::shared_ptr<scratch_file> payloads;
  delta::account account;                  // how the patched blocks are made
  double seconds = 0;                      // it took

  /// Per block what it costs in the stream, its index included; more than the block itself where only the block itself will do.
  std::vector<std::uint64_t> costs(const manifest& target) const;
  static constexpr std::uint64_t overhead_bytes = delta::stream_head::wire_size + 16;
};

struct delta_options {
  delta::profile profile = delta::profile::tight;
  std::string scratch_folder;              // empty: memory
  unsigned threads = 0;                    // 0: one per processor, at most 8
  const range_set* changed = nullptr;      // bytes of the object that may differ from the base; null: any
};

/// Compares block by block, with the target's digests as far as `digests` holds them (all zero: not known), and fills in the rest.
/// Input:  `target` is read by several threads. A block whose digest a block of the base has costs no look at the base.
/// Errors: those of reading; interrupted when `abandon` becomes true.
/// Cost:   one pass over the target, one over the changed part of the base; memory of a few blocks per thread.
result<made_delta> make_delta(const manifest& target, object_source& source, digest_table& digests, bool digests_known, const delta_base& base, const delta_options& o,
                              const std::atomic<bool>& abandon);

/// The stream without the blocks `whole`, as a source of one part.
struct delta_object {
  std::uint64_t bytes = 0;
  std::unique_ptr<object_source> source;
};
delta_object stream_of(const made_delta& d, const digest& target_root, std::uint64_t target_bytes, const std::vector<range>& whole);

/// An object_bytes over a source, which has to outlive it.
std::shared_ptr<const object_bytes> bytes_of(const manifest& m, object_source& source);

}  // namespace ddf
