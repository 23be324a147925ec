// dense: the difference of every element, coded by itself for each class of the base's exponent.
//
// Payload: the class map and the elements of each class (bits); for each class that has some, the symbols of its differences in
// order (entropy.hpp); then the further bits of all symbols (magnitude.hpp), class after class.
#include <algorithm>
#include <array>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element_class.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/kernels.hpp"
#include "codecs/delta/magnitude.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/operations.hpp"

namespace ddf::delta {
namespace {

using class_counts = std::array<std::uint32_t, classes_max>;

class_counts count_classes(const std::uint8_t* classes, std::size_t n) {
  std::array<class_counts, 2> part{};
  std::size_t i = 0;
  for (; i + 2 <= n; i += 2) ++part[0][classes[i]], ++part[1][classes[i + 1]];
  if (i < n) ++part[0][classes[i]];
  for (std::size_t c = 0; c < classes_max; ++c) part[0][c] += part[1][c];
  return part[0];
}

class_counts begin_of(const class_counts& counts) {
  class_counts begin{};
  for (std::size_t c = 1; c < classes_max; ++c) begin[c] = begin[c - 1] + counts[c - 1];
  return begin;
}

template <class U>
void encode(workspace& w, const pair_view& p, std::vector<std::byte>& out) {
  const class_map m = choose_classes(p.element, p.base, p.n, static_cast<unsigned>(std::clamp<std::size_t>(p.n / 512, 1, classes_max)));
  std::uint8_t* const classes = at_least(w.classes, p.n);
  w.kernel->classify[width_index(sizeof(U))](m, p.base, p.n, classes);
  const class_counts counts = count_classes(classes, p.n);

  class_counts at = begin_of(counts);
  std::byte* const values = at_least(w.sorted_values, p.n * sizeof(U));
  std::uint8_t* const symbols = at_least(w.symbols, p.n);
  for (std::size_t i = 0; i < p.n; ++i) {
    const std::uint32_t slot = at[classes[i]]++;
    const U v = zigzag_difference(load<U>(p.base + i * sizeof(U)), load<U>(p.target + i * sizeof(U)));
    store(values + slot * sizeof(U), v);
    symbols[slot] = static_cast<std::uint8_t>(magnitude<U>::symbol(v));
  }

  bit_writer head(out);
  write_classes(head, m);
  for (unsigned c = 0; c < m.count; ++c) put_number(head, counts[c]);
  head.finish();
  const class_counts begin = begin_of(counts);
  for (unsigned c = 0; c < m.count; ++c)
    if (counts[c] != 0) entropy_encode(w, {symbols + begin[c], counts[c]}, out);
  bit_writer more(out);
  if constexpr (sizeof(U) > 1)
    for (std::size_t i = 0; i < p.n; ++i) {
      const unsigned bits = magnitude<U>::more_bits(symbols[i]);
      const std::uint64_t low = load<U>(values + i * sizeof(U)) & ((std::uint64_t(1) << bits) - 1);
      if constexpr (sizeof(U) == 8) more.put_wide(low, bits);
      else more.put(low, bits);
    }
  more.finish();
}

template <class U>
bool decode(workspace& w, element e, const std::byte* base, std::span<const std::byte> in, std::byte* target, std::size_t n) {
  class_map m = map_of(e);
  bit_reader head(in);
  if (!read_classes(head, m)) return false;
  class_counts counts{};
  std::uint64_t total = 0;
  for (unsigned c = 0; c < m.count; ++c) total += counts[c] = get_number(head);
  const auto streams = head.rest();
  if (!streams || total != n) return false;
  in = *streams;

  const class_counts begin = begin_of(counts);
  std::uint8_t* const symbols = at_least(w.symbols, n);
  for (unsigned c = 0; c < m.count; ++c)
    if (counts[c] != 0 && !entropy_decode(w, in, {symbols + begin[c], counts[c]})) return false;
  std::byte* const values = at_least(w.values, n * sizeof(U));
  bit_reader more(in);
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned bits = magnitude<U>::more_bits(symbols[i]);
    if (bits > magnitude<U>::more_bits_max) return false;
    store(values + i * sizeof(U), magnitude<U>::value(symbols[i], bits == 0 ? U(0) : static_cast<U>(more.get_wide(bits))));
  }
  const auto rest = more.rest();
  if (!rest || !rest->empty()) return false;

  std::uint8_t* const classes = at_least(w.classes, n);
  w.kernel->classify[width_index(sizeof(U))](m, base, n, classes);
  if (count_classes(classes, n) != counts) return false;   // another base
  class_counts at = begin;
  for (std::size_t i = 0; i < n; ++i)
    store(target + i * sizeof(U), add_zigzag(load<U>(base + i * sizeof(U)), load<U>(values + at[classes[i]]++ * sizeof(U))));
  return true;
}

}  // namespace

void encode_dense(workspace& w, const pair_view& p, std::vector<std::byte>& out) {
  with_width(p.element, [&]<class U>(U) { encode<U>(w, p, out); });
}

bool decode_dense(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n) {
  return with_width(e, [&]<class U>(U) { return decode<U>(w, e, base, payload, target, n); });
}

}  // namespace ddf::delta
