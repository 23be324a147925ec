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
#include "lib/model/session_plan.hpp"
#include "lib/store/delta_base.hpp"

namespace ddf {

class file_system;

/// Keeps a version where it is, or among the kept ones once another takes its place, as long as the lease lives.
class version_lease {
 public:
  virtual ~version_lease() = default;
  virtual std::string path() const = 0;   // where it is now
  virtual const manifest& description() const = 0;
  virtual const digest& root() const = 0;
};

class object_sink {
 public:
  virtual ~object_sink() = default;   // closes; what was not committed, kept or discarded is discarded
  /// Writes pieces that follow each other in a part. Thread-safe for stretches apart; commit() comes after the last write.
  /// Errors: io with errno (ENOSPC: the disk is full). Cost: one pwritev in the common case; short writes are continued.
  virtual result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) = 0;
  /// Reads back; what was not written yet is zero. Thread-safe, also beside write().
  virtual result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Makes the object visible under its name, whole: sizes exact, permissions set, fsync, rename, fsync of the folder.
  /// Output: the final path (empty for memory). Errors: io; refused when the name is taken by something that must not be
  /// replaced. After an error nothing has changed under the name, and keep() or discard() decide about what is there.
  virtual result<std::string> commit(const digest_table& digests) = 0;
  /// Writes down which blocks (rows of the digest table) are on disk, and goes on: what survives a killed receiver.
  virtual result<void> checkpoint(const range_set& complete) = 0;
  /// Keeps what is there for a later resume: `complete` are the blocks that are on disk. The last call.
  virtual result<void> keep(const range_set& complete) = 0;
  /// Removes what is there. The last call.
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
    std::string state_directory;   // created when missing; empty: nothing is remembered, so nothing resumes and no folder is replaced
    unsigned keep = 0;             // how many older versions of each object stay, in .ddf-versions/NAME.versions/VERSION
  };
  /// Input: `files`, when given, stands in for the system calls that change files.
  /// Errors: io, naming the folder and the cure.
  static result<std::unique_ptr<output_tree>> open(const options& o, std::shared_ptr<file_system> files = {});
  virtual ~output_tree() = default;   // sinks may outlive it

  /// Prepares a hidden file or folder beside the final name (`.NAME.ddf-XXXXXXXX.partial`), or takes up the one an
  /// earlier transfer of an equal description (all but the version) left. An object of one unnamed part lands as a file,
  /// another as a folder. When another process or sink works on the same name, a fresh one is made, which cannot be kept.
  /// Errors: refused (the name is taken by a folder, or a folder object's name by a file or by a folder that ddf did not make;
  /// a component is a link), invalid_argument, io (ENOSPC, EACCES …). Only this object is affected. Thread-safe.
  virtual result<opened_sink> open_object(const manifest& m) = 0;
  /// What is here of an object, put there by ddf, whole and untouched (size, mtime, inode as recorded): what is visible under its
  /// name first, current when it is from an equal description, so that a receiver fetches nothing; then kept versions, newest
  /// first. `object` is 0. Cost: a few small files and one stat per file of the object.
  virtual std::vector<held_version> held(const manifest& m) const = 0;
  /// Opens the version with this root for reading. Errors: stale_base: it is not here any more, or was touched.
  virtual result<delta_base> open_base(const std::string& name, const digest& root) const = 0;
  /// A lease on a version; 0: on the one that is visible. Errors: unknown_version, which names those that are here.
  virtual result<std::shared_ptr<const version_lease>> lease(const std::string& name, version_id version) = 0;
  virtual const std::string& directory() const = 0;   // real path
  virtual std::string final_path(const manifest& m) const = 0;
  /// Bytes that may be written: what is free in the folder for this user.
  virtual std::uint64_t bytes_free() const = 0;
};

/// Keeps an object in sealed shared memory (memfd); `view` gives the parts after commit.
class memory_sink : public object_sink {
 public:
  /// Errors: io, too_large (beyond what this machine can address).
  static result<std::unique_ptr<memory_sink>> open(const manifest& m);
  /// The bytes of a part, immutable, as long as the sink lives. Empty before commit().
  virtual std::span<const std::byte> view(std::uint32_t part) const = 0;
};

}  // namespace ddf
