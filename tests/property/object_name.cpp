#include "lib/model/object_name.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/slow_match.hpp"

using namespace ddf;

RC_BOOST_PROP(name_matches_agrees_with_its_definition, ()) {
  const auto text = [](const std::vector<std::string>& pieces, int most) {
    std::string s;
    const auto n = *rc::gen::inRange(0, most);
    for (int i = 0; i < n; ++i) s += *rc::gen::elementOf(pieces);
    return s;
  };
  const auto name = text({"a", "b", "/", "\xc3\xa9", "\xe2\x82\xac", "\xff"}, 12);
  const auto pattern = text({"a", "b", "/", "\xc3\xa9", "*", "**", "?"}, 9);
  RC_ASSERT(name_matches(name, pattern) == test::slow_match(name, pattern));
}

RC_BOOST_PROP(printable_text_is_utf8_without_controls, (const std::string& text)) {
  const auto out = printable(text);
  RC_ASSERT(is_utf8(out));
  for (const char c : out) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}
