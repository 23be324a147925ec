// The bytes of an object that is published: a file, a folder, or memory of the caller.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ddf/publisher.hpp>
#include "lib/model/manifest.hpp"

namespace ddf {

class descriptor_cache;

class object_source {
 public:
  virtual ~object_source() = default;
  /// Fills `out` from a part. Thread-safe: digests are made beside the sending.
  /// Errors: source_changed when the file is shorter than announced or another one, io. Cost: one pread.
  virtual result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// The bytes themselves when they are in memory; empty when they have to be read.
  virtual std::span<const std::byte> view(std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Errors: source_changed (naming the file and what differs) when size, mtime, ctime, inode or device of any file is not
  /// what it was when opened. Cost: one call per file.
  virtual result<void> check_unchanged() = 0;
  /// Whether what read() reaches by the files it has open is what it was, though another may stand at their paths now. The base
  /// of a delta needs no more. Errors: source_changed.
  virtual result<void> check_open() { return check_unchanged(); }
  /// Whether what was read so far is one version: nothing changed, or only the names, while the files that were read are open
  /// here still. Errors: source_changed.
  result<void> check_read() {
    auto unchanged = check_unchanged();
    return unchanged || !check_open() ? unchanged : result<void>{};
  }
  /// An open file of a part, to clone it; -1: none. Good until the next call.
  virtual int descriptor_of(std::uint32_t) { return -1; }
  virtual std::string path() const { return {}; }   // empty: memory
  /// A digest over path, size, mtime, ctime and inode of every file: equal means unread files may be taken as unchanged. Zero for memory.
  virtual digest identity() const = 0;
};

struct opened_source {
  manifest description;   // the version is not set (1)
  std::unique_ptr<object_source> source;
  std::vector<std::string> warnings;   // e.g. sockets and devices left out of a folder
};

/// Opens a file or a folder as one object. Regular files and symbolic links to regular files are read; a folder keeps its
/// tree, empty folders too, in the order of its names' bytes; at most a bounded number of files is open at a time.
/// Left out of a folder, with a warning: sockets, devices, pipes, links to nothing, and hidden partial files of ddf.
/// Input:  `descriptors`, when given, is shared between sources, so that all together keep few files open.
/// Errors: io (not there, not readable), invalid_argument (name or tree not usable, a link to a folder inside a folder), too_large.
result<opened_source> open_path(const path_source& path, std::shared_ptr<descriptor_cache> descriptors = {});

/// Errors: invalid_argument for a name or part names that are not usable.
result<opened_source> open_memory(const std::string& name, std::span<const part_view> parts);

}  // namespace ddf
