#include "lib/store/scratch.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "lib/store/file_system.hpp"

namespace ddf {

result<std::shared_ptr<scratch_file>> scratch_file::make(const std::string& folder) {
  descriptor file;
  if (!folder.empty()) file = descriptor(::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!file) file = descriptor(::memfd_create("ddf delta", MFD_CLOEXEC));
  if (!file) return io_fault("cannot make a scratch file", errno);
  return std::shared_ptr<scratch_file>(new scratch_file(std::move(file)));
}

result<void> scratch_file::write(std::uint64_t offset, std::span<const iovec> pieces) {
  file_system files;
  if (const int os = write_all(files, file_.get(), offset, pieces); os != 0) return io_fault("writing a scratch file failed", os);
  return {};
}

result<void> scratch_file::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return write(offset, std::span(&piece, 1));
}

result<void> scratch_file::read(std::uint64_t offset, std::span<std::byte> out) const {
  const auto n = read_all(file_.get(), offset, out);
  if (!n) return io_fault("reading a scratch file failed", n.error());
  if (*n != out.size()) return fail(errc::integrity, "a scratch file is shorter than what was written to it");
  return {};
}

result<void> scratch_sink::write(std::uint32_t, std::uint64_t offset, std::span<const iovec> pieces) { return file_->write(offset, pieces); }
result<void> scratch_sink::read(std::uint32_t, std::uint64_t offset, std::span<std::byte> out) { return file_->read(offset, out); }

}  // namespace ddf
