// Any payload is refused or makes a block, and touches nothing outside the block and the base; what is encoded is applied.
#include <algorithm>
#include <memory>

#include "codecs/delta/block.hpp"
#include "codecs/delta/workspace.hpp"
#include "lib/model/prng.hpp"
#include "tests/support/fuzz_input.hpp"

namespace {

using namespace ddf::delta;

struct heap_bytes {   // exactly as long, so that one byte beyond it is seen
  explicit heap_bytes(std::size_t n) : size(n), at(std::make_unique<std::byte[]>(n)) {}
  std::span<std::byte> all() const { return {at.get(), size}; }
  std::size_t size;
  std::unique_ptr<std::byte[]> at;
};

class copied_base final : public base_bytes {   // hands out copies of no more than was asked for
 public:
  explicit copied_base(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  ddf::result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& room) const override {
    FUZZ_CHECK(bytes <= bytes_.size() && offset <= bytes_.size() - bytes);
    const auto part = bytes_.subspan(static_cast<std::size_t>(offset), bytes);
    room = std::vector<std::byte>(part.begin(), part.end());
    return std::span<const std::byte>(room);
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static workspace w;
  ddf::test::fuzz_input in(data, size);
  const std::uint64_t seed = in.u8();
  const std::size_t base_bytes = in.u16(), target_bytes = in.u16();
  const std::uint64_t offset = in.flag() ? in.u16() : in.u64();
  ddf::prng rng(seed);
  const heap_bytes base(base_bytes), target(target_bytes);
  for (auto& b : base.all()) b = static_cast<std::byte>(rng.next() & (seed & 1 ? 0x3f : 0xff));
  const copied_base old(base.all());

  const auto rest = in.bytes(size);
  const heap_bytes payload(rest.size());
  std::copy(rest.begin(), rest.end(), payload.all().begin());
  const auto made = apply_block(w, offset, payload.all(), old, target.all());
  if (!made) FUZZ_CHECK(made.error().code == ddf::errc::integrity);

  // The payload as a target: regions of its own choosing.
  std::vector<region> regions;
  for (std::uint64_t at = 0; at < rest.size();) {
    const std::uint64_t r = rng.next(), bytes = std::min<std::uint64_t>(rest.size() - at, r % 5000 + 1);
    const bool based = (r >> 40 & 3) != 0 && bytes <= base_bytes;
    regions.push_back({at, bytes, based ? (r >> 16 & 0xffff) % (base_bytes - bytes + 1) : region::no_base, static_cast<element>((r >> 50) % (element_last + 1))});
    at += bytes;
  }
  std::vector<std::byte> out;
  FUZZ_CHECK(encode_block(w, 0, payload.all(), regions, old, seed & 2 ? profile::fast : profile::tight, out).has_value());
  const heap_bytes again(rest.size()), sent(out.size());
  std::copy(out.begin(), out.end(), sent.all().begin());
  FUZZ_CHECK(apply_block(w, 0, sent.all(), old, again.all()).has_value());
  FUZZ_CHECK(std::equal(rest.begin(), rest.end(), again.all().begin()));
  return 0;
}
