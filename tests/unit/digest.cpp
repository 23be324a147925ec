#include "codecs/digest.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace ddf;

BOOST_AUTO_TEST_SUITE(digest_)

static std::string hex(const digest& d) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (const std::byte b : d.bytes) s += digits[std::to_integer<int>(b) >> 4], s += digits[std::to_integer<int>(b) & 15];
  return s;
}

// The buffer of xxHash's own sanity tests (tests/sanity_test.c): bytes of a 64-bit generator's high byte.
static std::vector<std::byte> sanity_buffer(std::size_t n) {
  std::vector<std::byte> out(n);
  std::uint64_t g = 2654435761u;
  for (auto& b : out) {
    b = static_cast<std::byte>(g >> 56);
    g *= 11400714785074694797ull;
  }
  return out;
}

// Source: xxHash v0.8.3, cli/xsum_sanity_check.c, XSUM_XXH128_testdata with seed 0; here the high word comes first.
BOOST_AUTO_TEST_CASE(the_official_vectors_of_xxh3_128) {
  const std::pair<std::size_t, const char*> vectors[] = {
      {0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},   {6, "082afe0b8162d12a3e7039bdda43cfc6"},
      {12, "6e3efd8fc7802b18061a192713f69ad9"},   {24, "0ce966e4678d37611e7044d28b1b901d"},  {48, "a002ac4e5478227ef942219aed80f67b"},
      {81, "4952f58181ab00425e8bafb9f95fb803"},   {222, "337e09641b948717f1aebd597cec6b3a"}, {403, "1b6de21e332dd73dcdeb804d65c6dea4"},
      {512, "18d2d110dcc9bca1617e49599013cb6b"},  {2048, "f736557fd47073a5dd59e2c3a5f038e0"}, {2240, "ccb134fbfa7ce49d6e73a90539cf2948"},
      {2367, "e89c0f6ff369b427cb37aeb9e5d361ed"}};
  const auto buffer = sanity_buffer(2367);
  for (const auto& [size, expected] : vectors) BOOST_TEST(hex(digest_of(std::span(buffer).first(size))) == expected, "of " << size << " bytes: " << hex(digest_of(std::span(buffer).first(size))));
}

BOOST_AUTO_TEST_CASE(a_stream_equals_one_shot_at_every_split) {
  const auto buffer = sanity_buffer(1100);   // beyond the 1,024-byte block and the 256-byte buffer of the algorithm
  const digest whole = digest_of(buffer);
  for (std::size_t split = 0; split <= buffer.size(); ++split) {
    digest_stream s;
    s.update(std::span(buffer).first(split));
    s.update(std::span(buffer).subspan(split));
    if (s.finish() != whole) BOOST_FAIL("split at " << split);
  }
}

BOOST_AUTO_TEST_CASE(a_stream_can_be_used_again_and_moved) {
  const auto buffer = sanity_buffer(300);
  digest_stream s;
  s.update(buffer);
  s.reset();
  s.update(std::span(buffer).first(10));
  digest_stream moved = std::move(s);
  moved.update(std::span(buffer).subspan(10));
  BOOST_TEST((moved.finish() == digest_of(buffer)));
  BOOST_TEST((moved.finish() == digest_of(buffer)));
}

BOOST_AUTO_TEST_CASE(the_root_depends_on_name_size_and_every_block_in_order) {
  const digest a = digest_of({}), b = digest_of(sanity_buffer(1));
  const std::vector<digest> ab{a, b}, ba{b, a}, only{a};
  const digest root = root_digest("name", 100, ab);
  BOOST_TEST((root == root_digest("name", 100, ab)));
  BOOST_TEST((root != root_digest("nam", 100, ab)));
  BOOST_TEST((root != root_digest("name", 101, ab)));
  BOOST_TEST((root != root_digest("name", 100, ba)));
  BOOST_TEST((root != root_digest("name", 100, only)));
  // A name that ends as a digest begins is another object all the same.
  BOOST_TEST((root_digest("x", 0, only) != root_digest("x" + std::string(reinterpret_cast<const char*>(a.bytes.data()), 16), 0, {})));
}

// Pinned: a second implementation must come to the same. length(32) size(64) name digests, hashed.
BOOST_AUTO_TEST_CASE(the_root_is_as_the_protocol_says) {
  std::vector<std::byte> bytes;
  for (const unsigned v : {0u, 0u, 0u, 1u, 0u, 0u, 0u, 0u, 0u, 0u, 1u, 2u, unsigned('f')}) bytes.push_back(static_cast<std::byte>(v));
  const digest block = digest_of(sanity_buffer(258));
  bytes.insert(bytes.end(), block.bytes.begin(), block.bytes.end());
  BOOST_TEST((root_digest("f", 258, std::vector{block}) == digest_of(bytes)));
}

BOOST_AUTO_TEST_SUITE_END()
