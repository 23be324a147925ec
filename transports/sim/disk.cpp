#include "transports/sim/disk.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "codecs/block_digest.hpp"

namespace ddf::sim {

static constexpr std::byte poison{0xdb};

sink::sink(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object)
    : manifest_(m), truth_(std::move(truth)), object_(object), written_(m.parts.size()), buffers_(m.parts.size()) {}

void sink::materialise(std::uint32_t part) {
  if (!buffers_[part].empty()) return;
  const auto bytes = true_bytes(part);
  buffers_[part].assign(bytes.size(), poison);
  for (const auto& [first, last] : written_[part]) std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.begin() + static_cast<std::ptrdiff_t>(last), buffers_[part].begin() + static_cast<std::ptrdiff_t>(first));
}

void sink::write(std::uint32_t part, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset + bytes.size() > manifest_.parts.at(part).size) throw std::logic_error("a write past the end of a part");
  if (buffers_[part].empty() && !std::ranges::equal(bytes, true_bytes(part).subspan(offset, bytes.size()))) materialise(part);
  if (!buffers_[part].empty()) std::ranges::copy(bytes, buffers_[part].begin() + static_cast<std::ptrdiff_t>(offset));
  written_[part].insert(offset, offset + bytes.size());
  written_bytes_ += bytes.size();
}

std::vector<std::byte> sink::read(std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<std::byte> out(bytes, poison);
  if (!buffers_[part].empty()) {
    std::copy_n(buffers_[part].begin() + static_cast<std::ptrdiff_t>(offset), bytes, out.begin());
    return out;
  }
  const auto truth = true_bytes(part);
  std::uint64_t at = offset;
  while (const auto r = written_[part].first_in(at, offset + bytes)) {
    std::copy(truth.begin() + static_cast<std::ptrdiff_t>(r->first), truth.begin() + static_cast<std::ptrdiff_t>(r->last), out.begin() + static_cast<std::ptrdiff_t>(r->first - offset));
    at = r->last;
  }
  return out;
}

bool sink::equals_truth() const {
  for (std::uint32_t p = 0; p < manifest_.parts.size(); ++p) {
    const auto truth = true_bytes(p);
    if (truth.size() != manifest_.parts[p].size) return false;
    if (buffers_[p].empty() ? !written_[p].contains(0, truth.size()) : !std::ranges::equal(buffers_[p], truth)) return false;
  }
  return true;
}

void sink::take_over(std::shared_ptr<const content> truth, std::uint32_t object) {
  if (truth != truth_ || object != object_)
    for (std::uint32_t p = 0; p < manifest_.parts.size(); ++p)
      if (!written_[p].empty()) materialise(p);
  truth_ = std::move(truth);
  object_ = object;
  manifest_ = truth_->objects()[object_];
}

static bool equal_but_version(manifest a, const manifest& b) {
  a.version = b.version;
  return a == b;
}

result<opened_object> disk::open(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object, std::string& key) {
  if (++opens_ == fail.open) return ddf::fail(errc::io, "cannot make the file", EACCES);
  opened_object out;
  if (const auto v = visible_.find(m.name); v != visible_.end() && equal_but_version(v->second.description, m)) out.current = v->second.root;
  if (const auto v = visible_.find(m.name); v != visible_.end()) out.held.push_back({0, v->second.description.version, v->second.root, out.current.has_value()});
  key = m.name;
  while (partial_.contains(key) && partial_[key].in_hand) key += '~';
  partial_object& p = partial_[key];
  p.in_hand = true;
  if (p.bytes && equal_but_version(p.bytes->description(), m)) {
    out.resumable = p.complete;
    p.bytes->take_over(std::move(truth), object);
  } else {
    p.bytes = std::make_unique<sink>(m, std::move(truth), object);
  }
  p.complete.clear();
  return out;
}

result<opened_object> disk::open_delta(const manifest& m, std::shared_ptr<const content> truth, std::uint32_t object, std::string& key) {
  if (++opens_ == fail.open) return ddf::fail(errc::io, "cannot make the file", EACCES);
  key = m.name + " delta";
  while (partial_.contains(key)) key += '~';
  partial_[key].bytes = std::make_unique<sink>(m, std::move(truth), object);
  return opened_object{};
}

result<patch> disk::apply(const std::string& delta_key, const std::string& key, const delta_stream& d, const content& truth) {
  if (++applies_ == fail.apply) return ddf::fail(errc::io, "cannot write", ENOSPC);
  if (!partial_.at(delta_key).bytes->equals_truth()) throw std::logic_error("a delta is applied that is not what was sent");
  sink& target = *partial_.at(key).bytes;
  const auto base = visible_.find(target.description().name);
  if (base == visible_.end() || base->second.root != d.base_root) throw std::logic_error("a delta is applied to another base");
  if (base->second.spoilt) return ddf::fail(errc::stale_base, "the base is not what it was");
  patch out;
  out.table = truth.table(d.object);
  const std::vector<block_place> blocks = block_places(target.description());
  for (std::uint64_t row = 0; row < blocks.size(); ++row) {
    if (std::ranges::any_of(d.whole, [&](const range& r) { return r.first <= row && row < r.last; })) continue;
    const block_place& b = blocks[row];
    target.write(b.part, b.offset, truth.part(d.object, b.part).subspan(b.offset, b.bytes));
    out.rows.insert(row, row + 1);
  }
  return out;
}

result<void> disk::write(const std::string& key, std::uint32_t part, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (++writes_ == fail.write) return ddf::fail(errc::io, "cannot write", ENOSPC);
  partial_.at(key).bytes->write(part, offset, bytes);
  bytes_written_ += bytes.size();
  return {};
}

result<digest> disk::digest_of_block(const std::string& key, const block_extent& b) {
  if (++reads_ == fail.read) return ddf::fail(errc::io, "cannot read back", EIO);
  return block_digest(partial_.at(key).bytes->read(b.part, b.offset, b.bytes));
}

result<void> disk::commit(const std::string& key, const digest& root) {
  if (++commit_calls_ == fail.commit) return ddf::fail(errc::io, "cannot rename", EDQUOT);
  const auto p = partial_.find(key);
  if (p == partial_.end()) throw std::logic_error("'" + key + "' is committed, and was not opened or is committed already");
  if (!p->second.bytes->equals_truth()) throw std::logic_error("'" + key + "' becomes visible with wrong bytes");
  const manifest& m = p->second.bytes->description();
  visible_[m.name] = {m, root, false};
  partial_.erase(p);
  ++commits_;
  if (on_commit) on_commit();
  return {};
}

void disk::discard(const std::string& key) { partial_.erase(key); }

void disk::keep(const std::string& key, const range_set& complete) {
  if (const auto p = partial_.find(key); p != partial_.end()) p->second.complete = complete, p->second.in_hand = false;
}

}  // namespace ddf::sim
