#include "transports/sim/content.hpp"

#include <algorithm>
#include <cstring>

#include "codecs/block_digest.hpp"
#include "lib/model/prng.hpp"

namespace ddf::sim {

static std::vector<std::byte> random_bytes(std::uint64_t size, prng& random) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
  }
  return out;
}

content::content(const std::vector<object_spec>& specs, std::uint64_t seed) : seed_(seed) {
  prng random(seed);
  for (const object_spec& spec : specs) {
    manifest m;
    m.name = spec.name;
    m.version = spec.version;
    m.block_bytes = spec.block_bytes;
    m.kind = spec.parts.size() == 1 ? object_kind::file : object_kind::folder;
    std::vector<std::vector<std::byte>> parts;
    for (std::size_t p = 0; p < spec.parts.size(); ++p) {
      ddf::part described;
      described.name = spec.parts.size() == 1 ? "" : "part-" + std::to_string(p);
      described.size = spec.parts[p];
      m.parts.push_back(described);
      parts.push_back(random_bytes(spec.parts[p], random));
    }
    add(std::move(m), std::move(parts));
    deltas_.push_back(spec.deltas);
  }
}

void content::add(manifest m, std::vector<std::vector<std::byte>> parts) {
  digest_table table;
  for (const std::span<const std::byte> bytes : parts)
    for (std::size_t at = 0; at < bytes.size(); at += m.block_bytes)
      table.blocks.push_back(block_digest(bytes.subspan(at, std::min<std::size_t>(m.block_bytes, bytes.size() - at))));
  table.root = root_digest(m.name, m.size(), table.blocks);
  std::vector<std::byte> flat(table.root.bytes.begin(), table.root.bytes.end());
  for (const digest& d : table.blocks) flat.insert(flat.end(), d.bytes.begin(), d.bytes.end());
  objects_.push_back(std::move(m));
  parts_.push_back(std::move(parts));
  tables_.push_back(std::move(table));
  table_bytes_.push_back(std::move(flat));
}

std::shared_ptr<const content> content::with(const session_plan& p) const {
  auto all = std::make_shared<content>(*this);
  for (const delta_stream& d : p.deltas) {
    prng random(seed_ ^ d.bytes ^ d.object << 20);
    std::vector<std::vector<std::byte>> parts;
    parts.push_back(random_bytes(d.bytes, random));
    all->add(delta_manifest(d, objects_[d.object]), std::move(parts));
  }
  return all;
}

std::uint64_t content::size() const {
  std::uint64_t sum = 0;
  for (const manifest& m : objects_) sum += m.size();
  return sum;
}

}  // namespace ddf::sim
