#include "tools/mcsend/sighting.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "lib/model/object_name.hpp"
#include "lib/store/descriptor.hpp"
#include "lib/store/file_system.hpp"
#include "lib/store/folder_scan.hpp"
#include "lib/store/partial_name.hpp"

namespace ddf::tools {
namespace {

constexpr std::size_t entries_max = 2'200'000;  // beyond what can be published

seen_file seen(std::string path, const struct stat& st) {
  seen_file out{std::move(path), 0, st.st_ino, st.st_dev, 0};
  // A folder's own size and time change with every temporary file in it; its inode says whether it was replaced.
  if (S_ISDIR(st.st_mode)) return out;
  out.size = static_cast<std::uint64_t>(st.st_size);
  out.mtime_ns = std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  return out;
}

/// Output: 0 or an errno.
int look_below(const std::string& path, int folder, sighting& out) {
  file_system files;
  auto entries = scan_folder(files, folder, entries_max);
  if (!entries) return entries.error();
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  for (const auto& entry : *entries) {
    if (has_partial_name(entry.path)) continue;
    struct stat st = entry.status;
    if (S_ISLNK(st.st_mode) && ::fstatat(folder, entry.path.c_str(), &st, 0) != 0) {
      if (errno == ENOENT || errno == ELOOP) continue;  // a link to nothing is left out
      return errno;
    }
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) out.files.push_back(seen(path + '/' + entry.path, st));
  }
  return 0;
}

}  // namespace

sighting look_at(std::span<const path_source> paths) {
  sighting out;
  out.whole = true;
  for (const auto& source : paths) {
    struct stat st {};
    const descriptor opened(::open(source.path.c_str(), O_PATH | O_CLOEXEC));
    int failed = !opened || ::fstat(opened.get(), &st) != 0 ? errno : 0;
    if (failed == 0) {
      out.files.push_back(seen(source.path, st));
      if (S_ISDIR(st.st_mode)) {
        const descriptor folder(::openat(opened.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        failed = folder ? look_below(source.path, folder.get(), out) : errno;
      }
    }
    if (failed == 0) continue;
    out.whole = false;
    if (out.missing.empty()) out.missing = fmt::format("'{}': {}", printable(source.path), std::strerror(failed));
  }
  return out;
}

}  // namespace ddf::tools
