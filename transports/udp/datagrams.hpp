// Datagrams as a socket hands them over.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>
#include "lib/model/endpoint.hpp"
#include "lib/wire/data_run.hpp"

namespace ddf {

/// One datagram or several from one sender, all of one size but the last, which may be shorter. They lie one behind the other, or
/// apart: the first 16 bytes of each, the header of a DATA packet, and what follows them. All lives until the next receive().
class datagrams {
 public:
  endpoint from;
  unsigned interface = 0;   // index of the interface they came in by; 0 unknown

  datagrams() = default;
  /// `size`: bytes of each, the last perhaps fewer.
  datagrams(std::span<const std::byte> bytes, std::size_t size);
  struct places {   // of the first, and how far it is to the next
    const std::byte* first = nullptr;
    std::size_t stride = 0;
  };
  /// `size`: bytes of each; `last`: of the last. `scratch` joins what datagram() is asked for.
  datagrams(places heads, places rests, std::size_t count, std::size_t size, std::size_t last, std::vector<std::byte>& scratch);
  /// Heads adjoin, and so do rests.
  datagrams(const std::byte* heads, const std::byte* rests, std::size_t count, std::size_t size, std::size_t last, std::vector<std::byte>& scratch)
      : datagrams(places{heads, head}, places{rests, size - head}, count, size, last, scratch) {}

  std::size_t count() const { return count_; }
  /// The DATA packets that follow each other from the i-th on. Nothing: that one is not DATA.
  std::optional<data_run> run_from(std::size_t i) const;
  /// The i-th in one piece, until the next call. Cost: a copy when it lies apart.
  std::span<const std::byte> datagram(std::size_t i) const;

 private:
  static constexpr std::size_t head = data_header::wire_size;
  std::size_t bytes(std::size_t i) const { return i + 1 == count_ ? last_ : size_; }

  const std::byte* heads_ = nullptr;
  const std::byte* rests_ = nullptr;
  std::size_t head_stride_ = 0, rest_stride_ = 0;
  std::size_t count_ = 0, size_ = 0, last_ = 0;
  std::vector<std::byte>* scratch_ = nullptr;   // nullptr: one behind the other
};

}  // namespace ddf
