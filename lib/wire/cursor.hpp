// Reads and writes big-endian fields byte by byte, never past the end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "lib/model/digest.hpp"

namespace ddf {

class reader {   // after a read past the end, ok() is false and every value is zero
 public:
  explicit reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u48() { return number(6); }
  std::uint64_t u64() { return number(8); }

  std::span<const std::byte> bytes(std::size_t n) {
    if (n > bytes_.size()) return ok_ = false, std::span<const std::byte>{};
    const auto out = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return out;
  }
  std::string text(std::size_t n) {
    const auto b = bytes(n);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  ddf::digest digest() {
    ddf::digest d;
    std::ranges::copy(bytes(ddf::digest::size), d.bytes.begin());
    return d;
  }
  std::span<const std::byte> rest() const { return bytes_; }
  std::size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }   // all read, nothing left over
  void fail() { ok_ = false; }

 private:
  std::uint64_t number(std::size_t n) {
    if (n > bytes_.size()) return ok_ = false, 0;
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n; ++i) v = v << 8 | std::to_integer<std::uint64_t>(bytes_[i]);
    bytes_ = bytes_.subspan(n);
    return v;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

class writer {   // appends to a vector
 public:
  explicit writer(std::vector<std::byte>& out) : out_(out) {}

  void u8(std::uint8_t v) { number(v, 1); }
  void u16(std::uint16_t v) { number(v, 2); }
  void u32(std::uint32_t v) { number(v, 4); }
  void u48(std::uint64_t v) { number(v, 6); }
  void u64(std::uint64_t v) { number(v, 8); }
  void bytes(std::span<const std::byte> b) { out_.insert(out_.end(), b.begin(), b.end()); }
  void text(std::string_view t) { bytes(std::as_bytes(std::span(t.data(), t.size()))); }
  std::size_t size() const { return out_.size(); }

 private:
  void number(std::uint64_t v, int n) {
    for (int i = n - 1; i >= 0; --i) out_.push_back(static_cast<std::byte>(v >> (8 * i) & 0xff));
  }

  std::vector<std::byte>& out_;
};

}  // namespace ddf
