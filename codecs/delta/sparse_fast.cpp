// sparse_fast: gaps and small differences as bytes, so that only what changed is touched.
//
// Payload: varint count of gap bytes; these (entropy.hpp): below 255 so many unchanged elements and then a changed one, 255 as many
// unchanged and no other; for each changed element a byte (entropy.hpp): its zigzag difference - 1, or 255; for each 255
// the difference of the element's width.
#include "codecs/delta/bits.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/operations.hpp"

namespace ddf::delta {
namespace {

constexpr std::uint8_t long_gap = 255, wide_difference = 255;

template <class U>
void encode(workspace& w, const pair_view& p, const change_set& s, std::vector<std::byte>& out) {
  std::uint8_t* const gaps = at_least(w.gaps, s.changed + p.n / long_gap + 1);
  std::uint8_t* const differences = at_least(w.differences, s.changed);
  std::byte* const wide = at_least(w.sorted_values, (s.changed + 1) * sizeof(U));
  std::size_t gap_count = 0, wide_count = 0, next = 0;
  for (std::size_t c = 0; c < s.changed; ++c) {
    std::size_t gap = w.indexes[c] - next;
    next = w.indexes[c] + 1;
    for (; gap >= long_gap; gap -= long_gap) gaps[gap_count++] = long_gap;
    gaps[gap_count++] = static_cast<std::uint8_t>(gap);
    const U value = load<U>(w.values.data() + c * sizeof(U));
    const bool is_wide = value > wide_difference;   // 1 to 255 are 0 to 254
    differences[c] = is_wide ? wide_difference : static_cast<std::uint8_t>(value - 1);
    store(wide + wide_count * sizeof(U), value);
    wide_count += is_wide;
  }
  put_varint(out, gap_count);
  entropy_encode(w, {gaps, gap_count}, out);
  entropy_encode(w, {differences, s.changed}, out);
  out.insert(out.end(), wide, wide + wide_count * sizeof(U));
}

template <class U>
bool decode(workspace& w, const std::byte* base, std::span<const std::byte> in, std::byte* target, std::size_t n) {
  const auto gap_count = take_varint(in);
  if (!gap_count || *gap_count > n + n / long_gap + 1) return false;
  std::uint8_t* const gaps = at_least(w.gaps, *gap_count);
  if (!entropy_decode(w, in, {gaps, *gap_count})) return false;
  std::size_t changed = 0, end = 0;
  for (std::size_t g = 0; g < *gap_count; ++g) {
    changed += gaps[g] != long_gap;
    end += gaps[g] + (gaps[g] != long_gap);
  }
  if (end > n) return false;
  std::uint8_t* const differences = at_least(w.differences, changed);
  if (!entropy_decode(w, in, {differences, changed})) return false;
  std::size_t wide_count = 0;
  for (std::size_t d = 0; d < changed; ++d) wide_count += differences[d] == wide_difference;
  if (in.size() != wide_count * sizeof(U)) return false;

  if (target != base) std::memcpy(target, base, n * sizeof(U));
  const std::byte* wide = in.data();
  std::byte* at = target;
  for (std::size_t g = 0, d = 0; g < *gap_count; ++g) {
    at += gaps[g] * sizeof(U);
    if (gaps[g] == long_gap) continue;
    U v = static_cast<U>(differences[d] + 1u);
    if (differences[d] == wide_difference) {
      v = load<U>(wide);
      wide += sizeof(U);
    }
    ++d;
    store(at, add_zigzag(load<U>(at), v));
    at += sizeof(U);
  }
  return true;
}

}  // namespace

void encode_sparse_fast(workspace& w, const pair_view& p, const change_set& s, std::vector<std::byte>& out) {
  with_width(p.element, [&]<class U>(U) { encode<U>(w, p, s, out); });
}

bool decode_sparse_fast(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n) {
  return with_width(e, [&]<class U>(U) { return decode<U>(w, base, payload, target, n); });
}

}  // namespace ddf::delta
