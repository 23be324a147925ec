#include "lib/store/folder_scan.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "lib/store/confined.hpp"

namespace ddf {

namespace {
struct close_folder {
  void operator()(DIR* d) const { ::closedir(d); }
};
}  // namespace

// Appends what is directly in the folder `path`. Output: 0 or an errno.
static int list(file_system& files, int folder, const std::string& path, std::size_t entries_max, std::vector<scan_entry>& out,
                std::string& where) {
  auto opened = open_beneath(files, folder, path, O_RDONLY | O_DIRECTORY);
  if (!opened) return opened.error();
  const std::unique_ptr<DIR, close_folder> stream(::fdopendir(opened->get()));
  if (!stream) return errno;
  opened->release();   // the stream closes it
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(stream.get());
    if (!found) return errno;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    if (out.size() >= entries_max) return EOVERFLOW;
    scan_entry entry;
    entry.path = path.empty() ? std::string(name) : path + '/' + std::string(name);
    if (::fstatat(::dirfd(stream.get()), found->d_name, &entry.status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;   // removed since it was listed
      const int os = errno;
      where = entry.path;
      return os;
    }
    out.push_back(std::move(entry));
  }
}

os_result<std::vector<scan_entry>> scan_folder(file_system& files, int folder, std::size_t entries_max, std::string* where) {
  std::vector<scan_entry> out;
  std::string at;
  int os = list(files, folder, {}, entries_max, out, at);
  for (std::size_t i = 0; os == 0 && i < out.size(); ++i) {
    if (!S_ISDIR(out[i].status.st_mode)) continue;
    const std::string path = at = out[i].path;   // a copy: the vector grows
    os = list(files, folder, path, entries_max, out, at);
  }
  if (os == 0) return out;
  if (where) *where = at;
  return tl::unexpected(os);
}

}  // namespace ddf
