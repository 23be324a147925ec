// An object that lands as a folder with a file for each part.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>
#include <string>

#include "lib/store/partial_sink.hpp"

namespace ddf {

namespace {

class folder_sink final : public partial_sink {
 public:
  folder_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim)
      : partial_sink(std::move(core), m, std::move(at), std::move(claim)) {}

 protected:
  // Nobody else can enter the hidden folder, so that its files may have their final permissions at once; the owner's
  // rights to read and write stay until the end, for a file may be opened again.
  os_result<descriptor> open_part(std::uint32_t part) override {
    const auto folder = hidden();
    if (!folder) return tl::unexpected(folder.error());
    const std::string& name = description_.parts[part].name;
    const auto attempt = [&] { return open_writable((*folder)->get(), name, O_RDWR | O_CREAT, final_mode(part) | 0600); };
    auto file = attempt();
    if (file || file.error() != ENOENT) return file;
    if (auto made = make_folders_beneath(*core_->files, (*folder)->get(), parent_of(name), false); !made) return made;
    return attempt();
  }

  result<committed_record> finish() override {
    const auto folder = hidden();
    if (!folder) return tl::unexpected(fault("opening", UINT32_MAX, folder.error()));
    // A few files are synced one by one; for many, one sync of the file system is far cheaper.
    constexpr std::size_t few = 64;
    const bool each = description_.parts.size() <= few;

    committed_record record;
    record.files.resize(description_.parts.size());
    std::set<std::string> folders{""};
    for (std::uint32_t i = 0; i < description_.parts.size(); ++i) {
      const part& p = description_.parts[i];
      if (auto ok = p.directory ? finish_folder((*folder)->get(), i, record.files[i]) : finish_file(i, each, record.files[i]); !ok)
        return tl::unexpected(ok.error());
      if (p.directory && each) folders.insert(p.name);
      if (each)
        for (std::string above = parent_of(p.name); folders.insert(above).second;) above = parent_of(above);
    }
    if (core_->files->fchmod((*folder)->get(), 0777 & ~core_->mask) != 0) return tl::unexpected(fault("setting the permissions of", UINT32_MAX, errno));
    if (!each && core_->files->syncfs((*folder)->get()) != 0) return tl::unexpected(fault("syncfs of", UINT32_MAX, errno));
    if (each) {
      for (const std::string& path : folders) {
        const auto opened_folder = open_beneath(*core_->files, (*folder)->get(), path, O_RDONLY | O_DIRECTORY);
        if (!opened_folder) return tl::unexpected(fault("opening a folder of", UINT32_MAX, opened_folder.error()));
        if (core_->files->fsync(opened_folder->get()) != 0) return tl::unexpected(fault("fsync of a folder of", UINT32_MAX, errno));
      }
    }
    struct stat st {};
    if (::fstat((*folder)->get(), &st) != 0) return tl::unexpected(fault("looking at", UINT32_MAX, errno));
    record.inode = st.st_ino;
    return record;
  }

  result<void> allowed(int folder, const std::string& name) const override { return may_replace_folder(*core_, at_, folder, name); }

 private:
  os_result<descriptor_cache::handle> hidden() {
    constexpr std::uint64_t folder_itself = UINT64_MAX;
    return core_->descriptors.get({owner_, folder_itself},
                                  [&] { return open_beneath(*core_->files, core_->root.get(), at_.hidden_path(), O_RDONLY | O_DIRECTORY); });
  }

  result<void> finish_file(std::uint32_t part, bool sync, committed_record::file& out) {
    const auto file = opened(part);
    if (!file) return tl::unexpected(fault("opening", part, file.error()));
    return finish_part(**file, part, sync, out);
  }

  result<void> finish_folder(int folder, std::uint32_t part, committed_record::file& out) {
    auto made = make_folders_beneath(*core_->files, folder, description_.parts[part].name, false);
    if (!made) return tl::unexpected(fault("making", part, made.error()));
    if (core_->files->fchmod(made->get(), final_mode(part) | 0700) != 0) return tl::unexpected(fault("setting the permissions of", part, errno));
    struct stat st {};
    if (::fstat(made->get(), &st) != 0) return tl::unexpected(fault("looking at", part, errno));
    out.name = part_name_digest(description_.parts[part].name);
    out.inode = st.st_ino;   // a folder's own size and mtime say nothing about an object
    return {};
  }
};

}  // namespace

std::unique_ptr<partial_sink> make_folder_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim) {
  return std::make_unique<folder_sink>(std::move(core), m, std::move(at), std::move(claim));
}

}  // namespace ddf
