// Any text is an endpoint that prints and reads back, or an error with words; names match or not in bounded time.
#include "lib/model/endpoint.hpp"
#include "lib/model/object_name.hpp"
#include "tests/support/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 600));
  if (const auto e = ddf::parse_endpoint(text, 7700)) {
    const auto again = ddf::parse_endpoint(ddf::to_string(*e), 1);
    FUZZ_CHECK(again.has_value() && *again == *e);
  } else {
    FUZZ_CHECK(!e.error().what.empty());
  }
  FUZZ_CHECK(ddf::is_utf8(ddf::printable(text)));
  if (ddf::check_object_name(text).has_value()) FUZZ_CHECK(ddf::is_utf8(text) && text[0] != '/' && !text.starts_with("../"));
  const auto half = text.size() / 2;
  (void)ddf::name_matches(std::string_view(text).substr(0, half), std::string_view(text).substr(half));
  FUZZ_CHECK(ddf::name_matches(text, "**"));
  return 0;
}
