#include "codecs/delta/record.hpp"

#include <algorithm>

#include "codecs/delta/estimate.hpp"
#include "codecs/delta/kernels.hpp"
#include "codecs/delta/operations.hpp"
#include "lib/model/assert.hpp"

namespace ddf::delta {
namespace {

constexpr share hopeless = full_share - full_share / 32;   // a sample that would save less is not worth the time

// One record in the making: tries operations and keeps the shortest.
class record_encoder {
 public:
  record_encoder(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> target, std::vector<std::byte>& out)
      : w_(w), e_(e), base_(base), target_(target), out_(out), begin_(out.size()), pair_{e, base.data(), target.data(), target.size() / width_of(e)} {}

  void encode(profile p) {
    if (base_.empty()) without_base();
    else if (p == profile::tight) tight();
    else fast();
    if (out_.size() == begin_ || out_.size() - begin_ > target_.size() + 1) replace();
  }

 private:
  void without_base() {
    if (pair_.n == 0 || sample_planes(e_, pair_.target, pair_.n) >= hopeless) return;
    try_planes();
    if (e_ == element::bytes) try_prefix();
  }

  void tight() {
    const change_sample sample = sample_changes(pair_);
    if (sample.changed > full_share - full_share / 16) return related();
    const bool scattered = sample.changed != 0 && sample.changed < full_share / 2 && sample.following * 2 < sample.changed;
    if (!count_changes(scattered ? locating::always : locating::never)) return;
    const std::uint64_t n = pair_.n, changed = changes_.changed, runs = changes_.runs;
    if (changed >= 4 * runs && (changed * 2 < n || (changed * 16 < n * 15 && changed >= 32 * runs))) try_gather();
    if (changed * 2 < n && changed < 16 * runs) try_sparse_context();
    if (changed * 8 > n) related();
    else if (e_ == element::bytes) moved();
  }

  // Most elements differ, if only by a little.
  void related() {
    const share dense = sample_dense(pair_), planes = sample_planes(e_, pair_.target, pair_.n);
    if (e_ == element::bytes && (planes < full_share - full_share / 8 || sample_moved(base_, target_))) moved();
    if (std::min(dense, planes) >= hopeless) return;
    if (dense <= planes) try_dense();
    else try_planes();
  }

  // Bytes that may be those of the base elsewhere.
  void moved() { try_prefix(); }

  void fast() {
    if (sample_changes(pair_).changed < full_share / 2) {
      if (!count_changes(locating::never)) return;
      const std::uint64_t n = pair_.n, changed = changes_.changed;
      if (changed >= 4 * std::uint64_t(changes_.runs)) return try_gather();
      if (changed * 4 < n) return try_sparse_fast();
    }
    if (sample_dense(pair_) < full_share / 2) try_dense();
  }

  // Fills in what changed; false when nothing did, and the record is written.
  bool count_changes(locating wanted) {
    changes_ = find_changes(w_, pair_, wanted);
    if (changes_.changed != 0 || !std::ranges::equal(tail_of(base_), tail_of(target_))) return true;
    out_.push_back(static_cast<std::byte>(operation::keep));
    return false;
  }

  template <class T>
  std::span<T> tail_of(std::span<T> bytes) const { return bytes.subspan(pair_.n * width_of(e_)); }

  // Runs an encoder into the record, or beside it when there is one already, of which the shorter stays.
  template <class F>
  void attempt(operation op, F&& payload) {
    const bool first = out_.size() == begin_;
    w_.candidate.clear();
    std::vector<std::byte>& to = first ? out_ : w_.candidate;
    to.push_back(static_cast<std::byte>(op));
    if (op != operation::prefix) to.insert(to.end(), tail_of(target_).begin(), tail_of(target_).end());
    payload(to);
    if (first || to.size() >= out_.size() - begin_) return;
    out_.resize(begin_);
    out_.insert(out_.end(), to.begin(), to.end());
  }

  void try_sparse_context() {
    if (!changes_.is_located) locate_changes(w_, pair_, changes_);
    attempt(operation::sparse_context, [&](auto& to) { encode_sparse_context(w_, pair_, changes_, to); });
  }
  void try_sparse_fast() { attempt(operation::sparse_fast, [&](auto& to) { encode_sparse_fast(w_, pair_, changes_, to); }); }
  void try_gather() { attempt(operation::gather, [&](auto& to) { encode_gather(w_, pair_, to); }); }
  void try_dense() { attempt(operation::dense, [&](auto& to) { encode_dense(w_, pair_, to); }); }
  void try_planes() { attempt(operation::planes, [&](auto& to) { encode_planes(w_, e_, pair_.target, pair_.n, to); }); }

  void try_prefix() {
    const std::size_t so_far = out_.size() - begin_;
    w_.candidate.clear();
    if (!encode_prefix(w_, base_, target_, (so_far == 0 ? target_.size() : so_far - 1), w_.candidate)) return;
    out_.resize(begin_);
    out_.push_back(static_cast<std::byte>(operation::prefix));
    out_.insert(out_.end(), w_.candidate.begin(), w_.candidate.end());
  }

  void replace() {
    out_.resize(begin_);
    out_.push_back(static_cast<std::byte>(operation::replace));
    out_.insert(out_.end(), target_.begin(), target_.end());
  }

  workspace& w_;
  element e_;
  std::span<const std::byte> base_, target_;
  std::vector<std::byte>& out_;
  std::size_t begin_;
  pair_view pair_;
  change_set changes_;
};

bool decode(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> record, std::span<std::byte> target) {
  DDF_ASSERT(base.empty() || base.size() == target.size());
  if (record.empty() || target.empty() || target.size() > record_target_bytes_max) return false;
  const auto op = static_cast<operation>(record[0]);
  const bool in_place = base.data() == target.data();
  std::span<const std::byte> payload = record.subspan(1);
  if (op == operation::prefix) return decode_prefix(w, base, payload, target);
  if (op == operation::keep) {
    if (base.empty() || !payload.empty()) return false;
    if (!in_place) std::copy(base.begin(), base.end(), target.begin());
    return true;
  }
  if (op == operation::replace) {
    if (payload.size() != target.size()) return false;
    std::copy(payload.begin(), payload.end(), target.begin());
    return true;
  }

  const std::size_t n = target.size() / width_of(e), tail = target.size() - n * width_of(e);
  if (payload.size() < tail) return false;
  std::copy_n(payload.begin(), tail, target.end() - static_cast<std::ptrdiff_t>(tail));
  payload = payload.subspan(tail);
  if (op == operation::planes) return decode_planes(w, e, payload, target.data(), n);
  if (base.empty()) return false;
  switch (op) {
    case operation::sparse_context: return decode_sparse_context(w, e, base.data(), payload, target.data(), n);
    case operation::sparse_fast: return decode_sparse_fast(w, e, base.data(), payload, target.data(), n);
    case operation::gather: return decode_gather(w, e, base.data(), payload, target.data(), n);
    case operation::dense: return decode_dense(w, e, base.data(), payload, target.data(), n);
    default: return false;
  }
}

}  // namespace

void encode_record(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> target, profile p, std::vector<std::byte>& out) {
  DDF_ASSERT(!target.empty() && target.size() <= record_target_bytes_max && (base.empty() || base.size() == target.size()));
  record_encoder(w, e, base, target, out).encode(p);
}

bool decode_record(workspace& w, element e, std::span<const std::byte> base, std::span<const std::byte> record, std::span<std::byte> target) {
  return decode(w, e, base, record, target);
}

bool decode_record_in_place(workspace& w, element e, std::span<const std::byte> record, std::span<std::byte> bytes) {
  return decode(w, e, bytes, record, bytes);
}

}  // namespace ddf::delta
