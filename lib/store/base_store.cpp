#include "lib/store/base_store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "codecs/digest.hpp"
#include "lib/store/confined.hpp"
#include "lib/store/descriptor_cache.hpp"
#include "lib/store/delta_make.hpp"
#include "lib/store/record.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::string_view magic = "ddfbase1";
static constexpr std::size_t bytes_max = std::size_t{limits::catalogue_bytes} + 8192 + digest_table::bytes(limits::blocks);

// Body, big-endian: identity(128) path length(16) path description length(32) description (a catalogue of one) root(128), per block digest(128).
std::vector<std::byte> write_base(const published_base& b) {
  std::vector<std::byte> body;
  writer w(body);
  w.bytes(b.identity.bytes);
  w.u16(static_cast<std::uint16_t>(b.path.size()));
  w.text(b.path);
  const auto described = write_catalogue({b.description});
  w.u32(static_cast<std::uint32_t>(described.size()));
  w.bytes(described);
  w.bytes(b.digests.root.bytes);
  for (const digest& d : b.digests.blocks) w.bytes(d.bytes);
  return seal_record(magic, body);
}

std::optional<published_base> parse_base(std::span<const std::byte> record) {
  const auto body = unseal_record(magic, record);
  if (!body) return std::nullopt;
  reader r(*body);
  published_base b;
  b.identity = r.digest();
  b.path = r.text(r.u16());
  auto one = parse_catalogue(r.bytes(r.u32()));
  b.digests.root = r.digest();
  if (!r.ok() || !one || one->size() != 1) return std::nullopt;
  b.description = std::move(one->front());
  if (r.left() != b.description.blocks() * digest::size) return std::nullopt;
  b.digests.blocks.resize(b.description.blocks());
  for (digest& d : b.digests.blocks) d = r.digest();
  if (root_digest(b.description.name, b.description.size(), b.digests.blocks) != b.digests.root) return std::nullopt;
  return b;
}

static std::string key_of(const std::string& name, version_id v) { return record_name({}, name) + '@' + std::to_string(v.value); }
static constexpr std::string_view data_suffix = ".data", making_suffix = ".making";
static std::string data_of(const std::string& key) { return key + std::string(data_suffix); }

namespace {

struct entry {
  std::string name;       // of the file: key, '@', version, suffix
  std::string_view key;   // record_name() of the object
  version_id version{1};
  std::string_view suffix;   // empty: the record
};

}  // namespace

// What there is, of all objects or of one, newest first.
static std::vector<std::unique_ptr<const entry>> entries(int folder, std::string_view key = {}) {
  std::vector<std::unique_ptr<const entry>> out;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), [](DIR* d) { return d == nullptr ? 0 : ::closedir(d); });
  while (const dirent* e = listing ? ::readdir(listing.get()) : nullptr) {
    auto one = std::make_unique<entry>();
    one->name = e->d_name;
    const std::string_view text = one->name;
    const auto at = text.find('@');
    if (at == std::string_view::npos || (!key.empty() && text.substr(0, at) != key)) continue;
    const auto [end, failed] = std::from_chars(text.data() + at + 1, text.data() + text.size(), one->version.value);
    one->key = text.substr(0, at);
    one->suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    if (failed == std::errc{} && (one->suffix.empty() || one->suffix == data_suffix || one->suffix == making_suffix)) out.push_back(std::move(one));
  }
  std::ranges::sort(out, std::ranges::greater{}, [](const auto& e) { return e->version; });
  return out;
}

// The versions that are remembered, newest first.
static std::vector<version_id> numbers(int folder, const std::string& name) {
  std::vector<version_id> out;
  for (const auto& e : entries(folder, record_name({}, name)))
    if (e->suffix.empty()) out.push_back(e->version);
  return out;
}

static std::optional<published_base> load(int folder, const std::string& name, version_id v) {
  const auto record = load_record(folder, key_of(name, v), bytes_max);
  auto b = record ? parse_base(*record) : std::nullopt;
  return b && b->description.name == name && b->description.version == v ? std::move(b) : std::nullopt;
}

std::vector<version_id> base_store::versions(const std::string& name) const {
  if (directory_.empty()) return {};
  const descriptor folder(::open((directory_ + "/bases").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder ? numbers(folder.get(), name) : std::vector<version_id>{};
}

std::vector<published_base> base_store::list(const std::string& name) const {
  std::vector<published_base> out;
  if (directory_.empty()) return out;
  const descriptor folder(::open((directory_ + "/bases").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return out;
  for (const version_id v : numbers(folder.get(), name))
    if (auto b = load(folder.get(), name, v)) out.push_back(std::move(*b));
  return out;
}

std::vector<published_base> base_store::newest_of_all(std::size_t most) const {
  std::vector<published_base> out;
  if (directory_.empty()) return out;
  const descriptor folder(::open((directory_ + "/bases").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return out;
  std::set<std::string> seen;
  for (const auto& e : entries(folder.get())) {
    if (out.size() >= most) break;
    if (!e->suffix.empty() || !seen.emplace(e->key).second) continue;
    const auto record = load_record(folder.get(), e->name, bytes_max);
    if (auto b = record ? parse_base(*record) : std::nullopt) out.push_back(std::move(*b));
  }
  return out;
}

namespace {

class copied_source final : public object_source {   // each part a file, called by its number
 public:
  copied_source(const manifest& m, descriptor folder) : manifest_(m), folder_(std::move(folder)), descriptors_(16), owner_(descriptors_.new_owner()) {}

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override {
    const auto file = descriptors_.get({owner_, part}, [&]() -> os_result<descriptor> {
      descriptor d(::openat(folder_.get(), std::to_string(part).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!d) return tl::unexpected(errno);
      return d;
    });
    if (!file) return io_fault("opening the copy of an older version failed", file.error());
    const auto n = read_all((*file)->get(), offset, out);
    if (!n) return io_fault("reading the copy of an older version failed", n.error());
    return *n == out.size() ? result<void>{} : fail(errc::stale_base, "the copy of an older version is too short");
  }
  std::span<const std::byte> view(std::uint32_t, std::uint64_t, std::uint64_t) override { return {}; }
  result<void> check_unchanged() override { return {}; }
  digest identity() const override { return {}; }

 private:
  const manifest manifest_;
  const descriptor folder_;
  descriptor_cache descriptors_;
  const std::uint64_t owner_;
};

result<void> copy_part(object_source& source, std::uint32_t part, std::uint64_t size, int folder) {
  file_system files;
  const descriptor to(files.openat(folder, std::to_string(part).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!to) return io_fault("making the copy of a version failed", errno);
  if (const int from = source.descriptor_of(part); from >= 0 && ::ioctl(to.get(), FICLONE, from) == 0) return {};
  std::vector<std::byte> buffer(std::min<std::uint64_t>(size, 4 << 20));
  for (std::uint64_t at = 0; at < size; at += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - at));
    if (auto ok = source.read(part, at, piece); !ok) return ok;
    const iovec one{piece.data(), piece.size()};
    if (const int os = write_all(files, to.get(), at, std::span(&one, 1)); os != 0) return io_fault("writing the copy of a version failed", os);
  }
  return {};
}

}  // namespace

result<void> base_store::save(const published_base& b, object_source& source) const {
  if (directory_.empty()) return {};
  file_system files;
  auto folder = open_record_folder(files, directory_ + "/bases");
  if (!folder) return tl::unexpected(folder.error());
  const std::string key = key_of(b.description.name, b.description.version);
  result<void> copied;
  const auto known = load(folder->get(), b.description.name, b.description.version);
  const bool same = known && known->description == b.description && known->digests.root == b.digests.root;
  if (!same) remove_beneath(files, folder->get(), data_of(key));   // of other bytes under the same version, or of a run that was killed
  struct stat st {};
  const bool to_copy = keep_ != 0 && ::fstatat(folder->get(), data_of(key).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0;
  if (to_copy) copied = source.check_read();
  if (to_copy && copied) {
    const std::string making = key + std::string(making_suffix);
    remove_beneath(files, folder->get(), making);
    const auto data = make_folders_beneath(files, folder->get(), making, false);
    if (!data) return io_fault("making the copy of a version failed", data.error());
    for (std::uint32_t p = 0; p < b.description.parts.size() && copied; ++p)
      if (!b.description.parts[p].directory) copied = copy_part(source, p, b.description.parts[p].size, data->get());
    if (copied) copied = source.check_read();   // a copy of what was written to meanwhile is a copy of nothing
    if (!copied) remove_beneath(files, folder->get(), making);
    else if (files.renameat2(folder->get(), making.c_str(), folder->get(), data_of(key).c_str(), 0) != 0) copied = io_fault("naming the copy of a version failed", errno);
  }
  if (auto ok = save_record(files, folder->get(), key, write_base(b), false); !ok) return ok;
  const auto all = numbers(folder->get(), b.description.name);
  const auto among = [&](version_id v, std::size_t newest) { return std::ranges::find(all, v) - all.begin() < static_cast<std::ptrdiff_t>(std::min(newest, all.size())); };
  for (const auto& e : entries(folder->get(), record_name({}, b.description.name))) {
    if (e->suffix == making_suffix || (e->suffix == data_suffix && !among(e->version, std::min<std::size_t>(keep_, versions_max)))) remove_beneath(files, folder->get(), e->name);
    if (e->suffix.empty() && !among(e->version, versions_max)) files.unlinkat(folder->get(), e->name.c_str(), 0);
  }
  return copied;
}

delta_base base_from(const published_base& b, std::shared_ptr<object_source> source) {
  delta_base out{b.description.version, b.description, b.digests, nullptr};
  if (source) {
    const auto read = [source](std::uint32_t part, std::uint64_t offset, std::span<std::byte> into) { return source->read(part, offset, into); };
    const auto view = [source](std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) { return source->view(part, offset, bytes); };
    out.bytes = std::make_shared<const object_bytes>(b.description, read, view);
  }
  return out;
}

delta_base base_store::open(const published_base& b) const {
  if (!b.path.empty())
    if (auto opened = open_path({b.path, b.description.name}); opened && opened->source->identity() == b.identity) return base_from(b, std::move(opened->source));
  descriptor data(::open((directory_ + "/bases/" + data_of(key_of(b.description.name, b.description.version))).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return base_from(b, data ? std::make_shared<copied_source>(b.description, std::move(data)) : nullptr);
}

}  // namespace ddf
