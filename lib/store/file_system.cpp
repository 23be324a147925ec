#include "lib/store/file_system.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string_view>

namespace ddf {

int file_system::openat(int folder, const char* path, int flags, mode_t mode) { return ::openat(folder, path, flags, mode); }

int file_system::openat2(int folder, const char* path, int flags, mode_t mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = mode;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));   // glibc has no wrapper
}

ssize_t file_system::pwritev(int file, const iovec* pieces, int count, std::int64_t offset) {
  return ::pwritev(file, pieces, count, offset);
}

int file_system::ftruncate(int file, std::int64_t bytes) { return ::ftruncate(file, bytes); }
int file_system::fchmod(int file, mode_t mode) { return ::fchmod(file, mode); }
int file_system::fsync(int file) { return ::fsync(file); }
int file_system::syncfs(int file) { return ::syncfs(file); }
int file_system::mkdirat(int folder, const char* path, mode_t mode) { return ::mkdirat(folder, path, mode); }

int file_system::renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return ::renameat2(from_folder, from, to_folder, to, flags);
}

int file_system::linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return ::linkat(from_folder, from, to_folder, to, flags);
}

int file_system::unlinkat(int folder, const char* path, int flags) { return ::unlinkat(folder, path, flags); }

std::shared_ptr<file_system> real_file_system() { return std::make_shared<file_system>(); }

int write_all(file_system& files, int file, std::uint64_t offset, std::span<const iovec> pieces) {
  std::size_t done = 0;   // bytes of the first piece that are written
  for (;;) {
    while (!pieces.empty() && pieces.front().iov_len == done) pieces = pieces.subspan(1), done = 0;
    if (pieces.empty()) return 0;
    ssize_t n;
    if (done == 0) {
      n = files.pwritev(file, pieces.data(), static_cast<int>(std::min<std::size_t>(pieces.size(), IOV_MAX)),
                        static_cast<std::int64_t>(offset));
    } else {   // a short write ended inside this piece: its rest goes alone, the others in one call again
      const iovec rest{static_cast<char*>(pieces.front().iov_base) + done, pieces.front().iov_len - done};
      n = files.pwritev(file, &rest, 1, static_cast<std::int64_t>(offset));
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;   // neither progress nor a reason
    offset += static_cast<std::uint64_t>(n);
    auto left = static_cast<std::size_t>(n);
    while (left > 0) {
      const std::size_t of_first = std::min(left, pieces.front().iov_len - done);
      left -= of_first, done += of_first;
      if (done == pieces.front().iov_len) pieces = pieces.subspan(1), done = 0;
    }
  }
}

os_result<std::size_t> read_all(int file, std::uint64_t offset, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(file, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

os_result<descriptor> open_or_make_folder(file_system& files, const std::string& path, mode_t mode) {
  for (std::size_t slash = 0; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    const std::string above = path.substr(0, slash);
    if (files.mkdirat(AT_FDCWD, above.c_str(), mode) == 0 || errno == EEXIST) continue;
    const int os = errno;   // EACCES or EROFS is no matter where the folder is there already
    struct stat st {};
    if (::stat(above.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return tl::unexpected(os);
  }
  descriptor folder(files.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!folder) return tl::unexpected(errno);
  return folder;
}

static std::string_view advice(int os) {
  switch (os) {
    case ENOSPC: return " (the disk is full: free space, or use another folder)";
    case EDQUOT: return " (the quota is used up: free space, or use another folder)";
    case EFBIG: return " (larger than this file system or 'ulimit -f' allows)";
    case EACCES:
    case EPERM: return " (check owner and permissions)";
    case EROFS: return " (the file system is mounted read-only: use another folder)";
    case EMFILE: return " (too many open files in this process: raise 'ulimit -n')";
    case ENFILE: return " (too many open files on this host: raise fs.file-max)";
    case EIO: return " (the device failed: see the kernel's log)";
    default: return "";
  }
}

tl::unexpected<error> io_fault(std::string attempted, int os) {
  attempted += advice(os);
  return fail(errc::io, std::move(attempted), os);
}

}  // namespace ddf
