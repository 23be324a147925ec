// What file and folder sinks have in common: a hidden partial, its record, and the step to its final name.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/store/sink.hpp"
#include "lib/store/tree_core.hpp"

namespace ddf {

/// Where an object of this description lands: as one file, or as a folder of its parts.
bool lands_as_file(const manifest& m);

class partial_sink : public object_sink {
 public:
  ~partial_sink() override;
  partial_sink(const partial_sink&) = delete;
  partial_sink& operator=(const partial_sink&) = delete;

  result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) final;
  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) final;
  result<std::string> commit(const digest_table& digests) final;
  result<void> checkpoint(const range_set& complete) final;
  result<void> keep(const range_set& complete) final;
  void discard() final;

 protected:
  /// Input: `claim` is absent when another works on the same name: then nothing can be kept.
  partial_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim);

  /// Opens a part for reading and writing; makes it when it is missing.
  virtual os_result<descriptor> open_part(std::uint32_t part) = 0;
  /// Gives every part its exact size and permissions, and syncs. Output: what is there, in the order of the parts.
  virtual result<committed_record> finish() = 0;
  virtual result<void> allowed(int folder, const std::string& name) const = 0;

  os_result<descriptor_cache::handle> opened(std::uint32_t part);
  /// Opens a file below `folder` for reading and writing, also one that a commit which failed has made read-only.
  os_result<descriptor> open_writable(int folder, const std::string& path, int flags, mode_t mode);
  /// Size, permissions and, when `sync`, fsync of one part; what it then looks like goes to `out`.
  result<void> finish_part(const descriptor& file, std::uint32_t part, bool sync, committed_record::file& out);
  error fault(const char* attempted, std::uint32_t part, int os) const;
  mode_t final_mode(std::uint32_t part) const { return description_.parts[part].mode & 0777 & ~core_->mask; }

  const std::shared_ptr<tree_core> core_;
  const manifest description_;
  const placement at_;
  const digest described_;         // description_digest()
  const std::uint64_t owner_;   // of descriptors in the cache

 private:
  void close();
  void remove();

  std::optional<receive_state::claim> claim_;
  bool settled_ = false;   // committed, kept or discarded
};

/// Input: the hidden file is there.
std::unique_ptr<partial_sink> make_file_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim);
/// Input: the hidden folder is there.
std::unique_ptr<partial_sink> make_folder_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim);

}  // namespace ddf
