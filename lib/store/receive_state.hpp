// The state folder of a receiver: its records, and the claims that keep two processes from one partial file.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "lib/store/receive_records.hpp"
#include "lib/store/record.hpp"

namespace ddf {

/// Thread-safe. Without a folder nothing is remembered and nothing can be claimed.
class receive_state {
 public:
  /// Input: `directory` may be empty; `place` is the real path of the output folder. Errors: io.
  static result<std::unique_ptr<receive_state>> open(std::shared_ptr<file_system> files, const std::string& directory, const std::string& place);

  /// The right to use the one partial file that an object's name has in this state folder; given back on destruction.
  class claim {
   public:
    claim(claim&& o) noexcept : state_(std::exchange(o.state_, nullptr)), byte_(o.byte_) {}
    claim& operator=(claim&&) = delete;
    ~claim();

   private:
    friend class receive_state;
    claim(receive_state* state, std::uint64_t byte) : state_(state), byte_(byte) {}
    receive_state* state_;
    std::uint64_t byte_;
  };
  /// Output: nothing when another process or sink has it, or when the state folder cannot lock.
  std::optional<claim> try_claim(const std::string& object_name);
  /// Eight hexadecimal digits that belong to an object's name in this state folder, and cannot be guessed from outside.
  std::string tag(const std::string& object_name) const;
  /// Eight random ones.
  static std::string random_tag();

  std::optional<partial_record> load_partial(const std::string& object_name) const;
  result<void> save_partial(const std::string& object_name, const partial_record& r) const;
  void remove_partial(const std::string& object_name) const;

  /// What has `inode` under the final name, when ddf put it there.
  std::optional<committed_record> load_committed(const std::string& object_name, std::uint64_t inode) const;
  /// Before the object gets visible, so that a full disk shows now, and a crash in between leaves something to find.
  /// After, settle_committed() makes these the records, or withdraw_committed() removes them. `t` may be null.
  result<void> prepare_committed(const std::string& object_name, const committed_record& r, const manifest& m, const digest_table* t) const;
  void settle_committed(const std::string& object_name, std::uint64_t inode) const;
  void withdraw_committed(const std::string& object_name, std::uint64_t inode) const;

  /// The description and the digests of what load_committed() found, to read it as the base of a later version.
  std::optional<manifest> load_manifest(const std::string& object_name) const;
  std::optional<digest_table> load_digests(const std::string& object_name) const;
  void forget(const std::string& object_name) const;   // all about a version that is removed

 private:
  static constexpr std::size_t shards = 32;

  receive_state(std::shared_ptr<file_system> files, std::string place) : files_(std::move(files)), place_(std::move(place)) {}
  std::string record(const std::string& object_name, const std::string& kind) const { return record_name(place_, object_name) + kind; }
  void save(const std::string& object_name, const std::string& kind, std::span<const std::byte> bytes) const;
  int lock_file(std::uint64_t byte);
  void release(std::uint64_t byte);

  const std::shared_ptr<file_system> files_;
  const std::string place_;
  descriptor folder_;
  digest secret_;
  std::mutex mutex_;
  std::set<std::uint64_t> claimed_;             // by this process: a lock does not stop its own holder
  std::array<descriptor, shards> lock_files_;   // opened when needed
};

}  // namespace ddf
