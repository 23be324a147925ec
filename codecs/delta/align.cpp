#include "codecs/delta/align.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "codecs/delta/anchors.hpp"

namespace ddf::delta {
namespace {

constexpr std::uint64_t small_bytes = 64 << 10;          // of what is not worth looking into
constexpr std::uint64_t one_record_bytes = 512 << 10;    // a record's prefix coder finds text that moved within it by itself
constexpr std::size_t probe_bytes = 1 << 10;
constexpr std::size_t candidates_max = 8;
constexpr std::uint64_t searched_bytes_max = 64 << 20;   // of the target, for anchors
constexpr unsigned fruitless_windows_max = 4;            // one after the other, of one extent
constexpr unsigned fruitless_extents_max = 16;           // one after the other, of what is looked for everywhere
constexpr std::size_t samples_max = 1 << 16;             // tensors of the base that are known by what they hold

// Of simulated bf16 weights, unrelated ones agree in 10 % of their bytes (by the exponent), and those of which a drift changed 96 %
// in 47 %.
constexpr double fits_from = 0.25;
constexpr double looks_like_from = 0.4;   // with the same size, element and place in the order

struct piece {   // of a target
  std::uint64_t offset = 0, bytes = 0;
  std::optional<shift> by;
};

// Reads samples of both versions. The first error stays, and everything after it reads as not fitting.
class sampler {
 public:
  sampler(const read_function& read_base, std::uint64_t base_bytes, const read_function& read_target)
      : read_base_(read_base), base_bytes_(base_bytes), read_target_(read_target) {}

  const read_function& base() const { return read_base_; }
  std::uint64_t base_bytes() const { return base_bytes_; }
  bool failed() const { return error_.has_value(); }
  const ddf::error& error() const { return *error_; }
  void fail_with(const ddf::error& e) {
    if (!error_) error_ = e;
  }

  // Which of a target's bytes the base has: `bytes` from the `first` on.
  struct overlap {
    std::size_t first = 0, bytes = 0;
  };
  overlap reach(std::uint64_t target_offset, shift by, std::size_t bytes) const {
    const std::uint64_t from = target_offset + by, before = static_cast<std::int64_t>(from) < 0 ? 0 - from : 0;   // an object has less than 2^50 bytes
    if (before >= bytes || from + before >= base_bytes_) return {};
    return {static_cast<std::size_t>(before), static_cast<std::size_t>(std::min<std::uint64_t>(bytes - before, base_bytes_ - from - before))};
  }
  bool target(std::uint64_t offset, std::span<std::byte> out) { return check(read_target_, offset, out); }
  bool base(std::uint64_t offset, std::span<std::byte> out) { return check(read_base_, offset, out); }

  // Which share of these bytes of the target the base has too; 0 outside of it.
  double fit(std::uint64_t target_offset, std::span<const std::byte> wanted, shift by) {
    const overlap o = reach(target_offset, by, wanted.size());
    const auto old = std::span(base_room_).first(o.bytes);
    if (old.empty() || !base(target_offset + o.first + by, old)) return 0;
    std::size_t same = 0;
    for (std::size_t i = 0; i < old.size(); ++i) same += wanted[o.first + i] == old[i];
    return static_cast<double>(same) / static_cast<double>(wanted.size());
  }

 private:
  bool check(const read_function& read, std::uint64_t offset, std::span<std::byte> out) {
    if (error_) return false;
    const auto got = read(offset, out);
    if (!got) error_ = got.error();
    return got.has_value();
  }

  const read_function& read_base_;
  std::uint64_t base_bytes_;
  const read_function& read_target_;
  std::array<std::byte, probe_bytes> base_room_{};
  std::optional<ddf::error> error_;
};

// The base extents that an extent of a target may come from, and the shifts that are known. Anchors are sampled when the shifts
// do not suffice.
struct source {
  std::vector<anchors::extent> base;
  std::vector<shift> candidates;   // the latest that fitted first
  std::optional<anchors> sampled;
  bool may_search = true;

  void add(shift by, bool fitted) {
    const auto at = std::find(candidates.begin(), candidates.end(), by);
    if (at != candidates.end() && !fitted) return;
    if (at != candidates.end()) candidates.erase(at);
    candidates.insert(fitted ? candidates.begin() : candidates.end(), by);
    if (candidates.size() > candidates_max) candidates.resize(candidates_max);
  }
};

struct probe {
  std::uint64_t at = 0;
  bool says_nothing = false;   // a constant: fits anywhere
  std::optional<shift> by;
};

class aligner {
 public:
  aligner(sampler& s) : s_(s) {}

  // Cuts an extent of the target into pieces that have the same shift each; false when none fits anywhere.
  bool pieces_of(std::uint64_t offset, std::uint64_t bytes, std::size_t width, source& from, std::vector<piece>& out) {
    out.clear();
    auto probes = label(offset, bytes, from);
    const bool found = std::any_of(probes.begin(), probes.end(), [](const probe& p) { return p.by.has_value(); });
    if (!found) return false;
    for (std::size_t i = 0; i < probes.size(); ++i)   // what says nothing goes with what is before it, or else behind it
      if (probes[i].says_nothing && i > 0) probes[i].by = probes[i - 1].by;
    for (std::size_t i = probes.size() - 1; i-- > 0;)
      if (probes[i].says_nothing && !probes[i].by) probes[i].by = probes[i + 1].by;

    std::uint64_t begun = offset;
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const bool last = i + 1 == probes.size();
      if (!last && probes[i].by == probes[i + 1].by) continue;
      std::uint64_t end = offset + bytes;
      if (!last) {
        end = boundary(probes[i].at, std::min(probes[i + 1].at + probe_bytes, offset + bytes), probes[i].by, probes[i + 1].by);
        end = offset + (end - offset) / width * width;
      }
      if (end > begun) add(begun, end - begun, probes[i].by, out);
      begun = std::max(begun, end);
    }
    return true;
  }

 private:
  // A piece, less what of it the base does not reach.
  void add(std::uint64_t offset, std::uint64_t bytes, std::optional<shift> by, std::vector<piece>& out) {
    if (!by) return out.push_back({offset, bytes, by});
    const std::uint64_t from = offset + *by;
    const auto before = static_cast<std::int64_t>(from) < 0 ? std::min<std::uint64_t>(bytes, 0 - from) : 0;
    const std::uint64_t reach = before == bytes || from + before >= s_.base_bytes() ? 0 : std::min(bytes - before, s_.base_bytes() - from - before);
    if (before > 0) out.push_back({offset, before, std::nullopt});
    if (reach > 0) out.push_back({offset + before, reach, by});
    if (before + reach < bytes) out.push_back({offset + before + reach, bytes - before - reach, std::nullopt});
  }

  std::vector<probe> label(std::uint64_t offset, std::uint64_t bytes, source& from) {
    const std::size_t count = bytes <= small_bytes ? 3 : static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes / (256 << 10), 8, 128));
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, probe_bytes));
    std::vector<probe> probes(count);
    unsigned fruitless = 0;
    for (std::size_t i = 0; i < count && !s_.failed(); ++i) {
      probe& p = probes[i];
      p.at = offset + static_cast<std::uint64_t>(static_cast<double>(bytes - n) * static_cast<double>(i) / static_cast<double>(count - 1));
      const auto wanted = std::span(target_room_).first(n);
      if (!s_.target(p.at, wanted)) break;
      p.says_nothing = std::all_of(wanted.begin(), wanted.end(), [&](std::byte b) { return b == wanted[0]; });
      if (p.says_nothing) continue;
      p.by = best(p.at, wanted, from);
      if (p.by || !from.may_search || bytes <= small_bytes || searched_bytes_ > searched_bytes_max || fruitless == fruitless_windows_max) continue;
      for (const shift by : search(offset, bytes, p.at, from)) from.add(by, false);
      p.by = best(p.at, wanted, from);
      fruitless = p.by ? 0 : fruitless + 1;
    }
    for (probe& p : probes) {   // shifts that were found further on may fit here too
      if (p.by || p.says_nothing || from.candidates.empty() || s_.failed()) continue;
      const auto wanted = std::span(target_room_).first(n);
      if (s_.target(p.at, wanted)) p.by = best(p.at, wanted, from);
    }
    return probes;
  }

  std::optional<shift> best(std::uint64_t at, std::span<const std::byte> wanted, source& from) {
    double most = fits_from;
    std::optional<shift> found;
    for (const shift by : from.candidates) {
      const double fit = s_.fit(at, wanted, by);
      if (fit > most) most = fit, found = by;
      if (most > 0.9) break;
    }
    if (found) from.add(*found, true);
    return found;
  }

  std::vector<shift> search(std::uint64_t offset, std::uint64_t bytes, std::uint64_t around, source& from) {
    if (!from.sampled) {
      auto sampled = anchors::sample(s_.base(), from.base);
      if (!sampled) {
        s_.fail_with(sampled.error());
        return {};
      }
      from.sampled = std::move(*sampled);
    }
    const std::uint64_t n = std::min<std::uint64_t>(bytes, from.sampled->window_bytes());
    const std::uint64_t begin = std::min(std::max(around, offset + n / 2) - n / 2, offset + bytes - n);
    window_.resize(static_cast<std::size_t>(n));
    searched_bytes_ += n;
    if (!s_.target(begin, window_)) return {};
    return from.sampled->vote(begin, window_);
  }

  // Where in [first, last) one shift stops to fit and the other begins to.
  std::uint64_t boundary(std::uint64_t first, std::uint64_t last, std::optional<shift> left, std::optional<shift> right) {
    const auto fit = [&](std::uint64_t at, std::span<const std::byte> wanted, std::optional<shift> by) { return by ? s_.fit(at, wanted, *by) : fits_from; };
    while (last - first > probe_bytes && !s_.failed()) {
      const std::uint64_t n = std::min<std::uint64_t>(probe_bytes / 2, (last - first) / 4), middle = first + (last - first) / 2 - n / 2;
      const auto wanted = std::span(target_room_).first(static_cast<std::size_t>(n));
      if (!s_.target(middle, wanted)) break;
      if (fit(middle, wanted, left) >= fit(middle, wanted, right)) first = middle + n / 2;
      else last = middle + n / 2;
    }
    // The rest byte by byte: as many as possible that the left has before it, and the right behind it.
    std::array<std::byte, probe_bytes> wanted{}, old{};
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(last - first, probe_bytes));
    if (!s_.target(first, std::span(wanted).first(n))) return first;
    std::array<int, probe_bytes> gain{};
    const auto count = [&](std::optional<shift> by, int sign) {
      if (!by) {
        for (std::size_t i = 0; i < n; ++i) gain[i] += sign;   // as much as fits_from of it
        return;
      }
      const auto o = s_.reach(first, *by, n);
      if (o.bytes == 0 || !s_.base(first + o.first + *by, std::span(old).first(o.bytes))) return;
      for (std::size_t i = 0; i < o.bytes; ++i) gain[o.first + i] += wanted[o.first + i] == old[i] ? 4 * sign : 0;
    };
    count(left, 1);
    count(right, -1);
    std::size_t split = 0;
    int sum = 0, most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += gain[i];
      if (sum > most) most = sum, split = i + 1;
    }
    return first + split;
  }

  sampler& s_;
  std::uint64_t searched_bytes_ = 0;
  std::array<std::byte, probe_bytes> target_room_{};
  std::vector<std::byte> window_;
};

// Tensors of a base by what they hold, for those that changed their names.
class contents {
 public:
  void add(sampler& s, const tensor& t, std::size_t index) {
    if (added_++ >= samples_max) return;
    for (const auto key : keys(t, [&](std::uint64_t o, std::span<std::byte> out) { return s.base(o, out); })) places_.try_emplace(key, index);
  }
  std::optional<std::size_t> find(sampler& s, const tensor& t) const {
    std::vector<std::size_t> votes;
    for (const auto key : keys(t, [&](std::uint64_t o, std::span<std::byte> out) { return s.target(o, out); }))
      if (const auto at = places_.find(key); at != places_.end()) votes.push_back(at->second);
    std::sort(votes.begin(), votes.end());
    std::size_t most = 1;
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < votes.size();) {
      const std::size_t first = i;
      while (i < votes.size() && votes[i] == votes[first]) ++i;
      if (i - first > most) most = i - first, found = votes[first];
    }
    return found;
  }

 private:
  // Three keys at each of three places, of small tensors at one, mixed with size and element, so that only tensors of one form meet.
  template <class Read>
  static std::vector<std::uint64_t> keys(const tensor& t, const Read& read) {
    std::vector<std::uint64_t> out;
    if (t.bytes < 64) return out;
    std::array<std::byte, 64> room;
    const std::uint64_t places = t.bytes <= small_bytes ? 1 : 3;
    for (std::uint64_t place = 1; place <= places; ++place) {
      const std::uint64_t at = (t.bytes - 64) / 4 * place / 8 * 8;
      if (!read(t.offset + at, std::span<std::byte>(room))) return out;
      for (const std::size_t i : {0u, 24u, 48u})
        if (const auto key = key_at(room, i)) out.push_back((*key ^ t.bytes * 0x9e3779b97f4a7c15u ^ place << 60 ^ static_cast<std::uint64_t>(t.element) << 52) * 0xbf58476d1ce4e5b9u + i);
    }
    return out;
  }

  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::size_t added_ = 0;
};

bool is_header(std::string_view name) { return name == "__header__" || name.ends_with(":__header__"); }

class whole {
 public:
  whole(const std::vector<tensor>& base, const read_function& read_base, const std::vector<tensor>& target, const read_function& read_target)
      : base_(base), target_(target), s_(read_base, base.empty() ? 0 : base.back().offset + base.back().bytes, read_target), aligner_(s_) {}

  result<std::vector<region>> run() {
    by_name_.reserve(base_.size());
    for (std::size_t i = 0; i < base_.size(); ++i) by_name_.try_emplace(base_[i].name, i);
    for (const tensor& t : target_) {
      if (t.bytes == 0) continue;
      align_one(t);
      if (s_.failed()) return tl::unexpected(s_.error());
    }
    return std::move(regions_);
  }

 private:
  void align_one(const tensor& t) {
    const auto named = by_name_.find(t.name);
    const tensor* b = named == by_name_.end() ? nullptr : &base_[named->second];
    if (b && (b->bytes == 0 || b->element != t.element)) b = nullptr;
    const bool untyped = t.element == element::bytes || t.shape.empty();
    if (b && b->bytes == t.bytes && (!untyped || t.bytes <= small_bytes)) return put(t.offset, t.bytes, b->offset, t.element);
    if (b && b->bytes != t.bytes && (is_header(t.name) || untyped) && std::max(b->bytes, t.bytes) <= one_record_bytes) return put_window(t, *b);
    if (b && by_samples(t, *b)) return;
    if (const tensor* same = of_same_content(t)) return put(t.offset, t.bytes, same->offset, t.element);
    if (t.bytes > small_bytes && (!b || untyped) && by_removed(t)) return;
    if (b && b->bytes == t.bytes) return put(t.offset, t.bytes, b->offset, t.element);
    if (b && is_header(t.name)) return put_window(t, *b);
    put(t.offset, t.bytes, region::no_base, t.element);
  }

  bool by_samples(const tensor& t, const tensor& b) {
    source from;
    from.base = {{b.offset, b.bytes}};
    from.add(b.offset - t.offset, false);
    from.add(b.offset + b.bytes - (t.offset + t.bytes), false);
    return aligner_.pieces_of(t.offset, t.bytes, width_of(t.element), from, pieces_) && put_pieces(t);
  }

  // From what the base has and the target has not, by name.
  bool by_removed(const tensor& t) {
    if (!removed_) {
      removed_.emplace();
      std::unordered_set<std::string_view> names;
      names.reserve(target_.size());
      for (const tensor& x : target_) names.insert(x.name);
      for (const tensor& x : base_)
        if (x.bytes > small_bytes && !names.contains(x.name)) removed_->base.push_back({x.offset, x.bytes});
      removed_->may_search = !removed_->base.empty();
    }
    if (removed_->base.empty() || fruitless_extents_ == fruitless_extents_max) return false;
    const bool found = aligner_.pieces_of(t.offset, t.bytes, width_of(t.element), *removed_, pieces_);
    fruitless_extents_ = found ? 0 : fruitless_extents_ + 1;
    return found && put_pieces(t);
  }

  const tensor* of_same_content(const tensor& t) {
    // Renamed tensors mostly keep their order: the one behind the last that was found, or in the same place at first.
    const std::size_t next = last_found_ ? *last_found_ + 1 : static_cast<std::size_t>(&t - target_.data());
    if (next < base_.size() && looks_like(t, base_[next])) return &base_[*(last_found_ = next)];
    if (!contents_) {
      contents_.emplace();
      std::unordered_set<std::uint64_t> sizes;   // of which a partner may be asked for
      for (const tensor& x : target_) {
        const auto named = by_name_.find(x.name);
        if (named == by_name_.end() || x.element == element::bytes || x.shape.empty()) sizes.insert(x.bytes);
      }
      for (std::size_t i = 0; i < base_.size() && !s_.failed(); ++i)
        if (sizes.contains(base_[i].bytes)) contents_->add(s_, base_[i], i);
    }
    const auto found = contents_->find(s_, t);
    if (found) last_found_ = found;
    return found ? &base_[*found] : nullptr;
  }

  bool looks_like(const tensor& t, const tensor& b) {
    if (b.element != t.element || b.bytes != t.bytes) return false;
    std::array<std::byte, 256> room;
    const auto wanted = std::span(room).first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), t.bytes)));
    const std::uint64_t middle = t.offset + (t.bytes - wanted.size()) / 2;
    return s_.target(middle, wanted) && s_.fit(middle, wanted, b.offset - t.offset) > looks_like_from;
  }

  bool put_pieces(const tensor& t) {
    for (const piece& p : pieces_) put(p.offset, p.bytes, p.by ? p.offset + *p.by : region::no_base, t.element);
    return true;
  }

  // The same stretch of the base, moved inwards where the base ends before it.
  void put_window(const tensor& t, const tensor& b) {
    const std::uint64_t reach = std::min(t.bytes, s_.base_bytes() - b.offset), rest = t.bytes - reach;
    put(t.offset, reach, b.offset, element::bytes);
    if (rest > 0) put(t.offset + reach, rest, rest <= s_.base_bytes() ? s_.base_bytes() - rest : region::no_base, element::bytes);
  }

  void put(std::uint64_t offset, std::uint64_t bytes, std::uint64_t base_offset, element e) {
    if (!regions_.empty()) {
      region& last = regions_.back();
      const bool based = base_offset != region::no_base, last_based = last.base_offset != region::no_base;
      const bool follows = based && last_based ? last.base_offset + last.bytes == base_offset : based == last_based;
      if (last.element == e && follows && last.bytes % width_of(e) == 0) {
        last.bytes += bytes;
        return;
      }
    }
    regions_.push_back({offset, bytes, base_offset, e});
  }

  const std::vector<tensor>&base_, &target_;
  sampler s_;
  aligner aligner_;
  std::unordered_map<std::string_view, std::size_t> by_name_;   // of the base
  std::optional<contents> contents_;
  std::optional<std::size_t> last_found_;   // of the base, by what it holds
  std::optional<source> removed_;
  unsigned fruitless_extents_ = 0;
  std::vector<piece> pieces_;
  std::vector<region> regions_;
};

}  // namespace

result<std::vector<region>> align(const std::vector<tensor>& base, const read_function& read_base,
                                  const std::vector<tensor>& target, const read_function& read_target) {
  return whole(base, read_base, target, read_target).run();
}

}  // namespace ddf::delta
