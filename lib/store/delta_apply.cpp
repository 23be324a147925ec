#include "lib/store/delta_apply.hpp"

#include <algorithm>
#include <chrono>

#include "codecs/block_digest.hpp"
#include "codecs/delta/block.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/parallel.hpp"

namespace ddf {

delta_applier::delta_applier(task t, std::function<void(result<patch>, double)> on_end)
    : task_(std::move(t)), on_end_(std::move(on_end)), places_(block_places(task_.target)), thread_([this] { run(); }) {}

delta_applier::~delta_applier() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  more_.notify_all();
}

void delta_applier::arrived(std::uint64_t offset, std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    here_.insert(offset, offset + bytes);
  }
  more_.notify_all();
}

void delta_applier::complete() {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    here_.insert(0, task_.stream_bytes);
  }
  more_.notify_all();
}

bool delta_applier::wait_for(std::uint64_t first, std::uint64_t last) {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [&] { return given_up_ || failed_ || first >= last || here_.contains(first, last); });
  return !given_up_ && !failed_;
}

void delta_applier::run() {
  auto made = apply();
  const std::lock_guard lock(mutex_);
  if (!given_up_) on_end_(std::move(made), busy_seconds_);
}

// Head, index and base. What cannot be read may be damaged as long as the stream is not proven.
result<void> delta_applier::begin() {
  const auto refused = [&](const char* why) { return fail(errc::integrity, "the delta for '" + printable(task_.target.name) + "' " + why); };
  constexpr std::size_t head_bytes = delta::stream_head::wire_size;
  if (task_.stream_bytes < head_bytes) return refused("is too short");
  std::vector<std::byte> first(head_bytes);
  if (auto ok = task_.stream->read(0, first); !ok) return ok;
  const auto head = delta::parse_stream_head(first);
  if (!head) return tl::unexpected(head.error());
  if (head->target_root != task_.target_root || head->target_bytes != task_.target.size()) return refused("makes another version than announced");
  if (head->index_bytes > task_.stream_bytes - head_bytes) return refused("is too short");
  if (head->index_bytes > delta::index_bytes_max(places_.size())) return refused("claims an index of impossible length");
  if (!wait_for(0, head_bytes + head->index_bytes)) return fail(errc::interrupted, "the transfer ended");
  if (!base_) {
    auto base = task_.open_base();
    if (!base) return tl::unexpected(base.error());
    base_ = std::move(*base);
    base_places_ = block_places(base_->description);
  }
  if (head->base_root != base_->digests.root || head->base_bytes != base_->description.size())
    return fail(errc::stale_base, "the delta for '" + printable(task_.target.name) + "' starts from another version than version " + std::to_string(base_->version.value) + ", which is here");
  std::vector<std::byte> index(head->index_bytes);
  if (auto ok = task_.stream->read(head_bytes, index); !ok) return ok;
  auto rows = delta::parse_stream_index(*head, index, base_->digests.blocks, places_.size(), task_.stream_bytes);
  if (!rows) return tl::unexpected(rows.error());
  patch_.table.blocks.clear();
  for (const delta::stream_row& r : *rows) patch_.table.blocks.push_back(r.result);
  patch_.table.root = root_digest(task_.target.name, task_.target.size(), patch_.table.blocks);
  if (patch_.table.root != task_.target_root) return refused("does not lead to the root that was announced");
  rows_ = std::move(*rows);
  return {};
}

result<patch> delta_applier::apply() {
  const auto gone = [] { return fail(errc::interrupted, "the transfer ended while its delta was applied"); };
  if (!wait_for(0, std::min<std::uint64_t>(task_.stream_bytes, delta::stream_head::wire_size))) return gone();
  auto begun = begin();
  // Damage may also look like another base; that there is none here is no damage.
  if (!begun && (begun.error().code == errc::integrity || (begun.error().code == errc::stale_base && base_))) {
    if (!wait_for(0, task_.stream_bytes)) return gone();
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return given_up_ || complete_; });
    }
    begun = begin();
  }
  if (!begun) return tl::unexpected(begun.error());
  in_parallel(task_.threads, rows_.size(), [this] { work(); });
  if (!outcome_) return tl::unexpected(outcome_.error());
  std::vector<std::size_t> again;
  {
    std::unique_lock lock(mutex_);
    if (!again_.empty()) more_.wait(lock, [&] { return given_up_ || complete_; });
    if (given_up_) return gone();
    again.swap(again_);
  }
  delta::workspace w;
  std::vector<std::byte> made, payload;
  for (const std::size_t row : again) {
    const auto ok = make(row, w, made, payload);
    if (!ok && ok.error().code != errc::integrity) return tl::unexpected(ok.error());
    if (ok && *ok) patch_.rows.insert(row, row + 1);
  }
  return std::move(patch_);
}

void delta_applier::work() {
  delta::workspace w;
  std::vector<std::byte> made, payload;
  range_set done;
  std::vector<std::size_t> wrong;
  result<void> mine;
  std::chrono::duration<double> busy{0};
  for (std::size_t row = next_++; row < rows_.size() && !failed_; row = next_++) {
    if (rows_[row].by == delta::stream_row::kind::whole) continue;
    if (!wait_for(rows_[row].offset, rows_[row].offset + rows_[row].bytes)) break;
    const auto from = std::chrono::steady_clock::now();
    const auto ok = make(row, w, made, payload);
    busy += std::chrono::steady_clock::now() - from;
    if (ok && *ok) {
      done.insert(row, row + 1);
    } else if (ok || ok.error().code == errc::integrity) {
      wrong.push_back(row);
    } else {
      mine = tl::unexpected(ok.error());
      {
        const std::lock_guard lock(mutex_);
        failed_ = true;
      }
      more_.notify_all();   // to those who wait for bytes
    }
  }
  const std::lock_guard lock(mutex_);
  busy_seconds_ = std::max(busy_seconds_, busy.count());
  if (!mine && outcome_) outcome_ = mine;
  for (const auto& [a, b] : done) patch_.rows.insert(a, b);
  again_.insert(again_.end(), wrong.begin(), wrong.end());
}

// Output: whether the block has the digest it must have, and is written.
result<bool> delta_applier::make(std::size_t row, delta::workspace& w, std::vector<std::byte>& made, std::vector<std::byte>& payload) {
  const delta::stream_row& r = rows_[row];
  const block_place& at = places_[row];
  if (made.size() < at.bytes) made.resize(at.bytes);
  const std::span<std::byte> block = std::span(made).first(at.bytes);
  std::span<const std::byte> bytes = block;
  if (r.by == delta::stream_row::kind::keep) {
    const block_place& from = base_places_[r.base_row];
    if (from.bytes != at.bytes) return fail(errc::integrity, "the delta keeps a block of another length");
    const auto kept = base_->bytes->at(from.object_offset, from.bytes, made);
    if (!kept) return tl::unexpected(kept.error());
    bytes = *kept;
  } else {
    if (r.bytes > limits::delta_bytes(at.bytes)) return fail(errc::integrity, "a block of the delta has an impossible length");
    if (payload.size() < r.bytes) payload.resize(r.bytes);
    const auto taken = std::span(payload).first(r.bytes);
    if (auto ok = task_.stream->read(r.offset, taken); !ok) return tl::unexpected(ok.error());
    if (auto ok = delta::apply_block(w, at.object_offset, taken, *base_->bytes, block); !ok) return tl::unexpected(ok.error());
  }
  if (block_digest(bytes) != r.result) return false;
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  if (auto ok = task_.sink->write(at.part, at.offset, std::span(&piece, 1)); !ok) return tl::unexpected(ok.error());
  return true;
}

}  // namespace ddf
