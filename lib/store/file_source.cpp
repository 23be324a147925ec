// A file or a folder as the source of an object.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "codecs/digest.hpp"
#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/descriptor_cache.hpp"
#include "lib/store/folder_scan.hpp"
#include "lib/store/partial_name.hpp"
#include "lib/store/source.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

namespace {

constexpr std::size_t files_open_max = 128;
constexpr std::uint64_t folder_itself = UINT64_MAX;   // its index in the descriptor cache

struct fingerprint {   // what tells a file from a changed one
  std::uint64_t size = 0, inode = 0, device = 0;
  std::int64_t mtime = 0, ctime = 0;   // nanoseconds
  bool operator==(const fingerprint&) const = default;
};

std::int64_t nanoseconds(const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

fingerprint fingerprint_of(const struct stat& st) {
  return {static_cast<std::uint64_t>(st.st_size), st.st_ino, st.st_dev, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim)};
}

// The first thing that differs, in words; empty when nothing does.
std::string difference(const fingerprint& was, const fingerprint& is) {
  if (was.inode != is.inode || was.device != is.device) return "it was replaced by another file";
  if (was.size != is.size) return "its size was " + std::to_string(was.size) + " bytes and is " + std::to_string(is.size);
  if (was.mtime != is.mtime) return "it was written to";
  if (was.ctime != is.ctime) return "its attributes changed";
  return {};
}

struct source_file {
  std::string path;   // inside the folder; empty for the only file
  fingerprint seen;
  bool directory = false;
};

class disk_source final : public object_source {
 public:
  disk_source(std::string path, std::vector<source_file> files, std::shared_ptr<descriptor_cache> descriptors)
      : path_(std::move(path)), files_(std::move(files)), descriptors_(std::move(descriptors)), owner_(descriptors_->new_owner()) {}
  ~disk_source() override { descriptors_->forget(owner_); }
  disk_source(const disk_source&) = delete;
  disk_source& operator=(const disk_source&) = delete;

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override {
    const source_file& f = files_[part];
    bool changed = false;
    auto file = opened(part, changed);
    if (!file && (changed || file.error() == ENOENT)) {
      if (auto ok = check(f); !ok) return ok;
      return fail(errc::source_changed, "'" + shown(f) + "' changed while it was read: publish it again");
    }
    if (!file) return io_fault("cannot open '" + shown(f) + "'", file.error());
    const auto n = read_all((*file)->get(), offset, out);
    if (!n) return io_fault("reading '" + shown(f) + "' failed", n.error());
    if (*n == out.size()) return {};
    return fail(errc::source_changed, "'" + shown(f) + "' is shorter than the " + std::to_string(f.seen.size) +
                                          " bytes it had when the publication began: publish it again when nobody writes to it");
  }

  std::span<const std::byte> view(std::uint32_t, std::uint64_t, std::uint64_t) override { return {}; }

  result<void> check_open() override {
    for (std::uint32_t part = 0; part < files_.size(); ++part) {
      const source_file& f = files_[part];
      if (f.directory) continue;
      bool changed = false;
      const auto file = opened(part, changed);
      struct stat st {};
      if (!file || ::fstat((*file)->get(), &st) != 0) return fail(errc::source_changed, "'" + shown(f) + "' is not what it was");
      fingerprint is = fingerprint_of(st);
      is.ctime = f.seen.ctime;   // another in its place changed its number of names
      if (is != f.seen) return fail(errc::source_changed, "'" + shown(f) + "' was written to");
    }
    return {};
  }

  int descriptor_of(std::uint32_t part) override {
    bool changed = false;
    const auto file = opened(part, changed);
    return file ? (*file)->get() : -1;
  }

  std::string path() const override { return path_; }

  result<void> check_unchanged() override {
    for (const source_file& f : files_)
      if (auto ok = check(f); !ok) return ok;
    return {};
  }

  digest identity() const override {
    std::vector<std::byte> text;
    writer w(text);
    const auto put = [&](const std::string& s) {
      w.u32(static_cast<std::uint32_t>(s.size()));
      w.text(s);
    };
    put(path_);
    for (const source_file& f : files_) {
      put(f.path);
      w.u8(f.directory);
      if (f.directory) continue;
      w.u64(f.seen.size);
      w.u64(static_cast<std::uint64_t>(f.seen.mtime));
      w.u64(static_cast<std::uint64_t>(f.seen.ctime));
      w.u64(f.seen.inode);
    }
    return digest_of(text);
  }

 private:
  os_result<descriptor_cache::handle> opened(std::uint32_t part, bool& changed) {
    DDF_ASSERT(part < files_.size());
    const source_file& f = files_[part];
    return descriptors_->get({owner_, part}, [&]() -> os_result<descriptor> {
      auto file = open(f.path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
      struct stat st {};
      if (file && ::fstat(file->get(), &st) != 0) return tl::unexpected(errno);
      if (file && (changed = fingerprint_of(st) != f.seen)) return tl::unexpected(ESTALE);
      return file;
    });
  }

  std::string shown(const source_file& f) const { return printable(f.path.empty() ? path_ : path_ + '/' + f.path); }

  // Relative to the folder's descriptor, so that paths longer than PATH_MAX and a renamed folder do no harm.
  os_result<descriptor_cache::handle> folder() {
    return descriptors_->get({owner_, folder_itself}, [&]() -> os_result<descriptor> {
      descriptor d(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!d) return tl::unexpected(errno);
      return d;
    });
  }

  os_result<descriptor> open(const std::string& path, int flags) {
    descriptor d;
    if (path.empty()) {
      d = descriptor(::open(path_.c_str(), flags | O_CLOEXEC));
    } else {
      const auto at = folder();
      if (!at) return tl::unexpected(at.error());
      d = descriptor(::openat((*at)->get(), path.c_str(), flags | O_CLOEXEC));
    }
    if (!d) return tl::unexpected(errno);
    return d;
  }

  result<void> check(const source_file& f) {
    if (f.directory) return {};
    struct stat st {};
    int os = 0;
    if (f.path.empty()) {
      if (::stat(path_.c_str(), &st) != 0) os = errno;
    } else if (const auto at = folder(); !at) {
      os = at.error();
    } else if (::fstatat((*at)->get(), f.path.c_str(), &st, 0) != 0) {
      os = errno;
    }
    if (os == ENOENT || os == ENOTDIR) return fail(errc::source_changed, "'" + shown(f) + "' is gone since the publication began", os);
    if (os != 0) return io_fault("cannot look at '" + shown(f) + "'", os);
    if (const std::string what = difference(f.seen, fingerprint_of(st)); !what.empty())
      return fail(errc::source_changed, "'" + shown(f) + "' changed since the publication began (" + what + "): publish it again");
    return {};
  }

  const std::string path_;   // absolute
  const std::vector<source_file> files_;
  const std::shared_ptr<descriptor_cache> descriptors_;
  const std::uint64_t owner_;
};

std::string last_component(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

result<std::string> name_for(const path_source& given, const std::string& real_path) {
  std::string name = given.name;
  if (name.empty()) name = last_component(given.path);
  if (name.empty() || name == "." || name == "..") name = last_component(real_path);
  if (name.empty()) return fail(errc::invalid_argument, "'" + printable(given.path) + "' has no name of its own: give the object one");
  if (auto ok = check_object_name(name); !ok) return fail(ok.error().code, ok.error().what + ": give the object another name");
  return name;
}

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFSOCK: return "a socket";
    case S_IFIFO: return "a pipe";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    default: return "not a regular file";
  }
}

// The path down to the first component that is a hidden partial file or folder of ddf; empty when there is none.
std::string_view partial_prefix(std::string_view path) {
  for (std::size_t from = 0;;) {
    const auto slash = path.find('/', from);
    if (is_partial_name(path.substr(from, slash == std::string_view::npos ? slash : slash - from))) return path.substr(0, slash);
    if (slash == std::string_view::npos) return {};
    from = slash + 1;
  }
}

struct folder_contents {
  std::vector<part> parts;
  std::vector<source_file> files;
  std::vector<std::string> warnings;
};

result<folder_contents> read_folder(int folder, const std::string& path) {
  file_system files;
  std::string where;
  auto entries = scan_folder(files, folder, 2 * limits::parts, &where);
  if (!entries && entries.error() == EOVERFLOW) return fail(errc::too_large, "'" + printable(path) + "' holds more than 1,048,576 files: publish its folders one by one");
  if (!entries) return io_fault("cannot read '" + printable(path + '/' + where) + "'", entries.error());

  folder_contents out;
  std::vector<std::string_view> not_empty;   // folders with something in them that is published
  std::sort(entries->begin(), entries->end(), [](const scan_entry& a, const scan_entry& b) { return a.path < b.path; });
  const auto shown = [&](const scan_entry& e) { return "'" + printable(path + '/' + e.path) + "'"; };
  const auto left_out = [&](const scan_entry& e) {
    const auto prefix = partial_prefix(e.path);
    if (prefix.size() == e.path.size()) out.warnings.push_back(shown(e) + " is left out: ddf's own, what an interrupted transfer left or an older version");
    return !prefix.empty();
  };
  entries->erase(std::remove_if(entries->begin(), entries->end(), left_out), entries->end());
  for (scan_entry& e : *entries) {
    if (S_ISDIR(e.status.st_mode)) continue;
    if (S_ISLNK(e.status.st_mode)) {
      const bool leads_nowhere = ::fstatat(folder, e.path.c_str(), &e.status, 0) != 0;
      if (leads_nowhere && (errno == ENOENT || errno == ELOOP)) {
        out.warnings.push_back(shown(e) + " is left out: a link to nothing");
        continue;
      }
      if (leads_nowhere) return io_fault("cannot look at " + shown(e), errno);
      if (S_ISDIR(e.status.st_mode))
        return fail(errc::invalid_argument, shown(e) + " is a link to a folder, which is not followed: publish that folder itself, or replace the link by it");
    }
    if (!S_ISREG(e.status.st_mode)) {
      out.warnings.push_back(shown(e) + " is left out: " + std::string(kind_of(e.status.st_mode)));
      continue;
    }
    if (::faccessat(folder, e.path.c_str(), R_OK, AT_EACCESS) != 0) return io_fault("cannot read " + shown(e), errno);
    out.parts.push_back(part{e.path, static_cast<std::uint64_t>(e.status.st_size), e.status.st_mode & 07777u, false});
    out.files.push_back(source_file{e.path, fingerprint_of(e.status), false});
    for (auto slash = e.path.find('/'); slash != std::string::npos; slash = e.path.find('/', slash + 1))
      not_empty.push_back(std::string_view(e.path).substr(0, slash));
  }
  // A folder is a part of its own only when no other part implies it.
  for (const scan_entry& e : *entries)
    if (S_ISDIR(e.status.st_mode))
      for (auto slash = e.path.find('/'); slash != std::string::npos; slash = e.path.find('/', slash + 1))
        not_empty.push_back(std::string_view(e.path).substr(0, slash));
  std::sort(not_empty.begin(), not_empty.end());
  for (const scan_entry& e : *entries) {
    if (!S_ISDIR(e.status.st_mode) || std::binary_search(not_empty.begin(), not_empty.end(), e.path)) continue;
    out.parts.push_back(part{e.path, 0, e.status.st_mode & 07777u, true});
    out.files.push_back(source_file{e.path, {}, true});
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.first.name < b.first.name; };
  std::vector<std::pair<part, source_file>> both;
  both.reserve(out.parts.size());
  for (std::size_t i = 0; i < out.parts.size(); ++i) both.emplace_back(std::move(out.parts[i]), std::move(out.files[i]));
  std::sort(both.begin(), both.end(), by_name);
  for (std::size_t i = 0; i < both.size(); ++i) {
    out.parts[i] = std::move(both[i].first);
    out.files[i] = std::move(both[i].second);
  }
  return out;
}

}  // namespace

result<opened_source> open_path(const path_source& given, std::shared_ptr<descriptor_cache> descriptors) {
  if (given.path.empty() || given.path.find('\0') != std::string::npos) return fail(errc::invalid_argument, "an empty path, or one with a NUL byte, names no file");
  const std::string quoted = "'" + printable(given.path) + "'";
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(given.path.c_str(), nullptr), &std::free);
  if (!real) return io_fault("cannot open " + quoted, errno);
  const std::string path = real.get();
  const auto name = name_for(given, path);
  if (!name) return tl::unexpected(name.error());

  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return io_fault("cannot look at " + quoted, errno);
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
    return fail(errc::invalid_argument, quoted + " is " + std::string(kind_of(st.st_mode)) + ": only files and folders can be published");
  const descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!opened) return io_fault("cannot open " + quoted, errno);
  if (::fstat(opened.get(), &st) != 0) return io_fault("cannot look at " + quoted, errno);

  opened_source out;
  manifest& m = out.description;
  m.name = *name;
  std::vector<source_file> files;
  if (S_ISDIR(st.st_mode)) {
    auto contents = read_folder(opened.get(), path);
    if (!contents) return tl::unexpected(contents.error());
    m.kind = object_kind::folder;
    m.parts = std::move(contents->parts);
    files = std::move(contents->files);
    out.warnings = std::move(contents->warnings);
  } else {
    m.kind = object_kind::file;
    m.parts.push_back(part{{}, static_cast<std::uint64_t>(st.st_size), st.st_mode & 07777u, false});
    files.push_back(source_file{{}, fingerprint_of(st), false});
  }
  m.block_bytes = block_bytes_for(m.size());
  if (auto ok = check_catalogue({m}); !ok) return fail(ok.error().code, quoted + " cannot be published: " + ok.error().what, ok.error().os);
  if (!descriptors) descriptors = std::make_shared<descriptor_cache>(descriptor_cache::sensible_size(files_open_max));
  out.source = std::make_unique<disk_source>(path, std::move(files), std::move(descriptors));
  return out;
}

}  // namespace ddf
