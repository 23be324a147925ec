// What parses writes back to the same bytes; with the check as it comes, and made right so that what stands behind it is reached.
#include "lib/wire/messages.hpp"
#include "tests/support/fuzz_input.hpp"
#include "tests/support/sealed.hpp"

static void check(std::span<const std::byte> datagram) {
  if (const auto m = ddf::parse_message(datagram)) {
    const auto again = ddf::write_message(*m, datagram.size());
    FUZZ_CHECK(std::equal(again.begin(), again.end(), datagram.begin(), datagram.end()));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  ddf::test::seal(sealed);
  check(sealed);
  return 0;
}
