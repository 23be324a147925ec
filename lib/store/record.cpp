#include "lib/store/record.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "codecs/digest.hpp"
#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

std::string hexadecimal(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += digits[std::to_integer<std::size_t>(b >> 4)];
    out += digits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return out;
}

std::vector<std::byte> seal_record(std::string_view magic, std::span<const std::byte> body) {
  DDF_ASSERT(magic.size() == record_magic_bytes);
  std::vector<std::byte> out;
  out.reserve(record_magic_bytes + digest::size + body.size());
  writer w(out);
  w.text(magic);
  w.bytes(digest_of(body).bytes);
  w.bytes(body);
  return out;
}

std::optional<std::span<const std::byte>> unseal_record(std::string_view magic, std::span<const std::byte> record) {
  reader r(record);
  const bool known = r.text(record_magic_bytes) == magic;
  const auto claimed = r.bytes(digest::size);
  if (!known || !r.ok()) return std::nullopt;
  const digest found = digest_of(r.rest());
  if (!std::equal(claimed.begin(), claimed.end(), found.bytes.begin())) return std::nullopt;
  return r.rest();
}

result<void> save_record(file_system& files, int folder, const std::string& name, std::span<const std::byte> record, bool durable) {
  std::array<std::byte, 6> random{};   // two processes may save the same record: the later rename counts
  if (::getrandom(random.data(), random.size(), 0) < 0) return io_fault("no random number to name a temporary file with", errno);
  const std::string temporary = name + '.' + hexadecimal(random);
  const auto abandon = [&](const char* attempted) {
    const int os = errno;
    files.unlinkat(folder, temporary.c_str(), 0);
    return io_fault(std::string(attempted) + " in the state folder failed", os);
  };
  descriptor file(files.openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return io_fault("making a record in the state folder failed", errno);
  const iovec piece{const_cast<std::byte*>(record.data()), record.size()};
  if (const int os = write_all(files, file.get(), 0, {&piece, 1}); os != 0) return errno = os, abandon("writing a record");
  if (durable && files.fsync(file.get()) != 0) return abandon("fsync of a record");
  if (files.renameat2(folder, temporary.c_str(), folder, name.c_str(), 0) != 0) return abandon("renaming a record");
  if (durable && files.fsync(folder) != 0) return io_fault("fsync of the state folder failed", errno);
  return {};
}

std::optional<std::vector<std::byte>> load_record(int folder, const std::string& name, std::size_t bytes_max) {
  if (folder < 0) return std::nullopt;
  const descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  if (st.st_size < 0 || static_cast<std::uint64_t>(st.st_size) > bytes_max) return std::nullopt;
  std::vector<std::byte> out(static_cast<std::size_t>(st.st_size));
  const auto n = read_all(file.get(), 0, out);
  if (!n || *n != out.size()) return std::nullopt;
  return out;
}

result<descriptor> open_record_folder(file_system& files, const std::string& path) {
  auto folder = open_or_make_folder(files, path, 0700);
  if (!folder) return io_fault("cannot make the state folder '" + printable(path) + "'", folder.error());
  return std::move(*folder);
}

digest description_digest(const manifest& m) {
  catalogue one{m};
  one.front().version = version_id{1};
  one.front().consistent = consistency::versioned;   // what a session says of it is no part of what it is
  one.front().base.clear();
  return digest_of(write_catalogue(one));
}

std::string record_name(std::string_view place, std::string_view object_name) {
  std::vector<std::byte> text;
  writer w(text);
  w.u32(static_cast<std::uint32_t>(place.size()));   // so that no two pairs run together
  w.text(place);
  w.text(object_name);
  return hexadecimal(digest_of(text).bytes);
}

}  // namespace ddf
