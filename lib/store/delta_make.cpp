#include "lib/store/delta_make.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "codecs/block_digest.hpp"
#include "codecs/delta/workspace.hpp"
#include "lib/model/assert.hpp"
#include "lib/store/parallel.hpp"

namespace ddf {

namespace {

class maker {
 public:
  maker(const manifest& target, object_source& source, digest_table& digests, bool digests_known, const delta_base& base, const delta_options& o, const std::atomic<bool>& abandon)
      : target_(target), source_(source), digests_(digests), digests_known_(digests_known), base_(base), options_(o), abandon_(abandon),
        places_(block_places(target)), base_places_(block_places(base.description)) {}

  result<made_delta> run() {
    const auto from = std::chrono::steady_clock::now();
    made_.base_root = base_.digests.root;
    made_.base_version = base_.version;
    made_.base_bytes = base_.description.size();
    made_.rows.resize(places_.size());
    made_.places.resize(places_.size());
    digests_.blocks.resize(places_.size());
    for (std::size_t b = base_.digests.blocks.size(); b-- > 0;) base_rows_[base_.digests.blocks[b]] = b;   // the first of equals
    auto scratch = scratch_file::make(options_.scratch_folder);
    if (!scratch) return tl::unexpected(scratch.error());
    made_.payloads = std::move(*scratch);
    if (base_.bytes) {
      const auto read_target = [&, bytes = bytes_of(target_, source_)](std::uint64_t offset, std::span<std::byte> out) { return bytes->read(offset, out); };
      const auto read_base = [&](std::uint64_t offset, std::span<std::byte> out) { return base_.bytes->read(offset, out); };
      auto old_map = delta::tensor_map_of(base_.description, read_base);
      if (!old_map) return tl::unexpected(old_map.error());
      auto new_map = delta::tensor_map_of(target_, read_target);
      if (!new_map) return tl::unexpected(new_map.error());
      auto regions = delta::align(*old_map, read_base, *new_map, read_target);
      if (!regions) return tl::unexpected(regions.error());
      regions_ = std::move(*regions);
    }
    in_parallel(options_.threads, places_.size(), [this] { work(); });
    if (!outcome_) return tl::unexpected(outcome_.error());
    if (abandon_) return fail(errc::interrupted, "the publication ended while its delta was made");
    made_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
    return std::move(made_);
  }

 private:
  void work() {
    delta::workspace w;
    delta::account account;
    std::vector<std::byte> target, payload;
    for (std::size_t row = next_++; row < places_.size() && !abandon_ && !failed_; row = next_++)
      if (auto ok = one(row, w, account, target, payload); !ok) {
        const std::lock_guard lock(mutex_);
        if (outcome_) outcome_ = ok;
        failed_ = true;
      }
    const std::lock_guard lock(mutex_);
    made_.account += account;
  }

  // A block of the base with this digest: at the same row if there is one.
  const std::uint64_t* kept(std::size_t row, const digest& d) const {
    const auto it = base_rows_.find(d);
    return it == base_rows_.end() || base_places_[it->second].bytes != places_[row].bytes ? nullptr : &it->second;
  }

  void keep(std::size_t row, const digest& d, std::uint64_t base_row) {
    const bool same_row = row < base_.digests.blocks.size() && base_.digests.blocks[row] == d && base_places_[row].bytes == places_[row].bytes;
    made_.rows[row] = {delta::stream_row::kind::keep, same_row ? row : base_row, 0, 0, d};
  }

  result<void> one(std::size_t row, delta::workspace& w, delta::account& account, std::vector<std::byte>& buffer, std::vector<std::byte>& payload) {
    const block_place& at = places_[row];
    const bool untouched = options_.changed != nullptr && !options_.changed->intersects(at.object_offset, at.object_offset + at.bytes) && row < base_places_.size() &&
                           base_places_[row].bytes == at.bytes && base_places_[row].object_offset == at.object_offset;
    if (untouched && !digests_known_) digests_.blocks[row] = base_.digests.blocks[row];
    if (untouched || digests_known_)
      if (const auto* found = kept(row, digests_.blocks[row])) return keep(row, digests_.blocks[row], *found), result<void>{};
    delta::stream_row& out = made_.rows[row];
    out.by = delta::stream_row::kind::whole;
    if (digests_known_ && !base_.bytes) return out.result = digests_.blocks[row], result<void>{};   // nothing to compare with
    std::span<const std::byte> target = source_.view(at.part, at.offset, at.bytes);
    if (target.empty()) {
      if (buffer.size() < at.bytes) buffer.resize(at.bytes);
      const auto into = std::span(buffer).first(at.bytes);
      if (auto ok = source_.read(at.part, at.offset, into); !ok) return ok;
      target = into;
    }
    if (!digests_known_) {
      digests_.blocks[row] = block_digest(target);
      if (const auto* found = kept(row, digests_.blocks[row])) return keep(row, digests_.blocks[row], *found), result<void>{};
    }
    out.result = digests_.blocks[row];
    if (!base_.bytes) return {};
    payload.clear();
    if (auto ok = delta::encode_block(w, at.object_offset, target, regions_, *base_.bytes, options_.profile, payload, &account); !ok) return ok;
    out.by = delta::stream_row::kind::patch;
    out.bytes = payload.size();
    made_.places[row] = used_.fetch_add(payload.size());
    return payload.empty() ? result<void>{} : made_.payloads->write(made_.places[row], std::span<const std::byte>(payload));
  }

  const manifest& target_;
  object_source& source_;
  digest_table& digests_;
  const bool digests_known_;
  const delta_base& base_;
  const delta_options& options_;
  const std::atomic<bool>& abandon_;
  const std::vector<block_place> places_, base_places_;
  std::map<digest, std::uint64_t> base_rows_;
  std::vector<delta::region> regions_;
  made_delta made_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  result<void> outcome_;
};

// The head in memory, then pieces of a scratch file.
class delta_source final : public object_source {
 public:
  delta_source(std::vector<std::byte> head, std::shared_ptr<scratch_file> payloads) : head_(std::move(head)), payloads_(std::move(payloads)), end_(head_.size()) {}
  void add(std::uint64_t place, std::uint64_t bytes) {
    pieces_.push_back({end_, place});
    end_ += bytes;
  }
  std::uint64_t bytes() const { return end_; }

  result<void> read(std::uint32_t, std::uint64_t offset, std::span<std::byte> out) override {
    DDF_ASSERT(offset + out.size() <= end_);
    if (offset < head_.size()) {
      const std::size_t n = std::min<std::uint64_t>(out.size(), head_.size() - offset);
      std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
      out = out.subspan(n);
      offset += n;
    }
    while (!out.empty()) {
      const auto after = std::ranges::upper_bound(pieces_, offset, {}, &piece::begin);
      const piece& p = *std::prev(after);
      const std::uint64_t end = after == pieces_.end() ? end_ : after->begin;
      const std::size_t n = std::min<std::uint64_t>(out.size(), end - offset);
      if (auto ok = payloads_->read(p.place + (offset - p.begin), out.first(n)); !ok) return ok;
      out = out.subspan(n);
      offset += n;
    }
    return {};
  }
  std::span<const std::byte> view(std::uint32_t, std::uint64_t, std::uint64_t) override { return {}; }
  result<void> check_unchanged() override { return {}; }
  digest identity() const override { return {}; }

 private:
  struct piece {
    std::uint64_t begin, place;
  };
  const std::vector<std::byte> head_;
  const std::shared_ptr<scratch_file> payloads_;
  std::vector<piece> pieces_;   // not empty ones, in order
  std::uint64_t end_;
};

}  // namespace

std::vector<std::uint64_t> made_delta::costs(const manifest& target) const {
  const std::vector<block_place> blocks = block_places(target);
  std::vector<std::uint64_t> out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].by == delta::stream_row::kind::patch) out[i] = rows[i].bytes + digest::size + 4;
    if (rows[i].by == delta::stream_row::kind::whole) out[i] = 2 * blocks[i].bytes;
  }
  return out;
}

result<made_delta> make_delta(const manifest& target, object_source& source, digest_table& digests, bool digests_known, const delta_base& base, const delta_options& o,
                              const std::atomic<bool>& abandon) {
  auto made = maker(target, source, digests, digests_known, base, o, abandon).run();
  if (made) digests.root = root_digest(target.name, target.size(), digests.blocks);
  return made;
}

delta_object stream_of(const made_delta& d, const digest& target_root, std::uint64_t target_bytes, const std::vector<range>& whole) {
  std::vector<delta::stream_row> rows = d.rows;
  for (const range& r : whole)
    for (std::uint64_t row = r.first; row < r.last; ++row) rows[row].by = delta::stream_row::kind::whole;
  delta::stream_head head{target_root, d.base_root, target_bytes, d.base_bytes, 0};
  auto source = std::make_unique<delta_source>(delta::write_stream_head(head, rows), d.payloads);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].by == delta::stream_row::kind::patch && rows[i].bytes != 0) source->add(d.places[i], rows[i].bytes);
  delta_object out;
  out.bytes = source->bytes();
  out.source = std::move(source);
  return out;
}

std::shared_ptr<const object_bytes> bytes_of(const manifest& m, object_source& source) {
  return std::make_shared<const object_bytes>(
      m, [&source](std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) { return source.read(part, offset, out); },
      [&source](std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) { return source.view(part, offset, bytes); });
}

}  // namespace ddf
