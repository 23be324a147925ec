#include "lib/store/tree_core.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <unordered_set>

#include "lib/model/object_name.hpp"
#include "lib/store/folder_scan.hpp"

namespace ddf {

static std::string shown(const tree_core& core, const placement& at) { return "'" + printable(core.directory + '/' + at.name) + "'"; }

static const char* kind_of(mode_t mode) {
  return S_ISREG(mode) ? "a file" : S_ISDIR(mode) ? "a folder" : S_ISLNK(mode) ? "a symbolic link" : "a device, pipe or socket";
}

result<void> may_replace_file(const tree_core& core, const placement& at, int folder, const std::string& name) {
  struct stat st {};
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return io_fault("cannot look at " + shown(core, at), errno);
  }
  if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) return {};   // a link is replaced itself, what it leads to stays
  return fail(errc::refused, shown(core, at) + " is " + kind_of(st.st_mode) + ", and a file is to be put there: move it away, or receive into another folder");
}

result<void> may_replace_folder(const tree_core& core, const placement& at, int folder, const std::string& name) {
  const auto refused = [&](const std::string& why) {
    return fail(errc::refused, shown(core, at) + ' ' + why + ": move it away, or receive into another folder");
  };
  struct stat st {};
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return io_fault("cannot look at " + shown(core, at), errno);
  }
  if (!S_ISDIR(st.st_mode)) return refused(std::string("is ") + kind_of(st.st_mode) + ", and a folder is to be put there");
  auto opened = open_beneath(*core.files, folder, name, O_RDONLY | O_DIRECTORY);
  if (!opened) return io_fault("cannot open " + shown(core, at), opened.error());
  auto entries = scan_folder(*core.files, opened->get(), 2 * limits::parts);
  if (!entries) return io_fault("cannot read " + shown(core, at), entries.error());
  if (entries->empty()) return {};
  const auto ours = core.state->load_committed(at.name, st.st_ino);
  if (!ours) return refused("is a folder that ddf did not put there");
  std::unordered_set<std::uint64_t> known;
  for (const auto& f : ours->files) known.insert(f.name);
  for (const scan_entry& e : *entries)   // the whole folder will go, so nothing of the user's may be in it
    if (!S_ISDIR(e.status.st_mode) && !known.contains(part_name_digest(e.path)))
      return refused("holds '" + printable(e.path) + "', which ddf did not put there");
  return {};
}

void remove_made_parents(tree_core& core, const placement& at) {
  int left = at.parents_made;
  for (std::string path = at.parent; left > 0 && !path.empty(); path = parent_of(path)) {
    const auto above = open_beneath(*core.files, core.root.get(), parent_of(path), O_RDONLY | O_DIRECTORY);
    if (above && core.files->unlinkat(above->get(), base_of(path).c_str(), AT_REMOVEDIR) == 0) {
      --left;
    } else if ((above ? errno : above.error()) != ENOENT) {   // the deepest may never have been made
      return;   // another object is in it
    }
  }
}

}  // namespace ddf
