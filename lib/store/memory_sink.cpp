// Keeps an object in a sealed memory file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/descriptor.hpp"
#include "lib/store/file_system.hpp"
#include "lib/store/sink.hpp"

namespace ddf {

namespace {

class sealed_memory final : public memory_sink {
 public:
  sealed_memory(std::string name, descriptor file, std::vector<std::uint64_t> offsets, std::vector<std::uint64_t> sizes, std::uint64_t bytes)
      : name_(std::move(name)), file_(std::move(file)), offsets_(std::move(offsets)), sizes_(std::move(sizes)), bytes_(bytes) {}
  ~sealed_memory() override {
    if (mapped_) ::munmap(mapped_, bytes_);
  }
  sealed_memory(const sealed_memory&) = delete;
  sealed_memory& operator=(const sealed_memory&) = delete;

  result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) override {
    DDF_ASSERT(part < sizes_.size() && offset <= sizes_[part]);
    std::uint64_t bytes = 0;
    for (const iovec& piece : pieces) bytes += piece.iov_len;
    DDF_ASSERT(bytes <= sizes_[part] - offset);
    if (const int os = write_all(files_, file_.get(), offsets_[part] + offset, pieces); os != 0) return fault("writing", os);
    return {};
  }

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override {
    DDF_ASSERT(part < sizes_.size() && offset <= sizes_[part] && out.size() <= sizes_[part] - offset);
    const auto n = read_all(file_.get(), offsets_[part] + offset, out);
    if (!n) return fault("reading", n.error());
    return {};
  }

  result<std::string> commit(const digest_table&) override {
    DDF_ASSERT(!mapped_);
    if (::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) return fault("sealing", errno);
    if (bytes_ == 0) return std::string();
    void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED) return fault("mapping", errno);
    mapped_ = at;
    return std::string();
  }

  result<void> checkpoint(const range_set&) override { return {}; }   // ends with the process, whatever is written down
  result<void> keep(const range_set&) override {
    discard();
    return {};
  }
  void discard() override { file_ = descriptor(); }

  std::span<const std::byte> view(std::uint32_t part) const override {
    if (!mapped_ || part >= sizes_.size()) return {};
    return {static_cast<const std::byte*>(mapped_) + offsets_[part], sizes_[part]};
  }

 private:
  tl::unexpected<error> fault(const char* attempted, int os) const { return io_fault(std::string(attempted) + " the memory of '" + printable(name_) + "' failed", os); }

  file_system files_;
  const std::string name_;
  descriptor file_;
  const std::vector<std::uint64_t> offsets_, sizes_;
  const std::uint64_t bytes_;
  void* mapped_ = nullptr;
};

}  // namespace

result<std::unique_ptr<memory_sink>> memory_sink::open(const manifest& m) {
  constexpr std::uint64_t alignment = 64;   // a cache line, and enough for vector loads of any element
  constexpr std::size_t memfd_name_max = 249;
  std::vector<std::uint64_t> offsets, sizes;
  std::uint64_t bytes = 0;
  for (const part& p : m.parts) {
    if (p.size > limits::object_bytes || bytes > limits::object_bytes) return fail(errc::too_large, "'" + printable(m.name) + "' is larger than 1 PiB");
    offsets.push_back(bytes);
    sizes.push_back(p.size);
    bytes += (p.size + alignment - 1) / alignment * alignment;
  }
  descriptor file(::memfd_create(m.name.substr(0, memfd_name_max).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return io_fault("cannot make shared memory for '" + printable(m.name) + "'", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return io_fault("cannot size shared memory for '" + printable(m.name) + "'", errno);
  return std::make_unique<sealed_memory>(m.name, std::move(file), std::move(offsets), std::move(sizes), bytes);
}

}  // namespace ddf
