// The kernels for AVX2. Compiled into every build for x86-64, called where the machine has it.
#include "codecs/delta/kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/entropy.hpp"

#define DDF_AVX2 [[gnu::target("avx2,bmi,bmi2,popcnt,lzcnt")]]
#define DDF_AVX2_INLINE [[gnu::target("avx2,bmi,bmi2,popcnt,lzcnt"), gnu::always_inline]] inline

namespace ddf::delta {
namespace {

DDF_AVX2_INLINE __m256i load_256(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p)); }
DDF_AVX2_INLINE void store_256(std::uint8_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), v); }

// Packing works within halves of a vector; these put what it made in order.
DDF_AVX2_INLINE __m256i order_of_two(__m256i v) { return _mm256_permute4x64_epi64(v, 0b11'01'10'00); }
DDF_AVX2_INLINE __m256i order_of_four(__m256i v) { return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); }

DDF_AVX2_INLINE std::uint64_t mask_of(__m256i low, __m256i high) {   // of 64 bytes: their top bits
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) | std::uint64_t(static_cast<std::uint32_t>(_mm256_movemask_epi8(high))) << 32;
}

template <class U>
DDF_AVX2_INLINE __m256i equal_vector(const std::byte* a, const std::byte* b) {
  if constexpr (sizeof(U) == 1) return _mm256_cmpeq_epi8(load_256(a), load_256(b));
  if constexpr (sizeof(U) == 2) return _mm256_cmpeq_epi16(load_256(a), load_256(b));
  if constexpr (sizeof(U) == 4) return _mm256_cmpeq_epi32(load_256(a), load_256(b));
  return _mm256_cmpeq_epi64(load_256(a), load_256(b));
}
template <class U>
DDF_AVX2_INLINE __m256i equal_words_of_four(const std::byte* a, const std::byte* b) {
  return _mm256_packs_epi32(equal_vector<U>(a, b), equal_vector<U>(a + 32, b + 32));
}

// Equal elements among 64, a bit each. Written out: at -O2 neither compiler unrolls a loop over vectors.
template <class U>
DDF_AVX2_INLINE std::uint64_t equal_64(const std::byte* a, const std::byte* b) {
  if constexpr (sizeof(U) == 1) {
    return mask_of(equal_vector<U>(a, b), equal_vector<U>(a + 32, b + 32));
  } else if constexpr (sizeof(U) == 2) {
    const __m256i low = _mm256_packs_epi16(equal_vector<U>(a, b), equal_vector<U>(a + 32, b + 32));
    const __m256i high = _mm256_packs_epi16(equal_vector<U>(a + 64, b + 64), equal_vector<U>(a + 96, b + 96));
    return mask_of(order_of_two(low), order_of_two(high));
  } else if constexpr (sizeof(U) == 4) {
    const __m256i low = _mm256_packs_epi16(equal_words_of_four<U>(a, b), equal_words_of_four<U>(a + 64, b + 64));
    const __m256i high = _mm256_packs_epi16(equal_words_of_four<U>(a + 128, b + 128), equal_words_of_four<U>(a + 192, b + 192));
    return mask_of(order_of_four(low), order_of_four(high));
  } else {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < 16; ++i) {
      const __m256i e = equal_vector<U>(a + 32 * i, b + 32 * i);
      mask |= std::uint64_t(static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(e)))) << 4 * i;
    }
    return mask;
  }
}

template <class U>
DDF_AVX2 change_count changes(const std::byte* base, const std::byte* target, std::size_t n, std::uint64_t* masks) {
  change_count c;
  std::uint64_t carry = 0;
  std::size_t at = 0;
  for (; at + 64 <= n; at += 64) {
    const std::uint64_t mask = ~equal_64<U>(base + at * sizeof(U), target + at * sizeof(U));
    c.changed += static_cast<std::uint32_t>(std::popcount(mask));
    c.runs += static_cast<std::uint32_t>(std::popcount(mask & ~(mask << 1 | carry)));
    carry = mask >> 63;
    *masks++ = mask;
  }
  if (at == n) return c;
  const change_count last = scalar_kernels().changes[width_index(sizeof(U))](base + at * sizeof(U), target + at * sizeof(U), n - at, masks);
  c.changed += last.changed;
  c.runs += last.runs - static_cast<std::uint32_t>(carry & *masks & 1);
  return c;
}

// The classes of 64 elements as bytes.
struct class_vectors {
  __m256i low, high;
};

class class_finder {
 public:
  DDF_AVX2_INLINE explicit class_finder(const class_map& m)
      : map_(m), at_(_mm_cvtsi32_si128(m.exponent_at)), coarse_(_mm_cvtsi32_si128(m.coarse)), exponents_((1 << m.exponent_bits) - 1) {}

  template <class U>
  DDF_AVX2_INLINE class_vectors of(const std::byte* base) const {
    if constexpr (sizeof(U) == 1) {
      return {of_bytes(load_256(base)), of_bytes(load_256(base + 32))};
    } else if constexpr (sizeof(U) == 2) {
      return {order_of_two(_mm256_packus_epi16(of_16(base), of_16(base + 32))), order_of_two(_mm256_packus_epi16(of_16(base + 64), of_16(base + 96)))};
    } else if constexpr (sizeof(U) == 4) {
      return {order_of_four(_mm256_packus_epi16(of_32(base), of_32(base + 64))), order_of_four(_mm256_packus_epi16(of_32(base + 128), of_32(base + 192)))};
    } else {
      alignas(32) std::uint8_t c[64];
      for (std::size_t i = 0; i < 64; ++i) c[i] = static_cast<std::uint8_t>(map_.of(load<U>(base + i * sizeof(U))));
      return {load_256(reinterpret_cast<const std::byte*>(c)), load_256(reinterpret_cast<const std::byte*>(c + 32))};
    }
  }

 private:
  DDF_AVX2_INLINE __m256i of_16(const std::byte* base) const {
    return of_words(_mm256_and_si256(_mm256_srl_epi16(load_256(base), at_), _mm256_set1_epi16(static_cast<short>(exponents_))));
  }
  DDF_AVX2_INLINE __m256i of_32(const std::byte* base) const {
    const __m256i a = _mm256_and_si256(_mm256_srl_epi32(load_256(base), at_), _mm256_set1_epi32(exponents_));
    const __m256i b = _mm256_and_si256(_mm256_srl_epi32(load_256(base + 32), at_), _mm256_set1_epi32(exponents_));
    return of_words(_mm256_packus_epi32(a, b));
  }
  DDF_AVX2_INLINE __m256i of_words(__m256i exponents) const {
    const __m256i below = _mm256_subs_epu16(_mm256_set1_epi16(static_cast<short>(map_.top)), exponents);
    return _mm256_min_epu16(_mm256_srl_epi16(below, coarse_), _mm256_set1_epi16(static_cast<short>(map_.count - 1)));
  }
  DDF_AVX2_INLINE __m256i of_bytes(__m256i elements) const {
    const __m256i exponents = _mm256_and_si256(_mm256_srl_epi16(elements, at_), _mm256_set1_epi8(static_cast<char>(exponents_)));
    const __m256i below = _mm256_subs_epu8(_mm256_set1_epi8(static_cast<char>(map_.top)), exponents);
    const __m256i steps = _mm256_and_si256(_mm256_srl_epi16(below, coarse_), _mm256_set1_epi8(static_cast<char>(0xff >> map_.coarse)));
    return _mm256_min_epu8(steps, _mm256_set1_epi8(static_cast<char>(map_.count - 1)));
  }

  class_map map_;
  __m128i at_, coarse_;
  int exponents_;
};

template <class U>
DDF_AVX2 void classify(const class_map& m, const std::byte* base, std::size_t n, std::uint8_t* classes) {
  const class_finder finder(m);
  std::size_t at = 0;
  for (; at + 64 <= n; at += 64) {
    const class_vectors v = finder.of<U>(base + at * sizeof(U));
    store_256(classes + at, v.low);
    store_256(classes + at + 32, v.high);
  }
  scalar_kernels().classify[width_index(sizeof(U))](m, base + at * sizeof(U), n - at, classes + at);
}

DDF_AVX2_INLINE std::uint64_t members(const class_vectors& v, unsigned c) {
  const __m256i of_class = _mm256_set1_epi8(static_cast<char>(c));
  return mask_of(_mm256_cmpeq_epi8(v.low, of_class), _mm256_cmpeq_epi8(v.high, of_class));
}
DDF_AVX2_INLINE std::uint64_t members_from(const class_vectors& v, unsigned c) {   // of this class and those behind
  const __m256i before = _mm256_set1_epi8(static_cast<char>(static_cast<int>(c) - 1));
  return mask_of(_mm256_cmpgt_epi8(v.low, before), _mm256_cmpgt_epi8(v.high, before));
}

// So many classes are counted 64 elements at once; those behind have so few elements that these are counted one by one.
constexpr std::size_t common_classes = 8;
using common_masks = std::array<std::uint64_t, common_classes>;

// Loops over the common classes are written out, so that counts and classes stay in registers.
template <std::size_t... C>
DDF_AVX2_INLINE void members_of_each(const class_vectors& v, common_masks& member, std::index_sequence<C...>) {
  ((member[C] = members(v, C)), ...);
}
template <std::size_t... C>
DDF_AVX2_INLINE void count_each(const common_masks& member, std::uint32_t* seen, std::index_sequence<C...>) {
  ((seen[C] += static_cast<std::uint32_t>(_mm_popcnt_u64(member[C]))), ...);
}
constexpr std::make_index_sequence<common_classes> each_common;

template <class U>
DDF_AVX2 void locate(const class_map& m, const std::byte* base, std::size_t n, const std::uint64_t* masks, std::uint32_t* places, std::uint32_t* totals) {
  const class_finder finder(m);
  std::array<std::uint32_t, classes_max> seen{};
  common_masks member;
  alignas(32) std::uint8_t classes[64];
  std::size_t at = 0;
  for (; at + 64 <= n; at += 64) {
    const class_vectors v = finder.of<U>(base + at * sizeof(U));
    store_256(classes, v.low);
    store_256(classes + 32, v.high);
    members_of_each(v, member, each_common);
    for (std::uint64_t mask = *masks++; mask != 0; mask = _blsr_u64(mask)) {
      const auto bit = static_cast<unsigned>(_tzcnt_u64(mask));
      const unsigned c = classes[bit];
      const std::uint64_t of_class = c < common_classes ? member[c] : members(v, c);
      *places++ = c << class_bit | (seen[c] + static_cast<std::uint32_t>(_mm_popcnt_u64(_bzhi_u64(of_class, bit))));
    }
    count_each(member, seen.data(), each_common);
    if (m.count <= common_classes) continue;
    for (std::uint64_t rare = members_from(v, common_classes); rare != 0; rare = _blsr_u64(rare)) ++seen[classes[_tzcnt_u64(rare)]];
  }
  for (std::size_t i = at; i < n; ++i) {
    const unsigned c = m.of(load<U>(base + i * sizeof(U)));
    if (*masks >> (i - at) & 1) *places++ = c << class_bit | seen[c];
    ++seen[c];
  }
  std::copy(seen.begin(), seen.end(), totals);
}

// Where the search for the elements of the places stands, for each class.
struct search {
  static constexpr std::uint32_t none = 0xffffffff;

  search(std::uint32_t* all, const std::uint32_t* end_of_each, unsigned count) : places(all), ends(end_of_each) {
    next.fill(none);
    for (unsigned c = 0; c < count; ++c) {
      if (c != 0) at[c] = ends[c - 1];
      if (at[c] != ends[c]) next[c] = places[at[c]];
    }
  }
  void found(unsigned c, std::size_t element) {
    places[at[c]++] = static_cast<std::uint32_t>(element);
    next[c] = at[c] != ends[c] ? places[at[c]] : none;
  }

  std::uint32_t* places;
  const std::uint32_t* ends;
  std::array<std::uint32_t, classes_max> seen{}, at{}, next;
};

DDF_AVX2_INLINE void find_members(search& s, unsigned c, std::uint64_t member, std::size_t first) {
  const std::uint32_t until = s.seen[c] + static_cast<std::uint32_t>(_mm_popcnt_u64(member));
  while (s.next[c] < until) s.found(c, first + _tzcnt_u64(_pdep_u64(std::uint64_t(1) << (s.next[c] - s.seen[c]), member)));
  s.seen[c] = until;
}
template <std::size_t... C>
DDF_AVX2_INLINE void find_each(search& s, const class_vectors& v, std::size_t first, std::index_sequence<C...>) {
  (find_members(s, C, members(v, C), first), ...);
}

template <class U>
DDF_AVX2 bool find(const class_map& m, const std::byte* base, std::size_t n, std::uint32_t* places, const std::uint32_t* ends) {
  const class_finder finder(m);
  search s(places, ends, m.count);
  alignas(32) std::uint8_t classes[64];
  std::size_t first = 0;
  for (; first + 64 <= n; first += 64) {
    const class_vectors v = finder.of<U>(base + first * sizeof(U));
    find_each(s, v, first, each_common);
    if (m.count <= common_classes) continue;
    std::uint64_t rare = members_from(v, common_classes);
    if (rare == 0) continue;
    store_256(classes, v.low);
    store_256(classes + 32, v.high);
    for (; rare != 0; rare = _blsr_u64(rare)) {
      const auto bit = static_cast<unsigned>(_tzcnt_u64(rare));
      const unsigned c = classes[bit];
      if (s.next[c] == s.seen[c]++) s.found(c, first + bit);
    }
  }
  for (std::size_t i = first; i < n; ++i) {
    const unsigned c = m.of(load<U>(base + i * sizeof(U)));
    if (s.next[c] == s.seen[c]++) s.found(c, i);
  }
  for (unsigned c = 0; c < m.count; ++c)
    if (s.at[c] != s.ends[c]) return false;
  return true;
}

// For each set of lanes that take a word: which of the next words goes to which lane.
struct word_orders {
  std::uint8_t order[256][8];
  constexpr word_orders() : order{} {
    for (unsigned mask = 0; mask < 256; ++mask)
      for (unsigned lane = 0, word = 0; lane < 8; ++lane) order[mask][lane] = static_cast<std::uint8_t>(mask >> lane & 1 ? word++ : 0);
  }
};
constexpr word_orders orders;

DDF_AVX2_INLINE __m256i rans_step(__m256i& x, const std::uint32_t* table, __m256i slots, __m128i precision, const std::byte*& at) {
  const __m256i e = _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), _mm256_and_si256(x, slots), 4);
  const __m256i frequency = _mm256_add_epi32(_mm256_and_si256(_mm256_srli_epi32(e, 8), _mm256_set1_epi32(0xfff)), _mm256_set1_epi32(1));
  x = _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srl_epi32(x, precision)), _mm256_srli_epi32(e, 20));
  const __m256i low = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), _mm256_setzero_si256());
  const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(low)));
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(at)));
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(orders.order[mask])));
  const __m256i more = _mm256_or_si256(_mm256_slli_epi32(x, 16), _mm256_permutevar8x32_epi32(words, order));
  x = _mm256_blendv_epi8(x, more, low);
  at += 2 * _mm_popcnt_u32(mask);
  return _mm256_and_si256(e, _mm256_set1_epi32(0xff));
}

DDF_AVX2 std::size_t rans_decode(const std::uint32_t* table, unsigned precision, std::uint32_t* state, const std::byte*& from, const std::byte* end,
                                 std::uint8_t* symbols, std::size_t count) {
  static_assert(rans_lanes_max == 16);
  const __m256i slots = _mm256_set1_epi32((1 << precision) - 1);
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(precision));
  __m256i x0 = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(state)), x1 = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(state + 8));
  const std::byte* at = from;
  std::size_t done = 0;
  for (; count - done >= 16 && end - at >= 32; done += 16) {
    const __m256i s0 = rans_step(x0, table, slots, shift, at);
    const __m256i s1 = rans_step(x1, table, slots, shift, at);
    const __m256i s = order_of_two(_mm256_packus_epi32(s0, s1));
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(symbols + done), _mm_packus_epi16(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(state), x0);
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(state + 8), x1);
  from = at;
  return done;
}

}  // namespace

const kernels* avx2_kernels() {
  static constexpr kernels k = {
      .changes = {changes<std::uint8_t>, changes<std::uint16_t>, changes<std::uint32_t>, changes<std::uint64_t>},
      .classify = {classify<std::uint8_t>, classify<std::uint16_t>, classify<std::uint32_t>, classify<std::uint64_t>},
      .locate = {locate<std::uint8_t>, locate<std::uint16_t>, locate<std::uint32_t>, locate<std::uint64_t>},
      .find = {find<std::uint8_t>, find<std::uint16_t>, find<std::uint32_t>, find<std::uint64_t>},
      .rans_decode = rans_decode,
  };
  const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return has ? &k : nullptr;
}

}  // namespace ddf::delta

#else

namespace ddf::delta {
const kernels* avx2_kernels() { return nullptr; }
}  // namespace ddf::delta

#endif
