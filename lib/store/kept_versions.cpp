#include "lib/store/kept_versions.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <utility>

#include "lib/model/object_name.hpp"
#include "lib/store/partial_name.hpp"
#include "lib/store/partial_sink.hpp"

namespace ddf {

namespace {

std::string folder_of(const std::string& name) {
  static constexpr std::string_view end = ".versions";
  const std::string above = parent_of(name);
  return std::string(kept_versions_folder) + '/' + (above.empty() ? "" : above + '/') + shortened_name(base_of(name), name_bytes_max - end.size()) + std::string(end);
}
std::string records_of(const std::string& name, version_id v) { return name + '\0' + std::to_string(v.value); }   // no object is called so

bool same(const struct stat& st, const committed_record::file& f, bool directory) {
  if (st.st_ino != f.inode) return false;
  if (directory) return S_ISDIR(st.st_mode);
  return S_ISREG(st.st_mode) && static_cast<std::uint64_t>(st.st_size) == f.size && std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec == f.mtime;
}

}  // namespace

bool is_untouched(const tree_core& core, const std::string& path, const manifest& m, const committed_record& record) {
  file_system& files = *core.files;
  if (record.description != description_digest(m) || record.files.size() != m.parts.size()) return false;
  const auto parent = open_beneath(files, core.root.get(), parent_of(path), O_PATH | O_DIRECTORY);
  struct stat st {};
  if (!parent || ::fstatat(parent->get(), base_of(path).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != record.inode) return false;
  if (lands_as_file(m)) return same(st, record.files[0], false);
  if (!S_ISDIR(st.st_mode)) return false;
  const auto folder = open_beneath(files, parent->get(), base_of(path), O_PATH | O_DIRECTORY);
  if (!folder) return false;
  descriptor above;   // parts of one folder follow each other
  std::string above_path;
  for (std::size_t i = 0; i < m.parts.size(); ++i) {
    const std::string in = parent_of(m.parts[i].name);
    if (!above || in != above_path) {
      auto opened = open_beneath(files, folder->get(), in, O_PATH | O_DIRECTORY);
      if (!opened) return false;
      above = std::move(*opened);
      above_path = in;
    }
    if (::fstatat(above.get(), base_of(m.parts[i].name).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (!same(st, record.files[i], m.parts[i].directory)) return false;
  }
  return true;
}

static std::optional<stored_version> stored_at(const tree_core& core, const std::string& path, const std::string& records) {
  const auto parent = open_beneath(*core.files, core.root.get(), parent_of(path), O_PATH | O_DIRECTORY);
  struct stat st {};
  if (!parent || ::fstatat(parent->get(), base_of(path).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  auto record = core.state->load_committed(records, st.st_ino);
  if (!record) return std::nullopt;
  auto m = core.state->load_manifest(records);
  if (!m) return std::nullopt;
  m->version = record->version;
  if (!is_untouched(core, path, *m, *record)) return std::nullopt;
  return stored_version{record->version, path, records, std::move(*m), std::move(*record), std::nullopt};
}

std::optional<stored_version> visible_version(const tree_core& core, const std::string& name) { return stored_at(core, name, name); }

static std::vector<version_id> numbers(const tree_core& core, const std::string& name) {
  std::vector<version_id> out;
  auto folder = open_beneath(*core.files, core.root.get(), folder_of(name), O_RDONLY | O_DIRECTORY);
  if (!folder) return out;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(folder->release()), &::closedir);
  while (const dirent* e = listing ? ::readdir(listing.get()) : nullptr) {
    const std::string_view text = e->d_name;
    std::uint64_t v = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (failed == std::errc{} && end == text.data() + text.size() && v != 0) out.push_back(version_id{v});
  }
  std::ranges::sort(out, std::ranges::greater{});
  return out;
}

std::vector<stored_version> kept_versions(const tree_core& core, const std::string& name) {
  std::vector<stored_version> out;
  for (const version_id v : numbers(core, name))
    if (auto found = stored_at(core, folder_of(name) + '/' + std::to_string(v.value), records_of(name, v))) out.push_back(std::move(*found));
  return out;
}

static bool leased(tree_core& core, const std::string& records) {
  const std::lock_guard lock(core.leases_mutex);
  return core.leases.contains(records);
}

static void prune(tree_core& core, const std::string& name);

void retire_version(tree_core& core, const std::string& name, std::optional<stored_version> former, int parent, const std::string& hidden) {
  const bool wanted = former && (core.keep != 0 || leased(core, records_of(name, former->version)));
  if (wanted) {
    const std::string records = records_of(name, former->version), number = std::to_string(former->version.value);
    const auto folder = make_folders_beneath(*core.files, core.root.get(), folder_of(name), false);
    if (folder) {
      remove_beneath(*core.files, folder->get(), number);   // of an earlier run, republished since
      // Records first: what has none is a leftover to whoever prunes.
      if (core.state->prepare_committed(records, former->record, former->description, former->digests ? &*former->digests : nullptr))
        core.state->settle_committed(records, former->record.inode);
      if (core.files->renameat2(parent, hidden.c_str(), folder->get(), number.c_str(), 0) == 0) return prune(core, name);
      core.state->forget(records);
    }
  }
  remove_beneath(*core.files, parent, hidden);
  prune(core, name);
}

void prune_versions(tree_core& core, const std::string& name) {
  const std::lock_guard alone(core.versions_mutex);
  prune(core, name);
}

static void prune(tree_core& core, const std::string& name) {
  unsigned left = core.keep;
  const auto all = numbers(core, name);
  if (all.empty()) return;
  const auto folder = open_beneath(*core.files, core.root.get(), folder_of(name), O_RDONLY | O_DIRECTORY);
  if (!folder) return;
  bool empty = true;
  for (const version_id v : all) {
    const std::string records = records_of(name, v);
    const bool recorded = core.state->load_manifest(records).has_value();
    if (recorded && (left != 0 ? left-- != 0 : leased(core, records))) {
      empty = false;
      continue;
    }
    remove_beneath(*core.files, folder->get(), std::to_string(v.value));
    core.state->forget(records);
  }
  for (std::string path = folder_of(name); empty && !path.empty(); path = parent_of(path)) {
    const auto above = open_beneath(*core.files, core.root.get(), parent_of(path), O_RDONLY | O_DIRECTORY);
    empty = above && core.files->unlinkat(above->get(), base_of(path).c_str(), AT_REMOVEDIR) == 0;
  }
}

namespace {

class stored_files {   // open files of a stored version
 public:
  stored_files(std::shared_ptr<tree_core> core, stored_version v) : core_(std::move(core)), version_(std::move(v)), as_file_(lands_as_file(version_.description)), owner_(core_->descriptors.new_owner()) {}
  ~stored_files() { core_->descriptors.forget(owner_); }
  stored_files(const stored_files&) = delete;
  stored_files& operator=(const stored_files&) = delete;

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) const {
    const std::string path = as_file_ ? version_.path : version_.path + '/' + version_.description.parts[part].name;
    const auto stale = [&] { return fail(errc::stale_base, "version " + std::to_string(version_.version.value) + " of '" + printable(version_.description.name) + "' was changed or removed while it was read"); };
    const auto file = core_->descriptors.get({owner_, part}, [&]() -> os_result<descriptor> {
      auto opened = open_beneath(*core_->files, core_->root.get(), path, O_RDONLY);
      struct stat st {};
      if (opened && ::fstat(opened->get(), &st) != 0) return tl::unexpected(errno);
      if (opened && !same(st, version_.record.files[part], false)) return tl::unexpected(ESTALE);
      return opened;
    });
    if (!file && (file.error() == ESTALE || file.error() == ENOENT)) return stale();
    if (!file) return io_fault("cannot open '" + printable(core_->directory + '/' + path) + "'", file.error());
    const auto n = read_all((*file)->get(), offset, out);
    if (!n) return io_fault("reading '" + printable(core_->directory + '/' + path) + "' failed", n.error());
    return *n == out.size() ? result<void>{} : stale();
  }

 private:
  const std::shared_ptr<tree_core> core_;
  const stored_version version_;
  const bool as_file_;
  const std::uint64_t owner_;
};

class lease final : public version_lease {
 public:
  lease(std::shared_ptr<tree_core> core, std::string name, stored_version v) : core_(std::move(core)), name_(std::move(name)), version_(std::move(v)), key_(records_of(name_, version_.version)) {
    const std::lock_guard lock(core_->leases_mutex);
    ++core_->leases[key_];
  }
  ~lease() override {
    {
      const std::lock_guard lock(core_->leases_mutex);
      if (--core_->leases[key_] != 0) return;
      core_->leases.erase(key_);
    }
    prune_versions(*core_, name_);
  }
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;

  std::string path() const override {
    const std::shared_lock lock(core_->versions_mutex);
    const std::string kept = kept_path();
    return core_->directory + '/' + (is_at(kept) ? kept : name_);
  }
  const manifest& description() const override { return version_.description; }
  const digest& root() const override { return version_.record.root; }

 private:
  std::string kept_path() const { return folder_of(name_) + '/' + std::to_string(version_.version.value); }
  bool is_at(const std::string& path) const {
    const auto parent = open_beneath(*core_->files, core_->root.get(), parent_of(path), O_PATH | O_DIRECTORY);
    struct stat st {};
    return parent && ::fstatat(parent->get(), base_of(path).c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == version_.record.inode;
  }

  const std::shared_ptr<tree_core> core_;
  const std::string name_;
  const stored_version version_;
  const std::string key_;
};

}  // namespace

result<delta_base> open_stored(std::shared_ptr<tree_core> core, const std::string& name, const stored_version& v) {
  delta_base out;
  out.version = v.version;
  out.description = v.description;
  auto table = core->state->load_digests(v.records);
  if (!table || table->root != v.record.root || table->blocks.size() != v.description.blocks())
    return fail(errc::stale_base, "the digests of version " + std::to_string(v.version.value) + " of '" + printable(name) + "' are not here");
  out.digests = std::move(*table);
  const auto files = std::make_shared<stored_files>(std::move(core), v);
  out.bytes = std::make_shared<const object_bytes>(v.description, [files](std::uint32_t part, std::uint64_t offset, std::span<std::byte> into) { return files->read(part, offset, into); });
  return out;
}

std::shared_ptr<const version_lease> lease_version(std::shared_ptr<tree_core> core, const std::string& name, stored_version v) {
  return std::make_shared<lease>(std::move(core), name, std::move(v));
}

}  // namespace ddf
