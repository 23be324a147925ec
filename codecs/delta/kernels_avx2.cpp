// The kernels for AVX2. Compiled into every build for x86-64, called where the machine has it.
#include "codecs/delta/kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/number.hpp"

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

// The 64 elements a page ahead of these: hardware does not look beyond one.
template <class U>
DDF_AVX2_INLINE void prefetch(const std::byte* elements) {
  for (std::size_t line = 0; line < sizeof(U); ++line) _mm_prefetch(reinterpret_cast<const char*>(elements + 4096 + 64 * line), _MM_HINT_T0);
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
    prefetch<U>(base + at * sizeof(U));
    prefetch<U>(target + at * sizeof(U));
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

// The bits of the classes of 64 elements, one mask for each of the four. From these a class's members are three operations away.
struct class_bits {
  std::uint64_t bit[4];

  DDF_AVX2_INLINE explicit class_bits(const class_vectors& v) : bit{of(v, 7), of(v, 6), of(v, 5), of(v, 4)} {}
  DDF_AVX2_INLINE std::uint64_t members(unsigned c) const {
    const auto same = [](std::uint64_t mask, unsigned wanted) { return mask ^ (std::uint64_t(wanted & 1) - 1); };
    return same(bit[0], c) & same(bit[1], c >> 1) & same(bit[2], c >> 2) & same(bit[3], c >> 3);
  }

 private:
  DDF_AVX2_INLINE static std::uint64_t of(const class_vectors& v, int shift) { return mask_of(_mm256_slli_epi16(v.low, shift), _mm256_slli_epi16(v.high, shift)); }
};

// Some chunks of 64 elements at once: first all are counted without a branch, then what is looked for is found in them.
constexpr std::size_t group_chunks = 32;

struct group {
  alignas(32) std::uint16_t before[classes_max][group_chunks];   // members of the class in this group before the chunk
  std::uint64_t bits[group_chunks][4];

  DDF_AVX2_INLINE std::uint64_t members(std::size_t chunk, unsigned c) const {
    const std::uint64_t* b = bits[chunk];
    return (b[0] ^ (std::uint64_t(c & 1) - 1)) & (b[1] ^ (std::uint64_t(c >> 1 & 1) - 1)) & (b[2] ^ (std::uint64_t(c >> 2 & 1) - 1)) & (b[3] ^ (std::uint64_t(c >> 3) - 1));
  }
};

template <std::size_t... C>
DDF_AVX2_INLINE void count_chunk(group& g, std::size_t chunk, const class_vectors& v, std::uint32_t* count, std::index_sequence<C...>) {
  const class_bits b(v);
  ((g.bits[chunk][C % 4] = b.bit[C % 4]), ...);
  ((g.before[C][chunk] = static_cast<std::uint16_t>(count[C]), count[C] += static_cast<std::uint32_t>(_mm_popcnt_u64(b.members(C)))), ...);
}

// Fills in a group; `count` becomes the members of each class. Loops over Classes are written out, so that they stay in registers.
template <class U, std::size_t Classes>
DDF_AVX2_INLINE void count_group(group& g, const class_finder& finder, const std::byte* base, std::size_t chunks, std::uint32_t* count) {
  std::uint32_t c[Classes] = {};
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::byte* const at = base + chunk * 64 * sizeof(U);
    prefetch<U>(at);
    count_chunk(g, chunk, finder.of<U>(at), c, std::make_index_sequence<Classes>());
  }
  std::copy_n(c, Classes, count);
}

template <class U, std::size_t Classes>
DDF_AVX2 void locate_among(const class_map& m, const std::byte* base, std::size_t n, std::uint32_t first, const std::uint32_t* indexes, std::size_t changed,
                           std::uint32_t* places, std::uint32_t* seen) {
  const class_finder finder(m);
  std::array<std::uint32_t, classes_max> count{};
  group g;
  std::size_t done = 0, next = 0;
  for (std::size_t chunks; (chunks = std::min(group_chunks, (n - done) / 64)) != 0; done += chunks * 64) {
    count_group<U, Classes>(g, finder, base + done * sizeof(U), chunks, count.data());
    for (; next < changed && indexes[next] - first < done + chunks * 64; ++next) {
      const std::size_t at = indexes[next] - first - done, chunk = at / 64;
      const unsigned c = m.of(load<U>(base + (done + at) * sizeof(U)));
      const auto before = static_cast<std::uint32_t>(_mm_popcnt_u64(_bzhi_u64(g.members(chunk, c), static_cast<unsigned>(at % 64))));
      places[next] = c << class_bit | (seen[c] + g.before[c][chunk] + before);
    }
    for (std::size_t c = 0; c < Classes; ++c) seen[c] += count[c];
  }
  if (done != n) scalar_kernels().locate[width_index(sizeof(U))](m, base + done * sizeof(U), n - done, first + static_cast<std::uint32_t>(done), indexes + next, changed - next, places + next, seen);
}

// The chunk of a group that holds the member that so many are before.
DDF_AVX2_INLINE std::size_t chunk_of(const group& g, unsigned c, std::uint32_t before) {
  static_assert(group_chunks == 32);
  const __m256i wanted = _mm256_set1_epi16(static_cast<short>(before));
  const auto* row = reinterpret_cast<const std::byte*>(g.before[c]);
  const __m256i low = _mm256_cmpgt_epi16(load_256(row), wanted), high = _mm256_cmpgt_epi16(load_256(row + 32), wanted);
  return 31 - static_cast<std::size_t>(_mm_popcnt_u32(static_cast<unsigned>(_mm256_movemask_epi8(_mm256_packs_epi16(low, high)))));
}

template <class U, std::size_t Classes>
DDF_AVX2 bool apply_among(const class_map& m, const std::byte* base, std::byte* target, std::size_t n, const std::uint32_t* places, const std::byte* values,
                          const std::uint32_t* ends) {
  const class_finder finder(m);
  std::array<std::uint32_t, classes_max> seen{}, at{}, count{};
  for (unsigned c = 1; c < m.count; ++c) at[c] = ends[c - 1];
  group g;
  std::size_t first = 0;
  for (std::size_t chunks; (chunks = std::min(group_chunks, (n - first) / 64)) != 0; first += chunks * 64) {
    if (chunks < group_chunks)
      for (auto& row : g.before) std::fill(std::begin(row), std::end(row), 0x7fff);   // the chunks that are not there are behind all
    std::byte* const t = target + first * sizeof(U);
    if (target != base)
      for (std::size_t line = 0; line < chunks * sizeof(U); ++line) __builtin_prefetch(t + 64 * line, 1);   // written once the group is counted
    count_group<U, Classes>(g, finder, base + first * sizeof(U), chunks, count.data());
    if (target != base) std::memcpy(t, base + first * sizeof(U), chunks * 64 * sizeof(U));
    for (unsigned c = 0; c < m.count; ++c) {
      std::uint32_t i = at[c];
      for (; i != ends[c] && places[i] - seen[c] < count[c]; ++i) {
        const std::uint32_t before = places[i] - seen[c];
        const std::size_t chunk = chunk_of(g, c, before);
        const std::uint64_t member = _pdep_u64(std::uint64_t(1) << (before - g.before[c][chunk]), g.members(chunk, c));
        std::byte* const element = t + (chunk * 64 + _tzcnt_u64(member)) * sizeof(U);
        store(element, add_zigzag(load<U>(element), load<U>(values + i * sizeof(U))));
      }
      at[c] = i;
      seen[c] += count[c];
    }
  }
  for (std::size_t i = first; i < n; ++i) {
    const U x = load<U>(base + i * sizeof(U));
    const unsigned c = m.of(x);
    const bool changes = at[c] != ends[c] && places[at[c]] == seen[c];
    store(target + i * sizeof(U), changes ? add_zigzag(x, load<U>(values + at[c] * sizeof(U))) : x);
    at[c] += changes;
    ++seen[c];
  }
  for (unsigned c = 0; c < m.count; ++c)
    if (at[c] != ends[c]) return false;
  return true;
}

template <class U>
void locate(const class_map& m, const std::byte* base, std::size_t n, std::uint32_t first, const std::uint32_t* indexes, std::size_t count, std::uint32_t* places,
            std::uint32_t* seen) {
  if (m.count <= 8) return locate_among<U, 8>(m, base, n, first, indexes, count, places, seen);
  if (m.count <= 12) return locate_among<U, 12>(m, base, n, first, indexes, count, places, seen);
  return locate_among<U, 16>(m, base, n, first, indexes, count, places, seen);
}

template <class U>
bool apply(const class_map& m, const std::byte* base, std::byte* target, std::size_t n, const std::uint32_t* places, const std::byte* values,
           const std::uint32_t* ends) {
  if (m.count <= 8) return apply_among<U, 8>(m, base, target, n, places, values, ends);
  if (m.count <= 12) return apply_among<U, 12>(m, base, target, n, places, values, ends);
  return apply_among<U, 16>(m, base, target, n, places, values, ends);
}

// Four at a time whether there are so many or not, since how many there are cannot be predicted.
DDF_AVX2 void list(const std::uint64_t* masks, std::size_t words, std::uint32_t first, std::uint32_t* indexes) {
  for (std::size_t word = 0; word < words; ++word, first += 64) {
    std::uint64_t mask = masks[word];
    const auto count = static_cast<std::size_t>(_mm_popcnt_u64(mask));
    std::uint32_t* to = indexes;
    for (std::size_t i = 0; i < count || i == 0; i += 4, to += 4)
      for (std::size_t j = 0; j < 4; ++j) {
        to[j] = first + static_cast<std::uint32_t>(_tzcnt_u64(mask));
        mask = _blsr_u64(mask);
      }
    indexes += count;
  }
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
      .apply = {apply<std::uint8_t>, apply<std::uint16_t>, apply<std::uint32_t>, apply<std::uint64_t>},
      .list = list,
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
