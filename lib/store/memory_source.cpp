// Memory of the caller as the source of an object.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/source.hpp"

namespace ddf {

namespace {

class memory_source final : public object_source {
 public:
  explicit memory_source(std::vector<std::span<const std::byte>> parts) : parts_(std::move(parts)) {}

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override {
    const auto bytes = view(part, offset, out.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return {};
  }
  std::span<const std::byte> view(std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) override {
    DDF_ASSERT(part < parts_.size() && offset <= parts_[part].size() && bytes <= parts_[part].size() - offset);
    return parts_[part].subspan(offset, bytes);
  }
  result<void> check_unchanged() override { return {}; }   // that it stays unchanged is the caller's promise
  digest identity() const override { return {}; }

 private:
  const std::vector<std::span<const std::byte>> parts_;
};

}  // namespace

result<opened_source> open_memory(const std::string& name, std::span<const part_view> parts) {
  opened_source out;
  manifest& m = out.description;
  m.name = name;
  m.kind = object_kind::memory;
  // A manifest has one element width: where the parts differ, none is stated.
  m.element_bytes = parts.empty() ? std::uint8_t{1} : parts.front().element_bytes;
  std::vector<std::span<const std::byte>> bytes;
  bytes.reserve(parts.size());
  for (const part_view& p : parts) {
    if (p.element_bytes == 0 || p.element_bytes > 16) return fail(errc::invalid_argument, "part '" + printable(p.name) + "': an element has 1 to 16 bytes");
    if (p.element_bytes != m.element_bytes) m.element_bytes = 1;
    m.parts.push_back(part{p.name, p.bytes.size(), 0644, false});
    bytes.push_back(p.bytes);
  }
  m.block_bytes = block_bytes_for(m.size());

  // Several parts may land as a folder of files, so their names keep a folder's rules; a single part needs no name.
  manifest as_received = m;
  as_received.kind = parts.size() == 1 && parts.front().name.empty() ? object_kind::file : object_kind::folder;
  if (auto ok = check_catalogue({as_received}); !ok) return tl::unexpected(ok.error());
  out.source = std::make_unique<memory_source>(std::move(bytes));
  return out;
}

}  // namespace ddf
