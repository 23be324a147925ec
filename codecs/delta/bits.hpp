// Numbers in bytes: little-endian integers, varints, and bits packed from the least significant one up.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace ddf::delta {

template <std::unsigned_integral U>
constexpr U little_endian(U v) {   // its own inverse
  if constexpr (std::endian::native == std::endian::little || sizeof(U) == 1) {
    return v;
  } else {
    U r = 0;
    for (std::size_t i = 0; i < sizeof(U); ++i) r = static_cast<U>(r << 8 | (v >> (8 * i) & 0xff));
    return r;
  }
}

template <std::unsigned_integral U>
inline U load(const std::byte* p) {
  U v;
  std::memcpy(&v, p, sizeof v);
  return little_endian(v);
}

template <std::unsigned_integral U>
inline void store(std::byte* p, U v) {
  v = little_endian(v);
  std::memcpy(p, &v, sizeof v);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
inline void put_varint(std::vector<std::byte>& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::byte>((v & 0x7f) | 0x80));
  out.push_back(static_cast<std::byte>(v));
}

/// Takes a varint of up to 28 bits from the front of `in`: all that a record counts is below 2^21.
inline std::optional<std::uint32_t> take_varint(std::span<const std::byte>& in) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4 && i < in.size(); ++i) {
    const auto b = std::to_integer<std::uint32_t>(in[i]);
    v |= (b & 0x7f) << (7 * i);
    if (b >= 0x80) continue;
    in = in.subspan(i + 1);
    return v;
  }
  return std::nullopt;
}

/// Appends bits to bytes. finish() must be called once, and nothing else may append before.
class bit_writer {
 public:
  static constexpr unsigned once_bits_max = 56;

  explicit bit_writer(std::vector<std::byte>& out) : out_(out), to_(out.data()), size_(out.size()), at_(out.size()) {}

  void put(std::uint64_t value, unsigned bits) {   // bits <= once_bits_max, and value has no others
    if (at_ + 8 > size_) [[unlikely]] grow();
    pending_ |= value << fill_;
    fill_ += bits;
    store(to_ + at_, pending_);
    at_ += fill_ >> 3;
    pending_ >>= fill_ & ~7u;
    fill_ &= 7;
  }

  void put_wide(std::uint64_t value, unsigned bits) {   // any number of bits up to 64
    if (bits > 32) {
      put(value & 0xffffffff, 32);
      value >>= 32;
      bits -= 32;
    }
    put(value, bits);
  }

  void finish() { out_.resize(at_ + (fill_ != 0)); }   // the last byte is filled with zeros; put() stored it already

 private:
  void grow() {
    out_.resize(at_ + 4096);
    to_ = out_.data();
    size_ = out_.size();
  }

  std::vector<std::byte>& out_;
  std::byte* to_;
  std::size_t size_, at_;
  std::uint64_t pending_ = 0;
  unsigned fill_ = 0;
};

/// A number below 2^31: its bit length in 5 bits, then the bits below the highest.
inline void put_number(bit_writer& bits, std::uint32_t v) {
  const auto length = static_cast<unsigned>(std::bit_width(v));
  bits.put(length, 5);
  if (length > 1) bits.put(v & ((1u << (length - 1)) - 1), length - 1);
}

/// Reads bits; behind the end there are zeros, and intact() says whether any of them was taken.
class bit_reader {
 public:
  static constexpr unsigned once_bits_max = 56;

  explicit bit_reader(std::span<const std::byte> in) : at_(in.data()), end_(in.data() + in.size()) {}

  void refill() {   // afterwards at least once_bits_max bits are there to peek
    if (end_ - at_ >= 8) {
      pending_ |= load<std::uint64_t>(at_) << have_;
      at_ += (63 - have_) >> 3;
      have_ |= 56;
      return;
    }
    while (have_ < 56) {
      if (at_ != end_) pending_ |= std::to_integer<std::uint64_t>(*at_++) << have_;
      else padding_ += 8;
      have_ += 8;
    }
  }
  std::uint64_t peek() const { return pending_; }
  void drop(unsigned bits) {   // bits < 64
    pending_ >>= bits;
    have_ -= bits;
  }
  std::uint64_t take(unsigned bits) {   // of what refill() provided
    const std::uint64_t v = pending_ & ((std::uint64_t(1) << bits) - 1);
    drop(bits);
    return v;
  }
  std::uint64_t get(unsigned bits) {
    refill();
    return take(bits);
  }
  std::uint64_t get_wide(unsigned bits) {
    if (bits <= 32) return get(bits);
    const std::uint64_t low = get(32);
    return low | get(bits - 32) << 32;
  }

  bool intact() const { return have_ >= padding_; }
  /// The bytes behind the one that holds the last bit read; nothing when it was not intact or that byte's other bits are not zeros.
  std::optional<std::span<const std::byte>> rest() const {
    if (!intact()) return std::nullopt;
    const std::size_t unread_bits = have_ - padding_, whole = unread_bits / 8;
    if ((pending_ & ((std::uint64_t(1) << unread_bits % 8) - 1)) != 0) return std::nullopt;
    return std::span<const std::byte>(at_ - whole, end_);
  }

 private:
  const std::byte *at_, *end_;
  std::uint64_t pending_ = 0;
  unsigned have_ = 0, padding_ = 0;
};

inline std::uint32_t get_number(bit_reader& bits) {
  bits.refill();
  const auto length = static_cast<unsigned>(bits.take(5));
  return length == 0 ? 0 : 1u << (length - 1) | static_cast<std::uint32_t>(bits.take(length - 1));
}

}  // namespace ddf::delta
