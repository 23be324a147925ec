#include "lib/store/receive_state.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "codecs/digest.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::string_view secret_magic = "ddfstat1";
static constexpr const char *partial = ".partial", *version = ".version", *digests = ".digests", *description = ".manifest";
static constexpr std::string_view manifest_magic = "ddfmani1";

// Of its own for each inode, so that two who make the same name visible at once do not mix their records.
static std::string prepared(const std::string& kind, std::uint64_t inode) { return kind + '-' + std::to_string(inode); }

static digest random_digest() {
  digest d;
  for (std::size_t at = 0; at < d.bytes.size();) {
    const ssize_t n = ::getrandom(d.bytes.data() + at, d.bytes.size() - at, 0);
    if (n > 0) at += static_cast<std::size_t>(n);   // only a signal interrupts
  }
  return d;
}

static std::optional<digest> load_secret(int folder) {
  const auto record = load_record(folder, "secret", 64);
  const auto body = record ? unseal_record(secret_magic, *record) : std::nullopt;
  if (!body || body->size() != digest::size) return std::nullopt;
  digest d;
  std::copy(body->begin(), body->end(), d.bytes.begin());
  return d;
}

result<std::unique_ptr<receive_state>> receive_state::open(std::shared_ptr<file_system> files, const std::string& directory, const std::string& place) {
  std::unique_ptr<receive_state> state(new receive_state(std::move(files), place));
  state->secret_ = random_digest();
  if (directory.empty()) return state;
  auto folder = open_record_folder(*state->files_, directory + "/receive");
  if (!folder) return tl::unexpected(folder.error());
  state->folder_ = std::move(*folder);
  const int at = state->folder_.get();
  if (!load_secret(at)) {   // of two processes that make one at once, the later rename counts, for both unless they are unlucky
    if (auto ok = save_record(*state->files_, at, "secret", seal_record(secret_magic, state->secret_.bytes), false); !ok) return tl::unexpected(ok.error());
  }
  if (const auto kept = load_secret(at)) state->secret_ = *kept;
  return state;
}

std::string receive_state::tag(const std::string& object_name) const {
  std::vector<std::byte> text;
  writer w(text);
  w.bytes(secret_.bytes);
  w.text(record_name(place_, object_name));
  return hexadecimal(digest_of(text).bytes).substr(0, 8);
}

std::string receive_state::random_tag() { return hexadecimal(random_digest().bytes).substr(0, 8); }

// A lock per object would take a descriptor each, and ten thousand byte ranges of one file take the kernel a second:
// it keeps them in a list. So the ranges are spread over a few files. They are locks of the open file, not of the
// process (F_OFD_SETLK), end with it however it ends, and say nothing when the file system cannot lock.
int receive_state::lock_file(std::uint64_t byte) {
  descriptor& file = lock_files_[byte % shards];
  if (!file) {
    const std::string name = "lock." + std::to_string(byte % shards);
    file = descriptor(files_->openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  }
  return file.get();
}

static struct flock range_lock(short type, std::uint64_t byte) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  return range;
}

std::optional<receive_state::claim> receive_state::try_claim(const std::string& object_name) {
  if (!folder_) return std::nullopt;
  const std::string key = record_name(place_, object_name);
  const std::uint64_t byte = std::stoull(key.substr(0, 15), nullptr, 16);   // 60 bits: an offset is signed
  const std::lock_guard lock(mutex_);
  if (claimed_.contains(byte)) return std::nullopt;
  struct flock range = range_lock(F_WRLCK, byte);
  const int file = lock_file(byte);
  if (file < 0 || ::fcntl(file, F_OFD_SETLK, &range) != 0) return std::nullopt;
  claimed_.insert(byte);
  return claim(this, byte);
}

void receive_state::release(std::uint64_t byte) {
  const std::lock_guard lock(mutex_);
  struct flock range = range_lock(F_UNLCK, byte);
  ::fcntl(lock_file(byte), F_OFD_SETLK, &range);
  claimed_.erase(byte);
}

receive_state::claim::~claim() {
  if (state_) state_->release(byte_);
}

std::optional<partial_record> receive_state::load_partial(const std::string& object_name) const {
  const auto bytes = load_record(folder_.get(), record(object_name, partial), partial_record::bytes_max);
  return bytes ? parse_partial_record(*bytes) : std::nullopt;
}

result<void> receive_state::save_partial(const std::string& object_name, const partial_record& r) const {
  if (!folder_) return {};
  return save_record(*files_, folder_.get(), record(object_name, partial), write_record(r), false);
}

void receive_state::remove_partial(const std::string& object_name) const {
  if (folder_) files_->unlinkat(folder_.get(), record(object_name, partial).c_str(), 0);
}

std::optional<committed_record> receive_state::load_committed(const std::string& object_name, std::uint64_t inode) const {
  const auto load = [&](const std::string& kind) {
    const auto bytes = load_record(folder_.get(), record(object_name, kind), committed_record::bytes_max);
    auto found = bytes ? parse_committed_record(*bytes) : std::nullopt;
    if (found && found->inode != inode) found.reset();
    return found;
  };
  if (auto found = load(version)) return found;
  auto found = load(prepared(version, inode));   // a crash came between the rename of the object and that of its records
  if (found) settle_committed(object_name, inode);
  return found;
}

result<void> receive_state::prepare_committed(const std::string& object_name, const committed_record& r, const manifest& m, const digest_table* t) const {
  if (!folder_) return {};
  // Without the first two a later version is fetched whole, no more.
  save(object_name, prepared(description, r.inode), seal_record(manifest_magic, write_catalogue({m})));
  if (t) save(object_name, prepared(digests, r.inode), write_record(*t));
  return save_record(*files_, folder_.get(), record(object_name, prepared(version, r.inode)), write_record(r), false);
}

void receive_state::settle_committed(const std::string& object_name, std::uint64_t inode) const {
  if (!folder_) return;
  for (const char* kind : {digests, description, version})   // the last one says that there is nothing more to settle
    files_->renameat2(folder_.get(), record(object_name, prepared(kind, inode)).c_str(), folder_.get(), record(object_name, kind).c_str(), 0);
}

void receive_state::withdraw_committed(const std::string& object_name, std::uint64_t inode) const {
  if (!folder_) return;
  for (const char* kind : {version, description, digests}) files_->unlinkat(folder_.get(), record(object_name, prepared(kind, inode)).c_str(), 0);
}

void receive_state::save(const std::string& object_name, const std::string& kind, std::span<const std::byte> bytes) const {
  if (!save_record(*files_, folder_.get(), record(object_name, kind), bytes, false)) files_->unlinkat(folder_.get(), record(object_name, kind).c_str(), 0);
}

std::optional<manifest> receive_state::load_manifest(const std::string& object_name) const {
  const auto bytes = load_record(folder_.get(), record(object_name, description), limits::catalogue_bytes);
  const auto body = bytes ? unseal_record(manifest_magic, *bytes) : std::nullopt;
  if (!body) return std::nullopt;
  auto one = parse_catalogue(*body);
  return one && one->size() == 1 ? std::optional(std::move(one->front())) : std::nullopt;
}

void receive_state::forget(const std::string& object_name) const {
  if (!folder_) return;
  for (const char* kind : {version, digests, description}) files_->unlinkat(folder_.get(), record(object_name, kind).c_str(), 0);
}

std::optional<digest_table> receive_state::load_digests(const std::string& object_name) const {
  const auto bytes = load_record(folder_.get(), record(object_name, digests), digest_record_bytes_max);
  return bytes ? parse_digest_record(*bytes) : std::nullopt;
}

}  // namespace ddf
