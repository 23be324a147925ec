#include "lib/store/published.hpp"

#include <fcntl.h>

#include <algorithm>
#include <string_view>

#include "codecs/digest.hpp"
#include "lib/store/record.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

static constexpr std::string_view magic = "ddfpubl2";
static constexpr std::size_t bytes_max = 512 + digest_table::bytes(limits::blocks);

// Body, big-endian: name length(16) name version(64) identity(128) root(128), per block digest(128).
std::vector<std::byte> write_published(const std::string& name, const published_version& v) {
  std::vector<std::byte> body;
  writer w(body);
  w.u16(static_cast<std::uint16_t>(name.size()));
  w.text(name);
  w.u64(v.version.value);
  w.bytes(v.identity.bytes);
  w.bytes(v.digests.root.bytes);
  for (const digest& d : v.digests.blocks) w.bytes(d.bytes);
  return seal_record(magic, body);
}

std::optional<published_version> parse_published(const std::string& name, std::span<const std::byte> record) {
  const auto body = unseal_record(magic, record);
  if (!body) return std::nullopt;
  reader r(*body);
  if (r.text(r.u16()) != name) return std::nullopt;   // two names with one digest, or a file that was moved here
  published_version v;
  v.version.value = r.u64();
  v.identity = r.digest();
  v.digests.root = r.digest();
  if (!r.ok() || v.version.value == 0 || r.left() % digest::size != 0 || r.left() / digest::size > limits::blocks) return std::nullopt;
  v.digests.blocks.resize(r.left() / digest::size);
  for (digest& d : v.digests.blocks) d = r.digest();
  return v;
}

std::optional<published_version> published_store::load(const std::string& name) const {
  if (directory_.empty()) return std::nullopt;
  const descriptor folder(::open((directory_ + "/publish").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto record = load_record(folder.get(), record_name({}, name), bytes_max);
  return record ? parse_published(name, *record) : std::nullopt;
}

result<void> published_store::save(const std::string& name, const published_version& v) const {
  if (directory_.empty()) return {};
  file_system files;
  auto folder = open_record_folder(files, directory_ + "/publish");
  if (!folder) return tl::unexpected(folder.error());
  return save_record(files, folder->get(), record_name({}, name), write_published(name, v), true);   // a lost record would reuse a version
}

}  // namespace ddf
