// A fuzz input read as a sequence of choices; zeros follow its end.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

// Also where NDEBUG is set: a fuzz target that checks nothing finds nothing.
#define FUZZ_CHECK(condition) \
  ((condition) ? void(0) : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::abort()))

namespace ddf::test {

class fuzz_input {
 public:
  fuzz_input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  bool flag() { return (u8() & 1) != 0; }
  std::vector<std::byte> bytes(std::size_t most) {
    const auto n = std::min(most, bytes_.size());
    const auto b = std::as_bytes(bytes_.first(n));
    bytes_ = bytes_.subspan(n);
    return {b.begin(), b.end()};
  }

 private:
  std::uint64_t number(std::size_t n) {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n; ++i) {
      v = v << 8 | (bytes_.empty() ? 0 : bytes_[0]);
      if (!bytes_.empty()) bytes_ = bytes_.subspan(1);
    }
    return v;
  }
  std::span<const std::uint8_t> bytes_;
};

}  // namespace ddf::test
