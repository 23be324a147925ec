// What a simulated host keeps: objects under their names, and what unfinished transfers left. Outlives its processes.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/range_set.hpp"
#include "lib/session/receiver.hpp"
#include "transports/sim/content.hpp"

namespace ddf::sim {

/// One object being received. Bytes that equal the published ones are only noted, so that a thousand receivers fit into
/// memory; at the first that differ a real buffer is made. What was never written reads as 0xdb.
class sink {
 public:
  sink(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object);

  void write(std::uint32_t part, std::uint64_t offset, std::span<const std::byte> bytes);
  std::vector<std::byte> read(std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) const;
  bool equals_truth() const;
  /// Goes on with another version's truth, keeping the bytes.
  void take_over(std::shared_ptr<const content> truth, std::uint32_t object);
  const manifest& description() const { return manifest_; }
  std::uint64_t bytes_written() const { return written_bytes_; }

 private:
  void materialise(std::uint32_t part);
  std::span<const std::byte> true_bytes(std::uint32_t part) const { return truth_->part(object_, part); }

  manifest manifest_;
  std::shared_ptr<const content> truth_;
  std::uint32_t object_;
  std::vector<range_set> written_;                 // bytes, per part
  std::vector<std::vector<std::byte>> buffers_;    // per part; empty: what was written equals the truth
  std::uint64_t written_bytes_ = 0;
};

class disk {
 public:
  struct faults {   // the nth call fails, counted from 1; 0: none does
    std::uint64_t write = 0, read = 0, commit = 0, open = 0, apply = 0;
  };
  faults fail;
  std::function<void()> on_commit;   // when something becomes visible

  /// Output: also `key`, by which the calls below name what was opened. Takes up what keep() left of an equal description;
  /// when another session has that in hand, starts afresh.
  result<opened_object> open(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object, std::string& key);
  result<opened_object> open_delta(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object, std::string& key);
  /// Makes the rows that the delta makes, from the truth. Errors: stale_base when the base is not what is visible; throws
  /// std::logic_error when the delta's bytes are not those published.
  result<patch> apply(const std::string& delta_key, const std::string& key, const delta_stream& d, const content& truth);
  /// What is visible under a name is no longer what its record says: applying a delta to it fails.
  void spoil(const std::string& name) { visible_.at(name).spoilt = true; }
  result<void> write(const std::string& key, std::uint32_t part, std::uint64_t offset, std::span<const std::byte> bytes);
  result<digest> digest_of_block(const std::string& key, const block_extent& b);
  /// Makes the object visible. Throws std::logic_error when its bytes are not those published, or for a second commit.
  result<void> commit(const std::string& key, const digest& root);
  void discard(const std::string& key);
  void keep(const std::string& key, const range_set& complete);   // for a later resume

  bool visible(const std::string& name) const { return visible_.contains(name); }
  version_id version(const std::string& name) const { return visible_.at(name).description.version; }
  std::size_t objects() const { return visible_.size(); }
  bool has_partial(const std::string& name) const { return partial_.contains(name); }
  std::uint64_t commits() const { return commits_; }
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  struct visible_object {
    manifest description;
    digest root;
    bool spoilt = false;
  };
  struct partial_object {
    std::unique_ptr<sink> bytes;
    range_set complete;
    bool in_hand = true;   // a session writes to it
  };
  std::map<std::string, visible_object> visible_;
  std::map<std::string, partial_object> partial_;
  std::uint64_t writes_ = 0, reads_ = 0, commits_ = 0, commit_calls_ = 0, opens_ = 0, applies_ = 0, bytes_written_ = 0;
};

}  // namespace ddf::sim
