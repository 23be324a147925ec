// A catalogue that parses keeps every rule, writes back to the same bytes, and has a layout.
#include "lib/model/layout.hpp"
#include "lib/wire/catalogue_codec.hpp"
#include "tests/support/fuzz_input.hpp"
#include "tests/support/layout_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto c = ddf::parse_catalogue(bytes);
  if (!c) {
    FUZZ_CHECK(!c.error().what.empty());
    return 0;
  }
  FUZZ_CHECK(ddf::check_catalogue(*c).has_value());
  const auto again = ddf::write_catalogue(*c);
  FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  const ddf::layout l(*c, 512);
  FUZZ_CHECK(l.segments() >> 48 == 0);
  FUZZ_CHECK(ddf::test::fault(l, *c).empty());
  const std::uint64_t some = std::min<std::uint64_t>(l.blocks(), 3);
  FUZZ_CHECK(ddf::test::fault(l, *c, l.blocks() - some, l.blocks() - 1).empty());
  return 0;
}
