// The system calls that change files, behind one seam, so that a test can make the nth of them fail.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ddf/error.hpp>
#include "lib/store/descriptor.hpp"

namespace ddf {

template <class T>
using os_result = tl::expected<T, int>;   // the error is an errno: the caller knows what it attempted and says so

/// Every function is the system call of that name: -1 and errno on failure. Thread-safe.
class file_system {
 public:
  virtual ~file_system() = default;
  virtual int openat(int folder, const char* path, int flags, mode_t mode);
  virtual int openat2(int folder, const char* path, int flags, mode_t mode, std::uint64_t resolve);
  virtual ssize_t pwritev(int file, const iovec* pieces, int count, std::int64_t offset);
  virtual int ftruncate(int file, std::int64_t bytes);
  virtual int fchmod(int file, mode_t mode);
  virtual int fsync(int file);
  virtual int syncfs(int file);
  virtual int mkdirat(int folder, const char* path, mode_t mode);
  virtual int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags);
  virtual int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags);
  virtual int unlinkat(int folder, const char* path, int flags);
};

std::shared_ptr<file_system> real_file_system();

/// Writes all pieces, one after the other, at `offset`: goes on after a short write or a signal. Output: 0 or an errno.
int write_all(file_system& files, int file, std::uint64_t offset, std::span<const iovec> pieces);

/// Fills `out` from `offset`; a signal or a short read is no reason to stop. Output: bytes read, fewer only at the end of the file.
os_result<std::size_t> read_all(int file, std::uint64_t offset, std::span<std::byte> out);

/// Opens a folder by a path of the user's, links followed; makes it, and all above it, with `mode` when it is missing.
os_result<descriptor> open_or_make_folder(file_system& files, const std::string& path, mode_t mode);

/// An io error that says what was attempted and, for the common causes, what to do: free space, permissions, descriptors.
tl::unexpected<error> io_fault(std::string attempted, int os);

}  // namespace ddf
