#include "lib/store/confined.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "lib/store/folder_scan.hpp"

namespace ddf {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string base_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Both ways refuse the same paths, so that which one runs cannot be told from outside.
static bool stays_beneath(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const auto slash = path.find('/');
    const auto component = path.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// With O_DIRECTORY, O_NOFOLLOW answers ENOTDIR for a link; say ELOOP as openat2 does.
static int link_or(int folder, const std::string& component, int os) {
  struct stat st {};
  if (os == ENOTDIR && ::fstatat(folder, component.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) return ELOOP;
  return os;
}

os_result<descriptor> open_component_wise(file_system& files, int folder, const std::string& path, int flags, mode_t mode) {
  if (path.empty()) {
    descriptor self(files.openat(folder, ".", flags | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!self) return tl::unexpected(errno);
    return self;
  }
  if (!stays_beneath(path)) return tl::unexpected(EXDEV);
  descriptor at;   // of the component before; `folder` at first
  std::size_t from = 0;
  for (;;) {
    const int here = at ? at.get() : folder;
    const auto slash = path.find('/', from);
    const bool last = slash == std::string::npos;
    const std::string component = path.substr(from, last ? std::string::npos : slash - from);
    const int how = last ? flags | O_NOFOLLOW | O_CLOEXEC : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    descriptor next(files.openat(here, component.c_str(), how, last ? mode : 0));
    if (!next) return tl::unexpected(link_or(here, component, errno));
    if (last) {
      if (flags & O_PATH) {   // which opens the link itself
        struct stat st {};
        if (::fstat(next.get(), &st) == 0 && S_ISLNK(st.st_mode)) return tl::unexpected(ELOOP);
      }
      return next;
    }
    at = std::move(next);
    from = slash + 1;
  }
}

os_result<descriptor> open_beneath(file_system& files, int folder, const std::string& path, int flags, mode_t mode) {
  if (path.empty()) return open_component_wise(files, folder, path, flags, mode);
  if (!stays_beneath(path)) return tl::unexpected(EXDEV);
  // O_NOFOLLOW is left out: together with O_PATH it would open a link, which RESOLVE_NO_SYMLINKS alone refuses.
  descriptor opened(files.openat2(folder, path.c_str(), flags | O_CLOEXEC, flags & O_CREAT ? mode : 0,
                                  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  if (opened) return opened;
  // Old kernels say ENOSYS, the filters of old container engines EPERM, and EAGAIN is a race with a rename.
  if (errno == ENOSYS || errno == EPERM || errno == EAGAIN) return open_component_wise(files, folder, path, flags, mode);
  return tl::unexpected(errno);
}

os_result<descriptor> make_folders_beneath(file_system& files, int folder, const std::string& path, bool durable, int* made) {
  constexpr int flags = O_RDONLY | O_DIRECTORY;
  if (made) *made = 0;
  auto all = open_beneath(files, folder, path, flags);   // the common case: it is there
  if (all || all.error() != ENOENT) return all;
  descriptor at;
  std::size_t from = 0;
  for (;;) {
    const int here = at ? at.get() : folder;
    const auto slash = path.find('/', from);
    const std::string component = path.substr(from, slash == std::string::npos ? slash : slash - from);
    if (files.mkdirat(here, component.c_str(), 0777) == 0) {
      if (made) ++*made;
      if (durable && files.fsync(here) != 0) return tl::unexpected(errno);
    } else if (errno != EEXIST) {
      return tl::unexpected(errno);
    }
    auto next = open_beneath(files, here, component, flags);
    if (!next || slash == std::string::npos) return next;
    at = std::move(*next);
    from = slash + 1;
  }
}

int remove_beneath(file_system& files, int folder, const std::string& name) {
  if (files.unlinkat(folder, name.c_str(), 0) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  const int os = errno;
  auto top = open_beneath(files, folder, name, O_RDONLY | O_DIRECTORY);
  if (!top) return top.error() == ENOTDIR ? os : top.error();
  auto entries = scan_folder(files, top->get(), SIZE_MAX);
  if (!entries) return entries.error();
  int first = 0;
  std::optional<descriptor> parent;
  std::string parent_path;
  // What is in a folder comes after it in the scan, so backwards everything is empty when its turn comes.
  for (auto it = entries->rbegin(); it != entries->rend(); ++it) {
    if (const std::string above = parent_of(it->path); !parent || above != parent_path) {
      auto opened = open_beneath(files, top->get(), above, O_PATH | O_DIRECTORY);
      if (!opened) {
        if (first == 0) first = opened.error();
        continue;
      }
      parent.emplace(std::move(*opened));
      parent_path = above;
    }
    const int how = S_ISDIR(it->status.st_mode) ? AT_REMOVEDIR : 0;
    if (files.unlinkat(parent->get(), base_of(it->path).c_str(), how) != 0 && first == 0) first = errno;
  }
  if (files.unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && first == 0) first = errno;
  return first;
}

}  // namespace ddf
