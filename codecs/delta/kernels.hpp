// The inner loops that are worth writing twice: plain, and for AVX2 where the machine has it. Same results.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/delta/element_class.hpp"

namespace ddf::delta {

struct change_count {
  std::uint32_t changed = 0, runs = 0;   // elements; stretches of neighbouring ones
};

/// The place of a width in tables of kernels.
constexpr std::size_t width_index(std::size_t width) { return width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3; }

inline constexpr unsigned class_bit = 24;

struct kernels {
  /// Sets a bit in `masks` for each of n elements that differs; bits behind the last are clear.
  using changes_function = change_count(const std::byte* base, const std::byte* target, std::size_t n, std::uint64_t* masks);
  /// The class of each of n elements.
  using classify_function = void(const class_map& m, const std::byte* base, std::size_t n, std::uint8_t* classes);
  /// The indexes of the bits set in so many words, ascending, counted from `first`; may write 4 more behind the last.
  using list_function = void(const std::uint64_t* masks, std::size_t words, std::uint32_t first, std::uint32_t* indexes);
  /// For each of the ascending indexes of elements from `first` on, which is where `base` begins: its class << class_bit | how many elements
  /// of its class are before it. `seen` counts those of each class before and then also these.
  using locate_function = void(const class_map& m, const std::byte* base, std::size_t n, std::uint32_t first, const std::uint32_t* indexes, std::size_t count,
                               std::uint32_t* places, std::uint32_t* seen);
  /// The converse: copies the base to the target, if these are two, and adds the zigzag differences `values` to the elements at `places`: class after
  /// class ascending counts as above, ends[c] where those of c end. False when there is no such element.
  using apply_function = bool(const class_map& m, const std::byte* base, std::byte* target, std::size_t n, const std::uint32_t* places, const std::byte* values,
                              const std::uint32_t* ends);
  /// Decodes symbols of 16 lanes while 32 bytes are left, in whole rounds of 16; returns how many. Format in entropy.hpp.
  using rans_decode_function = std::size_t(const std::uint32_t* table, unsigned precision, std::uint32_t* state, const std::byte*& at,
                                           const std::byte* end, std::uint8_t* symbols, std::size_t count);

  std::array<changes_function*, 4> changes;
  std::array<classify_function*, 4> classify;
  std::array<locate_function*, 4> locate;
  std::array<apply_function*, 4> apply;
  list_function* list;
  rans_decode_function* rans_decode;
};

const kernels& scalar_kernels();
const kernels* avx2_kernels();   // nullptr where the machine has no such instructions
const kernels& best_kernels();   // for this machine

}  // namespace ddf::delta
