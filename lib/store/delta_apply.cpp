#include "lib/store/delta_apply.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "codecs/block_digest.hpp"
#include "codecs/delta/workspace.hpp"
#include "lib/model/object_name.hpp"

namespace ddf {

result<patch> apply_stream(const scratch_file& stream, std::uint64_t stream_bytes, const manifest& target, const digest& target_root, const delta_base& base, object_sink& sink,
                           unsigned threads, const std::atomic<bool>& abandon) {
  const auto refused = [&](const char* why) { return fail(errc::integrity, "the delta for '" + printable(target.name) + "' " + why); };
  if (stream_bytes < delta::stream_head::wire_size) return refused("is too short");
  std::vector<std::byte> first(delta::stream_head::wire_size);
  if (auto ok = stream.read(0, first); !ok) return tl::unexpected(ok.error());
  const auto head = delta::parse_stream_head(first);
  if (!head) return tl::unexpected(head.error());
  if (head->target_root != target_root || head->target_bytes != target.size()) return refused("makes another version than announced");
  if (head->base_root != base.digests.root || head->base_bytes != base.description.size())
    return fail(errc::stale_base, "the delta for '" + printable(target.name) + "' starts from another version than version " + std::to_string(base.version.value) + ", which is here");
  if (head->index_bytes > stream_bytes - delta::stream_head::wire_size) return refused("is too short");
  const std::vector<block_place> places = block_places(target), base_places = block_places(base.description);
  std::vector<std::byte> index(head->index_bytes);
  if (auto ok = stream.read(delta::stream_head::wire_size, index); !ok) return tl::unexpected(ok.error());
  auto rows = delta::parse_stream_index(*head, index, base.digests.blocks, places.size(), stream_bytes);
  if (!rows) return tl::unexpected(rows.error());

  patch out;
  out.table.blocks.reserve(rows->size());
  for (const delta::stream_row& r : *rows) out.table.blocks.push_back(r.result);
  out.table.root = root_digest(target.name, target.size(), out.table.blocks);
  if (out.table.root != target_root) return refused("does not lead to the root that was announced");

  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  result<void> outcome;
  std::atomic<bool> failed = false;
  const auto one = [&](std::size_t i, delta::workspace& w, std::vector<std::byte>& made, std::vector<std::byte>& payload) -> result<bool> {
    const delta::stream_row& r = (*rows)[i];
    const block_place& at = places[i];
    if (r.by == delta::stream_row::kind::whole) return false;
    if (made.size() < at.bytes) made.resize(at.bytes);
    std::span<std::byte> block = std::span(made).first(at.bytes);
    std::span<const std::byte> bytes = block;
    if (r.by == delta::stream_row::kind::keep) {
      const block_place& from = base_places[r.base_row];
      if (from.bytes != at.bytes) return fail(errc::integrity, "the delta keeps a block of another length");
      auto kept = base.bytes->at(from.object_offset, from.bytes, made);
      if (!kept) return tl::unexpected(kept.error());
      bytes = *kept;
    } else {
      if (r.bytes > limits::delta_bytes(at.bytes)) return fail(errc::integrity, "a block of the delta has an impossible length");
      if (payload.size() < r.bytes) payload.resize(r.bytes);
      const auto taken = std::span(payload).first(r.bytes);
      if (auto ok = stream.read(r.offset, taken); !ok) return tl::unexpected(ok.error());
      if (auto ok = delta::apply_block(w, at.object_offset, taken, *base.bytes, block); !ok) return tl::unexpected(ok.error());
    }
    if (block_digest(bytes) != r.result) return false;   // the base is not what it was, here
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    if (auto ok = sink.write(at.part, at.offset, std::span(&piece, 1)); !ok) return tl::unexpected(ok.error());
    return true;
  };
  const auto work = [&] {
    delta::workspace w;
    std::vector<std::byte> made, payload;
    range_set done;
    result<void> mine;
    for (std::size_t i = next++; i < rows->size() && !abandon && !failed; i = next++) {
      const auto ok = one(i, w, made, payload);
      if (!ok) {
        mine = tl::unexpected(ok.error());
        failed = true;
      } else if (*ok) {
        done.insert(i, i + 1);
      }
    }
    const std::lock_guard lock(mutex);
    if (!mine && outcome) outcome = mine;
    for (const auto& [a, b] : done) out.rows.insert(a, b);
  };
  {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t n = std::min<std::size_t>(threads != 0 ? threads : std::min(processors, 8u), rows->size() / 2 + 1);
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < n; ++i) helpers.emplace_back(work);
    work();
  }
  if (!outcome) return tl::unexpected(outcome.error());
  if (abandon) return fail(errc::interrupted, "the transfer ended while the delta was applied");
  return out;
}

}  // namespace ddf
