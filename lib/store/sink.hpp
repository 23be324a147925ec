// Where the bytes of a received object go before anyone may see them.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <ddf/error.hpp>
#include "lib/model/manifest.hpp"
#include "lib/model/range_set.hpp"

namespace ddf {

class object_sink {
 public:
  virtual ~object_sink() = default;   // closes; what was not committed, kept or discarded is discarded
  /// Writes pieces that follow each other in a part. Called by one thread; commit() may run on another, after the last write.
  /// Errors: io with errno (ENOSPC: the disk is full). Cost: one pwritev in the common case; short writes are continued.
  virtual result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) = 0;
  virtual result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Makes the object visible under its name, whole: sizes exact, permissions set, fsync, rename, fsync of the folder.
  /// Output: the final path (empty for memory). Errors: io; refused when the name is taken by something that must not be replaced.
  virtual result<std::string> commit(const digest_table& digests) = 0;
  /// Keeps what is there for a later resume: `complete` are the blocks (rows of the digest table) that are on disk.
  virtual result<void> keep(const range_set& complete) = 0;
  /// Removes what is there.
  virtual void discard() = 0;
};

struct opened_sink {
  std::unique_ptr<object_sink> sink;
  range_set resumable;   // blocks an earlier, interrupted transfer left; a hint: each is to be digested before it counts
};

/// Receives below a folder. Nothing can leave it: every path component is opened relative to it, without following links
/// (openat2 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, and component by component where the kernel lacks it).
class output_tree {
 public:
  struct options {
    std::string directory;         // created when missing
    std::string state_directory;   // created when missing
  };
  /// Errors: io, naming the folder and the cure.
  static result<std::unique_ptr<output_tree>> open(const options& o);
  virtual ~output_tree() = default;

  /// Prepares a hidden file or folder beside the final name (`.NAME.ddf-XXXXXXXX.partial`), or takes up the one an
  /// earlier transfer of an equal description (all but the version) left.
  /// Errors: refused (the name is taken by a folder, or a folder object's name by a file or by a folder that ddf did not make;
  /// a component is a link), io (ENOSPC, EACCES …). Only this object is affected.
  virtual result<opened_sink> open_object(const manifest& m) = 0;
  /// The root digest of the version that is under this description's name now, if ddf put it there and it is untouched
  /// (size, mtime, inode as recorded). Lets a receiver that is current fetch nothing.
  virtual std::optional<digest> current_root(const manifest& m) const = 0;
  virtual std::string final_path(const manifest& m) const = 0;
  /// Bytes that may be written: what is free in the folder for this user.
  virtual std::uint64_t bytes_free() const = 0;
};

/// Keeps an object in sealed shared memory (memfd); `view` gives the parts after commit.
class memory_sink : public object_sink {
 public:
  static result<std::unique_ptr<memory_sink>> open(const manifest& m);
  virtual std::span<const std::byte> view(std::uint32_t part) const = 0;
};

}  // namespace ddf
