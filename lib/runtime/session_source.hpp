// The bytes of a session's segments: read from the sources, digested on the way, digest tables included.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>
#include "codecs/block_digest.hpp"
#include "lib/model/layout.hpp"
#include "lib/store/source.hpp"

namespace ddf {

/// All block digests of an object, in parallel. Errors: source_changed, io; interrupted when `abandon` becomes true.
result<digest_table> digests_of(const manifest& m, object_source& source, const std::atomic<bool>& abandon);

class session_source {
 public:
  struct item {
    manifest description;
    std::shared_ptr<object_source> source;
    digest_table digests;   // known from before, or empty
    std::shared_ptr<object_source> former = {};   // the bytes of the version published last, by the caller's word
  };
  explicit session_source(std::vector<item> items);
  /// A delta, with its digests.
  void add(item delta);

  std::size_t objects() const { return items_.size(); }
  const item& object(std::size_t i) const { return items_[i]; }
  bool table_known(std::size_t i) const { return known_[i]; }

  /// The payloads of `segments`, valid until the next call. In the first pass (`first_pass`, ascending) blocks are digested as
  /// they are read, so that a digest costs no second read.
  /// Errors: source_changed, io. Cost: one pread per run of adjacent segments; none for memory.
  result<std::span<const iovec>> payloads(const layout& l, std::span<const std::uint64_t> segments, bool first_pass);

  /// The payloads of adjacent segments, one behind the other. Input: `out` has room for just that. Errors: source_changed, io.
  result<void> copy(const layout& l, range segments, std::span<std::byte> out);

  /// All block digests of an object, in parallel. Runs on any thread: it touches nothing but the source.
  /// Errors: source_changed, io; interrupted when `abandon` becomes true.
  result<digest_table> compute_digests(std::size_t object, const std::atomic<bool>& abandon) const {
    return digests_of(items_[object].description, *items_[object].source, abandon);
  }
  void take_digests(std::size_t object, digest_table t);

  /// Whether what was read is one version; see object_source. Errors: source_changed.
  result<void> check_read() const;

 private:
  result<std::span<const std::byte>> table_bytes(std::size_t object);

  std::vector<item> items_;
  std::vector<bool> known_;
  std::vector<std::vector<std::byte>> tables_;   // encoded, made when first asked for
  std::vector<std::byte> buffer_;
  std::vector<iovec> payloads_;
  block_digester digester_;
};

}  // namespace ddf
