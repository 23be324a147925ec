// sparse_context: which elements changed, by their place among those whose base has a similar exponent.
//
// Payload: the class map and what is said of each class (bits); for each class coded by symbols, these (entropy.hpp); then for
// each class in order, in one sequence of bits, either the further bits of its symbols (magnitude.hpp), or by Rice codes: for each change the
// number of unchanged elements of the class before it and whether it is downwards, for each change by more than one step the
// number of smaller changes before it, and how much more than two steps each of these is.
//
// Small changes to rare elements cost some 7 bits each; a class whose elements change often is shorter as symbols.
#include <algorithm>
#include <array>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element_class.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/kernels.hpp"
#include "codecs/delta/magnitude.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/operations.hpp"
#include "codecs/delta/rice.hpp"

namespace ddf::delta {
namespace {

enum class class_coding : std::uint8_t { unchanged = 0, rice = 1, symbols = 2 };

constexpr unsigned place_bits = 20;   // of a place in a class: a record has no more than 2^20 elements

struct class_head {
  class_coding coding = class_coding::unchanged;
  std::uint32_t count = 0;   // rice: changes; symbols: elements
  std::uint32_t larger = 0;  // rice: changes by more than one step
  unsigned gap_k = 0, larger_k = 0, size_k = 0;
};

void write_head(bit_writer& bits, const class_head& h) {
  bits.put(static_cast<unsigned>(h.coding), 2);
  if (h.coding == class_coding::unchanged) return;
  put_number(bits, h.count);
  if (h.coding == class_coding::symbols) return;
  bits.put(h.gap_k, 5);
  put_number(bits, h.larger);
  if (h.larger == 0) return;
  bits.put(h.larger_k, 5);
  bits.put(h.size_k, 6);
}

bool read_head(bit_reader& bits, class_head& h) {
  h.coding = static_cast<class_coding>(bits.get(2));
  if (h.coding == class_coding::unchanged) return true;
  if (h.coding > class_coding::symbols) return false;
  h.count = get_number(bits);
  if (h.coding == class_coding::symbols) return true;
  h.gap_k = static_cast<unsigned>(bits.get(5));
  h.larger = get_number(bits);
  if (h.larger == 0) return true;
  h.larger_k = static_cast<unsigned>(bits.get(5));
  h.size_k = static_cast<unsigned>(bits.get(6));
  return h.larger <= h.count;
}

template <class U>
U steps_of(U zigzag) { return static_cast<U>((zigzag >> 1) + (zigzag & 1)); }   // a zigzag difference without its sign, which is bit 0

/// The changes of one class: places ascending, differences not 0.
template <class U>
struct class_changes {
  const std::uint32_t* places;
  const std::byte* values;
  std::size_t count;
  std::uint32_t elements;   // of the class, changed or not

  U value(std::size_t i) const { return load<U>(values + i * sizeof(U)); }
  std::uint64_t gap(std::size_t i) const { return i == 0 ? places[0] : places[i] - places[i - 1] - 1; }

  /// Chooses between Rice codes and symbols; `larger` gets the gaps and then the sizes of larger changes.
  class_head head(workspace& w, std::vector<std::uint8_t>& symbols) const {
    class_head h;
    if (count == 0) return h;
    h = {.coding = class_coding::rice, .count = static_cast<std::uint32_t>(count)};
    const rice_choice gaps = choose_rice(count, place_bits, [&](std::size_t i) { return gap(i); });
    std::uint32_t* const larger_gaps = at_least(w.larger_gaps, count);
    std::uint32_t before = 0;
    std::byte* const sizes = at_least(w.larger_sizes, count * sizeof(U));
    for (std::size_t i = 0; i < count; ++i) {
      const U steps = steps_of(value(i));
      larger_gaps[h.larger] = before;
      store(sizes + h.larger * sizeof(U), static_cast<U>(steps - 2));
      const bool is_larger = steps > 1;
      before = is_larger ? 0 : before + 1;
      h.larger += is_larger;
    }
    const rice_choice larger = choose_rice(h.larger, place_bits, [&](std::size_t i) { return std::uint64_t(larger_gaps[i]); });
    const rice_choice size = choose_rice(h.larger, 8 * sizeof(U), [&](std::size_t i) { return std::uint64_t(load<U>(sizes + i * sizeof(U))); });
    h.gap_k = gaps.k;
    h.larger_k = larger.k;
    h.size_k = size.k;
    const std::uint64_t rice = gaps.bits + count + larger.bits + size.bits;
    if (count >= elements / 16) {
      histogram seen{};
      std::uint64_t more = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned s = magnitude<U>::symbol(value(i));
        ++seen[s];
        more += magnitude<U>::more_bits(s);
      }
      seen[0] = static_cast<std::uint32_t>(elements - count);
      if (entropy_bits(seen) + more < rice - rice / 32) {   // slower, so not for nothing
        h.coding = class_coding::symbols;
        h.count = elements;
        const std::size_t begin = symbols.size();
        symbols.resize(begin + elements, 0);
        for (std::size_t i = 0; i < count; ++i) symbols[begin + places[i]] = static_cast<std::uint8_t>(magnitude<U>::symbol(value(i)));
      }
    }
    return h;
  }

  void write(bit_writer& bits, const class_head& h) const {
    if (h.coding == class_coding::symbols) {
      for (std::size_t i = 0; i < count; ++i) {
        const unsigned more = magnitude<U>::more_bits(magnitude<U>::symbol(value(i)));
        bits.put_wide(value(i) & ((std::uint64_t(1) << more) - 1), more);
      }
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t g = gap(i), zeros = g >> h.gap_k, down = value(i) & 1;
      if (zeros >= rice_zeros_max) {
        put_rice(bits, g, h.gap_k, place_bits);
        bits.put(down, 1);
        continue;
      }
      const auto prefix = static_cast<unsigned>(zeros) + 1;   // both at once
      const std::uint64_t rest = (g & ((std::uint64_t(1) << h.gap_k) - 1)) | down << h.gap_k;
      bits.put(std::uint64_t(1) << zeros | rest << prefix, prefix + h.gap_k + 1);
    }
    if (h.larger == 0) return;
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_larger = steps_of(value(i)) > 1;
      if (is_larger) put_rice(bits, before, h.larger_k, place_bits);
      before = is_larger ? 0 : before + 1;
    }
    for (std::size_t i = 0; i < count; ++i)
      if (const U steps = steps_of(value(i)); steps > 1) put_rice(bits, static_cast<U>(steps - 2), h.size_k, 8 * sizeof(U));
  }
};

template <class U>
void encode(workspace& w, const change_set& s, std::vector<std::byte>& out) {
  std::array<std::uint32_t, classes_max + 1> at{};   // first where a class begins, then where it goes on
  for (std::size_t i = 0; i < s.changed; ++i) ++at[(w.positions[i] >> class_bit) + 1];
  for (std::size_t c = 1; c <= classes_max; ++c) at[c] += at[c - 1];
  const auto begin = at;
  std::uint32_t* const sorted = at_least(w.sorted_positions, s.changed);
  std::byte* const values = at_least(w.sorted_values, s.changed * sizeof(U));
  for (std::size_t i = 0; i < s.changed; ++i) {
    const std::uint32_t place = w.positions[i], slot = at[place >> class_bit]++;
    sorted[slot] = place & ((1u << class_bit) - 1);
    store(values + slot * sizeof(U), load<U>(w.values.data() + i * sizeof(U)));
  }

  std::array<class_head, classes_max> heads;
  const auto changes_of = [&](unsigned c) {
    return class_changes<U>{sorted + begin[c], values + begin[c] * sizeof(U), begin[c + 1] - begin[c], s.totals[c]};
  };
  w.symbols.clear();
  for (unsigned c = 0; c < s.map.count; ++c) heads[c] = changes_of(c).head(w, w.symbols);
  bit_writer head(out);
  write_classes(head, s.map);
  for (unsigned c = 0; c < s.map.count; ++c) write_head(head, heads[c]);
  head.finish();
  std::size_t symbol = 0;
  for (unsigned c = 0; c < s.map.count; ++c) {
    if (heads[c].coding != class_coding::symbols) continue;
    entropy_encode(w, {w.symbols.data() + symbol, heads[c].count}, out);
    symbol += heads[c].count;
  }
  bit_writer bits(out);
  for (unsigned c = 0; c < s.map.count; ++c) changes_of(c).write(bits, heads[c]);
  bits.finish();
}

/// Reads the changes of a class coded by Rice codes; `place` and `value` have room for all.
template <class U>
bool read_rice(bit_reader& bits, const class_head& h, std::size_t n, std::uint32_t* place, std::byte* value) {
  std::uint64_t at = 0;
  if (h.gap_k > place_bits) return false;   // so that all of a change but a whole number comes from one refill
  for (std::size_t i = 0; i < h.count; ++i) {
    bits.refill();
    const auto zeros = static_cast<unsigned>(std::countr_zero(bits.peek() | std::uint64_t(1) << rice_zeros_max));
    if (zeros == rice_zeros_max) {
      at += get_rice(bits, h.gap_k, place_bits);
      bits.refill();
    } else {
      bits.drop(zeros + 1);
      at += std::uint64_t(zeros) << h.gap_k | bits.take(h.gap_k);
    }
    if (at >= n) return false;
    place[i] = static_cast<std::uint32_t>(at++);
    store(value + i * sizeof(U), static_cast<U>(2 - bits.take(1)));
  }
  std::uint32_t* const larger = place + h.count;   // there is room for as many again
  at = 0;
  for (std::size_t i = 0; i < h.larger; ++i) {
    at += get_rice(bits, h.larger_k, place_bits);
    if (at >= h.count) return false;
    larger[i] = static_cast<std::uint32_t>(at++);
  }
  for (std::size_t i = 0; i < h.larger; ++i) {
    std::byte* const v = value + larger[i] * sizeof(U);
    const U steps = static_cast<U>(get_rice(bits, h.size_k, 8 * sizeof(U)) + 2);
    store(v, static_cast<U>(2 * steps - (load<U>(v) & 1)));
  }
  return bits.intact();
}

template <class U>
bool decode(workspace& w, element e, const std::byte* base, std::span<const std::byte> in, std::byte* target, std::size_t n) {
  class_map m = map_of(e);
  bit_reader head(in);
  if (!read_classes(head, m)) return false;
  std::array<class_head, classes_max> heads;
  std::uint64_t total = 0, symbols = 0;
  for (unsigned c = 0; c < m.count; ++c) {
    if (!read_head(head, heads[c])) return false;
    total += heads[c].count;
    if (heads[c].coding == class_coding::symbols) symbols += heads[c].count;
  }
  const auto streams = head.rest();
  if (!streams || total > n) return false;
  in = *streams;
  std::uint8_t* symbol = at_least(w.symbols, symbols);
  for (unsigned c = 0; c < m.count; ++c)
    if (heads[c].coding == class_coding::symbols) {
      if (!entropy_decode(w, in, {symbol, heads[c].count})) return false;
      symbol += heads[c].count;
    }

  symbol = w.symbols.data();
  std::uint32_t* const places = at_least(w.positions, 2 * total);
  std::byte* const values = at_least(w.values, total * sizeof(U));
  std::array<std::uint32_t, classes_max> ends{};
  std::uint32_t count = 0;
  bit_reader bits(in);
  for (unsigned c = 0; c < m.count; ++c) {
    const class_head& h = heads[c];
    if (h.coding == class_coding::rice) {
      if (!read_rice<U>(bits, h, n, places + count, values + count * sizeof(U))) return false;
      count += h.count;
    } else if (h.coding == class_coding::symbols) {
      for (std::uint32_t i = 0; i < h.count; ++i) {
        const unsigned s = *symbol++, more = magnitude<U>::more_bits(s);
        if (s == 0) continue;
        if (more > magnitude<U>::more_bits_max) return false;
        places[count] = i;
        store(values + count++ * sizeof(U), magnitude<U>::value(s, more == 0 ? U(0) : static_cast<U>(bits.get_wide(more))));
      }
    }
    ends[c] = count;
  }
  const auto rest = bits.rest();
  if (!rest || !rest->empty()) return false;
  return w.kernel->apply[width_index(sizeof(U))](m, base, target, n, places, values, ends.data());
}

}  // namespace

void encode_sparse_context(workspace& w, const pair_view& p, const change_set& s, std::vector<std::byte>& out) {
  with_width(p.element, [&]<class U>(U) { encode<U>(w, s, out); });
}

bool decode_sparse_context(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n) {
  return with_width(e, [&]<class U>(U) { return decode<U>(w, e, base, payload, target, n); });
}

}  // namespace ddf::delta
