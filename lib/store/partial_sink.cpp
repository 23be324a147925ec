#include "lib/store/partial_sink.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/kept_versions.hpp"
#include "lib/store/reveal.hpp"

namespace ddf {

bool lands_as_file(const manifest& m) {
  return m.kind == object_kind::file || (m.kind == object_kind::memory && m.parts.size() == 1 && m.parts.front().name.empty());
}

partial_sink::partial_sink(std::shared_ptr<tree_core> core, const manifest& m, placement at, std::optional<receive_state::claim> claim)
    : core_(std::move(core)), description_(m), at_(std::move(at)), described_(description_digest(m)), owner_(core_->descriptors.new_owner()), claim_(std::move(claim)) {}

partial_sink::~partial_sink() {
  close();
  if (!settled_) remove();
}

os_result<descriptor_cache::handle> partial_sink::opened(std::uint32_t part) {
  DDF_ASSERT(part < description_.parts.size());
  return core_->descriptors.get({owner_, part}, [&] { return open_part(part); });
}

os_result<descriptor> partial_sink::open_writable(int folder, const std::string& path, int flags, mode_t mode) {
  auto file = open_beneath(*core_->files, folder, path, flags, mode);
  if (file || file.error() != EACCES) return file;
  const auto readable = open_beneath(*core_->files, folder, path, O_RDONLY);
  struct stat st {};
  if (!readable || ::fstat(readable->get(), &st) != 0 || core_->files->fchmod(readable->get(), (st.st_mode & 0777) | 0600) != 0) return file;
  return open_beneath(*core_->files, folder, path, flags, mode);
}

error partial_sink::fault(const char* attempted, std::uint32_t part, int os) const {
  std::string path = core_->directory + '/' + at_.name;
  if (part < description_.parts.size() && !description_.parts[part].name.empty()) path += '/' + description_.parts[part].name;
  return io_fault(std::string(attempted) + " '" + printable(path) + "' failed", os).value();
}

result<void> partial_sink::write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) {
  DDF_ASSERT(!settled_);
  const auto file = opened(part);
  if (!file) return tl::unexpected(fault("opening", part, file.error()));
  std::uint64_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  DDF_ASSERT(offset <= description_.parts[part].size && bytes <= description_.parts[part].size - offset);
  if (const int os = write_all(*core_->files, (*file)->get(), offset, pieces); os != 0) return tl::unexpected(fault("writing", part, os));
  return {};
}

result<void> partial_sink::read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) {
  DDF_ASSERT(!settled_);
  const auto file = opened(part);
  if (!file) return tl::unexpected(fault("opening", part, file.error()));
  const auto n = read_all((*file)->get(), offset, out);
  if (!n) return tl::unexpected(fault("reading", part, n.error()));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(*n), out.end(), std::byte{0});   // beyond the end: the file has its full size at commit only
  return {};
}

result<void> partial_sink::finish_part(const descriptor& file, std::uint32_t part, bool sync, committed_record::file& out) {
  const std::uint64_t size = description_.parts[part].size;
  const mode_t mode = final_mode(part);
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return tl::unexpected(fault("looking at", part, errno));
  if (static_cast<std::uint64_t>(st.st_size) != size && core_->files->ftruncate(file.get(), static_cast<std::int64_t>(size)) != 0)
    return tl::unexpected(fault("setting the size of", part, errno));
  if ((st.st_mode & 07777) != mode && core_->files->fchmod(file.get(), mode) != 0)
    return tl::unexpected(fault("setting the permissions of", part, errno));
  if (sync && core_->files->fsync(file.get()) != 0) return tl::unexpected(fault("fsync of", part, errno));
  if (::fstat(file.get(), &st) != 0) return tl::unexpected(fault("looking at", part, errno));
  out.name = part_name_digest(description_.parts[part].name);
  out.size = size;
  out.mtime = std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  out.inode = st.st_ino;
  return {};
}

result<std::string> partial_sink::commit(const digest_table& digests) {
  DDF_ASSERT(!settled_);
  auto record = finish();
  if (!record) return tl::unexpected(record.error());
  record->description = described_;
  record->root = digests.root;
  record->version = description_.version;
  const std::lock_guard alone(core_->versions_mutex);
  if (auto ok = core_->state->prepare_committed(at_.name, *record, description_, &digests); !ok) return tl::unexpected(ok.error());

  file_system& files = *core_->files;
  auto former = visible_version(*core_, at_.name);
  if (former) former->digests = core_->state->load_digests(at_.name);
  const auto parent = open_beneath(files, core_->root.get(), at_.parent, O_RDONLY | O_DIRECTORY);
  const auto old = [&]() -> result<bool> {
    if (!parent) return tl::unexpected(fault("opening the folder of", UINT32_MAX, parent.error()));
    return reveal(files, parent->get(), at_.hidden, at_.base, [this](int folder, const std::string& name) { return allowed(folder, name); });
  }();
  if (!old) {
    core_->state->withdraw_committed(at_.name, record->inode);
    return tl::unexpected(old.error());
  }

  // Visible and durable. What follows only tidies up: when it fails, a later transfer does more than it would have to.
  core_->state->settle_committed(at_.name, record->inode);
  if (claim_) core_->state->remove_partial(at_.name);
  if (*old) retire_version(*core_, at_.name, std::move(former), parent->get(), at_.hidden);
  settled_ = true;
  close();
  return core_->directory + '/' + at_.name;
}

result<void> partial_sink::checkpoint(const range_set& complete) {
  DDF_ASSERT(!settled_);
  if (!claim_ || complete.empty()) return {};
  return core_->state->save_partial(at_.name, partial_record{described_, at_.hidden_path(), complete});
}

result<void> partial_sink::keep(const range_set& complete) {
  if (!claim_ || complete.empty()) {
    discard();
    return {};
  }
  auto ok = checkpoint(complete);
  settled_ = ok.has_value();   // what no record tells of could not be found again
  if (ok) close();
  return ok;
}

void partial_sink::discard() {
  DDF_ASSERT(!settled_);
  close();
  remove();
  settled_ = true;
}

void partial_sink::close() {
  core_->descriptors.forget(owner_);
  if (settled_) claim_.reset();
}

void partial_sink::remove() {
  if (const auto parent = open_beneath(*core_->files, core_->root.get(), at_.parent, O_RDONLY | O_DIRECTORY))
    remove_beneath(*core_->files, parent->get(), at_.hidden);
  if (claim_) core_->state->remove_partial(at_.name);
  remove_made_parents(*core_, at_);
  claim_.reset();
}

}  // namespace ddf
