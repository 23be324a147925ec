// A DATA header that parses writes back to the same bytes; unwrapping stays within half the space.
#include "lib/wire/data_header.hpp"
#include "tests/support/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)ddf::type_of(bytes);
  if (const auto h = ddf::parse_data_header(bytes)) {
    std::array<std::byte, ddf::data_header::wire_size> again;
    ddf::write_data_header(*h, again);
    FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
    FUZZ_CHECK(h->segment >> 48 == 0);
  }
  ddf::test::fuzz_input in(data, size);
  const std::uint32_t low = in.u32();
  const std::uint64_t near = in.u64() >> 1;
  FUZZ_CHECK(static_cast<std::uint32_t>(ddf::unwrap(low, near)) == low);
  return 0;
}
