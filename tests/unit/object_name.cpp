#include "lib/model/object_name.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/slow_match.hpp"

using namespace ddf;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(object_name_)

BOOST_AUTO_TEST_CASE(ordinary_and_odd_names_are_allowed) {
  for (const auto& name : {"a"s, "model.safetensors"s, "-rf"s, ".hidden"s, "with space"s, "a/b/c"s, "..."s, "..a"s, "a\nb"s, "\xc3\xa9t\xc3\xa9"s,
                           "\xf0\x9f\x90\xa7"s, std::string(255, 'x'), "C:\\x"s})
    BOOST_TEST(check_object_name(name).has_value(), name);
}

BOOST_AUTO_TEST_CASE(a_name_that_breaks_a_rule_is_refused_and_the_rule_named) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},          {"/etc/passwd", "empty component"}, {"a/", "empty component"}, {"a//b", "empty component"},
      {".", "'.' or '..'"},      {"..", "'.' or '..'"},              {"../../x", "'.' or '..'"}, {"a/../b", "'.' or '..'"},
      {"a/.", "'.' or '..'"},    {"a\0b"s, "NUL"},                   {"\xff", "UTF-8"},          {std::string(256, 'x'), "longer than 255"}};
  for (const auto& [name, why] : cases) {
    const auto r = check_object_name(name);
    BOOST_REQUIRE(!r.has_value());
    BOOST_TEST((r.error().code == errc::invalid_argument));
    BOOST_TEST(r.error().what.find(why) != std::string::npos, r.error().what);
  }
}

BOOST_AUTO_TEST_CASE(a_path_inside_a_folder_may_be_longer_but_not_its_components) {
  const std::string component(255, 'x');
  std::string path = component;
  while (path.size() + 256 <= part_name_bytes_max) path += "/" + component;
  BOOST_TEST(check_part_name(path).has_value());
  BOOST_TEST(!check_object_name(path).has_value());
  BOOST_TEST(!check_part_name(component + "x").has_value());
  BOOST_TEST(!check_part_name(path + std::string(256, '/')).has_value());
}

BOOST_AUTO_TEST_CASE(utf8_has_no_overlong_forms_surrogates_or_values_beyond_unicode) {
  for (const auto& good : {""s, "\x7f"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s, "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s,
                           "\xf4\x8f\xbf\xbf"s})
    BOOST_TEST(is_utf8(good));
  for (const auto& bad : {"\x80"s, "\xc0\x80"s, "\xc1\xbf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xed\xbf\xbf"s, "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s,
                          "\xff"s, "\xc2"s, "\xe2\x82"s, "\xf0\x9f\x90"s, "a\xc2"s, "\xc2\x41"s})
    BOOST_TEST(!is_utf8(bad), printable(bad));
}

// Every Unicode scalar value, encoded by the definition, is valid; and every surrogate is not.
BOOST_AUTO_TEST_CASE(every_code_point_is_judged_rightly) {
  for (std::uint32_t c = 0; c <= 0x10ffff; ++c) {
    std::string s;
    const auto put = [&](std::uint32_t b) { s += static_cast<char>(b); };
    if (c < 0x80) put(c);
    else if (c < 0x800) put(0xc0 | c >> 6), put(0x80 | (c & 63));
    else if (c < 0x10000) put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    else put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    if (is_utf8(s) != (c < 0xd800 || c > 0xdfff)) BOOST_FAIL("code point " << c);
  }
}

BOOST_AUTO_TEST_CASE(what_a_terminal_would_obey_is_printed_as_hex) {
  BOOST_TEST(printable("a\x1b[31mb") == "a\\x1b[31mb");
  BOOST_TEST(printable("\n\t\x7f") == "\\x0a\\x09\\x7f");
  BOOST_TEST(printable("\xff\xc3\xa9") == "\\xff\xc3\xa9");
  BOOST_TEST(printable("\xc2\x9b"
                       "2J") == "\\xc2\\x9b2J");   // U+009B: the one-character form of ESC [
}

BOOST_AUTO_TEST_CASE(patterns_match_as_the_help_says) {
  BOOST_TEST(name_matches("model.bin", "*.bin"));
  BOOST_TEST(!name_matches("a/model.bin", "*.bin"));
  BOOST_TEST(name_matches("a/model.bin", "**.bin"));
  BOOST_TEST(name_matches("a/b/model.bin", "a/**/model.*"));
  BOOST_TEST(name_matches("", ""));
  BOOST_TEST(name_matches("", "**"));
  BOOST_TEST(!name_matches("x", ""));
  BOOST_TEST(!name_matches("a/b", "a?b"));
  BOOST_TEST(name_matches("a*b", "a*b"));
}

BOOST_AUTO_TEST_CASE(a_question_mark_is_one_character_not_one_byte) {
  BOOST_TEST(name_matches("\xc3\xa9", "?"));
  BOOST_TEST(!name_matches("\xc3\xa9", "??"));
  BOOST_TEST(!name_matches("\xe2\x82\xac"
                           "a",
                           "*??a"));
}

// Every name and pattern of up to 5 letters over small alphabets.
BOOST_AUTO_TEST_CASE(every_short_pattern_agrees_with_the_definition) {
  const auto all = [](std::string_view letters, std::size_t length) {
    std::vector<std::string> out{""};
    for (std::size_t at = 0; at < out.size(); ++at)
      if (out[at].size() < length)
        for (const char c : letters) out.push_back(out[at] + c);
    return out;
  };
  const auto names = all("ab/", 4), patterns = all("ab/*?", 4);
  for (const auto& name : names)
    for (const auto& pattern : patterns)
      if (name_matches(name, pattern) != test::slow_match(name, pattern)) BOOST_FAIL("'" << name << "' and '" << pattern << "'");
}

BOOST_AUTO_TEST_CASE(a_hostile_pattern_takes_no_exponential_time) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "**a*";
  BOOST_TEST(!name_matches(std::string(255, 'a'), pattern + "b"));
}

BOOST_AUTO_TEST_SUITE_END()
