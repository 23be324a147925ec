// What one thread keeps between records: buffers that grow to what a record needs and stay, and zstd's contexts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace ddf::delta {

struct kernels;

/// Owned by one thread at a time; movable. Some 10 MiB once every operation has been used on the largest record.
class workspace {
 public:
  workspace();
  ~workspace();
  workspace(workspace&&) noexcept;
  workspace& operator=(workspace&&) noexcept;

  /// Without the instructions that not every machine has. The bytes are the same; for tests.
  void use_scalar_only();

  // Below: for the operations of this folder.

  const kernels* kernel;

  std::vector<std::uint64_t> change_masks;     // a bit an element: changed
  std::vector<std::uint32_t> indexes;          // of changed elements
  std::vector<std::byte> candidate;            // a record that may turn out longer
  std::vector<std::byte> packed_base, packed_target;   // elements of runs; a whole target that is decoded beside its base

  std::vector<std::uint8_t> classes;           // of elements
  std::vector<std::uint8_t> symbols;
  std::vector<std::uint8_t> gaps, differences, skips, runs;   // streams of bytes
  std::vector<std::byte> values;               // zigzag differences, of the element's width
  std::vector<std::byte> sorted_values;        // class after class
  std::vector<std::uint32_t> positions, sorted_positions;
  std::vector<std::uint32_t> larger_gaps;      // between changes by more than one step
  std::vector<std::byte> larger_sizes;

  std::vector<std::uint32_t> entropy_table;    // one decoding table
  std::vector<std::byte> entropy_words;

  ZSTD_CCtx_s* compressor();                   // made at first use
  ZSTD_DCtx_s* decompressor();

 private:
  struct free_compressor {
    void operator()(ZSTD_CCtx_s*) const;
  };
  struct free_decompressor {
    void operator()(ZSTD_DCtx_s*) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, free_compressor> compressor_;
  std::unique_ptr<ZSTD_DCtx_s, free_decompressor> decompressor_;
};

/// Makes a buffer at least so long, never shorter, so that it is filled with zeros only once.
template <class T>
T* at_least(std::vector<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

}  // namespace ddf::delta
