#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/model/object_name.hpp"
#include "lib/store/folder_scan.hpp"
#include "lib/store/kept_versions.hpp"
#include "lib/store/partial_name.hpp"
#include "lib/store/partial_sink.hpp"
#include "lib/store/sink.hpp"
#include "lib/store/tree_core.hpp"

namespace ddf {

namespace {

// From /proc, because asking umask() means setting it, which other threads would notice.
mode_t umask_of_process() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> status(std::fopen("/proc/self/status", "re"), &std::fclose);
  char line[256];
  unsigned mask = 0;
  while (status && std::fgets(line, sizeof line, status.get()))
    if (std::sscanf(line, "Umask: %o", &mask) == 1) return mask & 0777;
  return 022;
}

result<void> check_description(const manifest& m) {
  manifest as_landing = m;   // parts of memory get a folder's names, so they must keep its rules
  if (m.kind == object_kind::memory) as_landing.kind = lands_as_file(m) ? object_kind::file : object_kind::folder;
  if (auto ok = check_catalogue({as_landing}); !ok) return ok;
  if (has_partial_name(m.name)) return fail(errc::refused, "object '" + printable(m.name) + "': names of that form are for partial files only");
  return {};
}

class output_folder final : public output_tree {
 public:
  explicit output_folder(std::shared_ptr<tree_core> core) : core_(std::move(core)) {}

  result<opened_sink> open_object(const manifest& m) override {
    if (auto ok = check_description(m); !ok) return tl::unexpected(ok.error());
    const bool as_file = lands_as_file(m);
    placement at;
    at.name = m.name;
    at.parent = parent_of(m.name);
    at.base = base_of(m.name);
    file_system& files = *core_->files;
    int os = 0;
    constexpr int tries = 4;   // another object may remove an empty parent that this one has just found
    for (int i = 0; i < tries; ++i) {
      int made = 0;
      const auto parent = make_folders_beneath(files, core_->root.get(), at.parent, true, &made);
      at.parents_made = std::max(at.parents_made, made);
      if (!parent) {
        remove_made_parents(*core_, at);
        return tl::unexpected(parent_fault(m, parent.error()));
      }
      const auto free = as_file ? may_replace_file(*core_, at, parent->get(), at.base) : may_replace_folder(*core_, at, parent->get(), at.base);
      if (!free) {
        remove_made_parents(*core_, at);
        return tl::unexpected(free.error());
      }
      auto claim = core_->state->try_claim(m.name);
      opened_sink out;
      if (claim) {
        at.hidden = partial_name(at.base, core_->state->tag(m.name));
        os = take_up(m, as_file, at, parent->get(), out.resumable);
        if (os == EEXIST || os == EISDIR || os == ENOTEMPTY) claim.reset();   // in the way, and not to be removed
      }
      for (int j = 0; !claim && j < tries; ++j) {
        at.hidden = partial_name(at.base, receive_state::random_tag());
        os = make(as_file, at, parent->get());
        if (os != EEXIST) break;
      }
      if (os == 0) {
        out.sink = as_file ? make_file_sink(core_, m, at, std::move(claim)) : make_folder_sink(core_, m, at, std::move(claim));
        return out;
      }
      if (os != ENOENT) break;
    }
    remove_made_parents(*core_, at);
    return io_fault("cannot make the partial file of '" + printable(final_path(m)) + "'", os);
  }

  std::vector<held_version> held(const manifest& m) const override {
    std::vector<held_version> out;
    if (const auto record = current(m)) out.push_back({0, record->version, record->root, true});
    for (const stored_version& v : stored(m.name))
      if (out.empty() || out.front().root != v.record.root) out.push_back({0, v.version, v.record.root, false});
    return out;
  }

  result<delta_base> open_base(const std::string& name, const digest& root) const override {
    const std::shared_lock lock(core_->versions_mutex);
    for (const stored_version& v : stored(name))
      if (v.record.root == root) return open_stored(core_, name, v);
    return fail(errc::stale_base, "the version of '" + printable(name) + "' that the delta starts from is not here any more, or was touched");
  }

  result<std::shared_ptr<const version_lease>> lease(const std::string& name, version_id version) override {
    const std::shared_lock lock(core_->versions_mutex);
    std::string here;
    for (stored_version& v : stored(name)) {
      if (version.value == 0 || v.version == version) return lease_version(core_, name, std::move(v));
      here += (here.empty() ? "" : ", ") + std::to_string(v.version.value);
    }
    const std::string which = version.value == 0 ? "no version" : "no version " + std::to_string(version.value);
    return fail(errc::unknown_version, "of '" + printable(name) + "' there is " + which + " here" + (here.empty() ? "" : ", but " + here) + " (mcrecv --keep says how many older ones stay)");
  }

  const std::string& directory() const override { return core_->directory; }
  std::string final_path(const manifest& m) const override { return core_->directory + '/' + m.name; }

  std::uint64_t bytes_free() const override {
    struct statvfs st {};
    if (::fstatvfs(core_->root.get(), &st) != 0) return 0;
    return static_cast<std::uint64_t>(::geteuid() == 0 ? st.f_bfree : st.f_bavail) * st.f_frsize;
  }

 private:
  error parent_fault(const manifest& m, int os) const {
    const std::string path = "'" + printable(final_path(m)) + "'";
    if (os == ELOOP) return {errc::refused, 0, "a folder on the way to " + path + " is a symbolic link, which is not followed: replace it by a folder"};
    if (os == ENOTDIR) return {errc::refused, 0, "a folder on the way to " + path + " is a file: move it away, or receive into another folder"};
    return io_fault("cannot make the folder of " + path, os).value();
  }

  // Makes the hidden file or folder. Output: 0 or an errno.
  int make(bool as_file, const placement& at, int parent) {
    if (!as_file) return core_->files->mkdirat(parent, at.hidden.c_str(), 0700) == 0 ? 0 : errno;
    const auto file = open_beneath(*core_->files, parent, at.hidden, O_RDWR | O_CREAT | O_EXCL, 0600);
    return file ? 0 : file.error();
  }

  // Goes on with what an earlier transfer left, when its record tells of an equal description; removes it otherwise.
  int take_up(const manifest& m, bool as_file, const placement& at, int parent, range_set& resumable) {
    const auto record = core_->state->load_partial(m.name);
    struct stat st {};
    const bool there = ::fstatat(parent, at.hidden.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    const bool fits = there && st.st_uid == ::geteuid() && (as_file ? S_ISREG(st.st_mode) && st.st_nlink == 1 : S_ISDIR(st.st_mode) && holds_nothing_else(m, at, parent));
    if (record && fits && record->description == description_digest(m) && record->path == at.hidden_path()) {
      resumable = record->complete;
      resumable.erase(m.blocks(), UINT64_MAX);
      return 0;
    }
    if (record) core_->state->remove_partial(m.name);
    if (there)
      if (const int os = remove_beneath(*core_->files, parent, at.hidden); os != 0 && os != ENOENT) return os == EPERM || os == EACCES ? EEXIST : os;
    return make(as_file, at, parent);
  }

  // Whether a hidden folder has no file or folder but those of this description. One that a crash left after it changed places with
  // the new version is the old version: what only that one had would get into the next.
  bool holds_nothing_else(const manifest& m, const placement& at, int parent) const {
    const auto folder = open_beneath(*core_->files, parent, at.hidden, O_RDONLY | O_DIRECTORY);
    const auto entries = folder ? scan_folder(*core_->files, folder->get(), 2 * limits::parts) : tl::unexpected(folder.error());
    if (!entries) return false;
    std::unordered_map<std::string_view, bool> expected;   // path -> a folder
    for (const part& p : m.parts) {
      expected[p.name] = p.directory;
      for (auto slash = p.name.find('/'); slash != std::string::npos; slash = p.name.find('/', slash + 1)) expected[std::string_view(p.name).substr(0, slash)] = true;
    }
    return std::ranges::all_of(*entries, [&](const scan_entry& e) {
      const auto it = expected.find(e.path);
      return it != expected.end() && (it->second ? S_ISDIR(e.status.st_mode) : S_ISREG(e.status.st_mode) && e.status.st_nlink == 1);
    });
  }

  // The record of what is under the final name, when every file is as it was recorded.
  std::optional<committed_record> current(const manifest& m) const {
    if (!check_description(m)) return std::nullopt;
    const auto parent = open_beneath(*core_->files, core_->root.get(), parent_of(m.name), O_PATH | O_DIRECTORY);
    struct stat st {};
    if (!parent || ::fstatat(parent->get(), base_of(m.name).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    auto record = core_->state->load_committed(m.name, st.st_ino);
    return record && is_untouched(*core_, m.name, m, *record) ? std::move(record) : std::nullopt;
  }

  // What is visible first, then what is kept.
  std::vector<stored_version> stored(const std::string& name) const {
    std::vector<stored_version> all;
    if (auto v = visible_version(*core_, name)) all.push_back(std::move(*v));
    for (stored_version& v : kept_versions(*core_, name)) all.push_back(std::move(v));
    return all;
  }

  const std::shared_ptr<tree_core> core_;
};

}  // namespace

result<std::unique_ptr<output_tree>> output_tree::open(const options& o, std::shared_ptr<file_system> files) {
  auto core = std::make_shared<tree_core>();
  core->files = files ? std::move(files) : real_file_system();
  const std::string shown = "'" + printable(o.directory) + "'";
  auto root = open_or_make_folder(*core->files, o.directory, 0777);
  if (!root) return io_fault("cannot open the output folder " + shown, root.error());
  core->root = std::move(*root);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(o.directory.c_str(), nullptr), &std::free);
  if (!real) return io_fault("cannot find the output folder " + shown, errno);
  core->directory = real.get();
  if (::faccessat(core->root.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return io_fault("cannot write into the output folder " + shown, errno);
  core->mask = umask_of_process();
  core->keep = o.keep;
  auto state = receive_state::open(core->files, o.state_directory, core->directory);
  if (!state) return tl::unexpected(state.error());
  core->state = std::move(*state);
  return std::make_unique<output_folder>(std::move(core));
}

}  // namespace ddf
