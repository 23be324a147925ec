#include "codecs/delta/anchors.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "codecs/delta/bits.hpp"

namespace ddf::delta {

static bool tells_apart(std::uint64_t key) { return static_cast<std::uint32_t>(key) != key >> 32; }

std::optional<std::uint64_t> key_at(std::span<const std::byte> bytes, std::size_t at) {
  if (bytes.size() < 8 || at > bytes.size() - 8) return std::nullopt;
  const std::uint64_t key = load<std::uint64_t>(bytes.data() + at);
  return tells_apart(key) ? std::optional(key) : std::nullopt;
}

result<anchors> anchors::sample(const read_function& read, std::span<const extent> base) {
  anchors a;
  std::uint64_t total = 0;
  for (const extent& e : base) total += e.bytes;
  a.spacing_ = std::clamp<std::uint64_t>(total / 512, 64, spacing_bytes_max_small);
  a.spacing_ = std::max(a.spacing_, total / count_max);
  std::array<std::byte, 64> around;
  for (const extent& e : base) {
    for (std::uint64_t at = 0; at < e.bytes && a.anchors_.size() < count_max; at += a.spacing_) {
      const auto bytes = std::span(around).first(static_cast<std::size_t>(std::min<std::uint64_t>(around.size(), e.bytes - at)));
      if (const auto got = read(e.offset + at, bytes); !got) return tl::unexpected(got.error());
      for (std::size_t i = 0; i + 8 <= bytes.size(); ++i) {
        if (const auto key = key_at(bytes, i)) {
          a.anchors_.push_back({*key, e.offset + at + i});
          break;
        }
      }
    }
  }
  std::sort(a.anchors_.begin(), a.anchors_.end(), [](const anchor& x, const anchor& y) { return x.key < y.key; });
  std::size_t kept = 0;   // a key that several places have tells nothing
  for (std::size_t i = 0; i < a.anchors_.size();) {
    std::size_t next = i + 1;
    while (next < a.anchors_.size() && a.anchors_[next].key == a.anchors_[i].key) ++next;
    if (next == i + 1) a.anchors_[kept++] = a.anchors_[i];
    i = next;
  }
  a.anchors_.resize(kept);
  a.filter_bits_ = std::max(16u, static_cast<unsigned>(std::bit_width(32 * kept)));
  a.filter_.assign((std::size_t(1) << a.filter_bits_) / 64, 0);
  for (const anchor& x : a.anchors_) a.filter_[a.slot(x.key) / 64] |= std::uint64_t(1) << a.slot(x.key) % 64;
  return a;
}

std::size_t anchors::window_bytes() const { return static_cast<std::size_t>(std::clamp<std::uint64_t>(16 * spacing_, 16 << 10, 4 << 20)); }

std::vector<shift> anchors::vote(std::uint64_t target_offset, std::span<const std::byte> window) const {
  constexpr std::size_t votes_max = 4096, shifts_max = 3;
  std::vector<shift> votes;
  for (std::size_t i = 0; i + 8 <= window.size() && votes.size() < votes_max; ++i) {
    const std::uint64_t key = load<std::uint64_t>(window.data() + i);
    const std::size_t s = slot(key);
    if ((filter_[s / 64] >> s % 64 & 1) == 0) continue;
    const auto at = std::lower_bound(anchors_.begin(), anchors_.end(), key, [](const anchor& x, std::uint64_t k) { return x.key < k; });
    if (at != anchors_.end() && at->key == key) votes.push_back(at->offset - (target_offset + i));
  }
  std::sort(votes.begin(), votes.end());
  struct count {
    std::size_t votes;
    shift by;
  };
  std::vector<count> counts;
  for (std::size_t i = 0; i < votes.size();) {
    const std::size_t first = i;
    while (i < votes.size() && votes[i] == votes[first]) ++i;
    if (i - first >= 2) counts.push_back({i - first, votes[first]});
  }
  std::sort(counts.begin(), counts.end(), [](const count& x, const count& y) { return x.votes != y.votes ? x.votes > y.votes : x.by < y.by; });
  std::vector<shift> best;
  for (const count& c : counts)
    if (best.size() < shifts_max) best.push_back(c.by);
  return best;
}

}  // namespace ddf::delta
