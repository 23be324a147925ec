#include "codecs/block_digest.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(block_digest_)

static std::vector<std::byte> noise(std::size_t n) {
  prng rng(5);
  std::vector<std::byte> out(n);
  for (auto& b : out) b = static_cast<std::byte>(rng.next() & 0xff);
  return out;
}

BOOST_AUTO_TEST_CASE(a_block_of_one_leaf_has_that_leaf_s_digest) {
  for (const std::size_t n : {std::size_t(1), leaf_bytes - 1, leaf_bytes}) {
    const auto b = noise(n);
    BOOST_TEST((block_digest(b) == digest_of(b)), n << " bytes");
  }
}

// Pinned: a second implementation must come to the same.
BOOST_AUTO_TEST_CASE(a_larger_block_has_the_digest_of_its_leaves_digests) {
  const auto b = noise(2 * leaf_bytes + 1);
  std::vector<std::byte> leaves;
  for (const auto& [first, size] : {std::pair(std::size_t(0), leaf_bytes), std::pair(leaf_bytes, leaf_bytes), std::pair(2 * leaf_bytes, std::size_t(1))}) {
    const digest d = digest_of(std::span(b).subspan(first, size));
    leaves.insert(leaves.end(), d.bytes.begin(), d.bytes.end());
  }
  BOOST_TEST((block_digest(b) == digest_of(leaves)));
}

BOOST_AUTO_TEST_CASE(a_block_that_passes_in_order_needs_no_reading) {
  const auto b = noise(5 * leaf_bytes + 77);
  block_digester d;
  for (std::size_t at = 0; at < b.size(); at += 1456) d.pass(3, b.size(), at, std::span(b).subspan(at, std::min<std::size_t>(1456, b.size() - at)));
  const leaf_digests leaves = d.take(3, b.size());
  BOOST_REQUIRE(leaves.complete());
  BOOST_TEST((leaves.block() == block_digest(b)));
}

BOOST_AUTO_TEST_CASE(a_gap_costs_the_leaf_it_lies_in) {
  const auto b = noise(4 * leaf_bytes);
  block_digester d;
  const auto pass = [&](std::size_t at) { d.pass(0, b.size(), at, std::span(b).subspan(at, std::min<std::size_t>(1000, b.size() - at))); };
  const std::size_t lost = 20'000;   // in the second leaf
  for (std::size_t at = 0; at < b.size(); at += 1000)
    if (at != lost) pass(at);
  pass(lost);   // the repair comes last, and does not make the leaf known: it has to be read
  const leaf_digests leaves = d.take(0, b.size());
  BOOST_TEST(leaves.known(0));
  BOOST_TEST(!leaves.known(1));
  BOOST_TEST(leaves.known(2));
  BOOST_TEST(leaves.known(3));
  const auto missing = leaves.missing_from(0);
  BOOST_TEST(missing.offset == leaf_bytes);
  BOOST_TEST(missing.bytes == leaf_bytes);
  BOOST_TEST(leaves.missing_from(missing.offset + missing.bytes).bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_repair_behind_does_not_interrupt_what_goes_on) {
  const auto b = noise(3 * leaf_bytes);
  block_digester d;
  std::size_t at = 0;
  for (; at < 2 * leaf_bytes; at += 512) {
    d.pass(7, b.size(), at, std::span(b).subspan(at, 512));
    d.pass(2, b.size(), 0, std::span(b).first(512));   // of an earlier block
  }
  for (; at < b.size(); at += 512) d.pass(7, b.size(), at, std::span(b).subspan(at, 512));
  BOOST_TEST(d.take(7, b.size()).complete());
  BOOST_TEST(!d.take(2, b.size()).complete());
}

BOOST_AUTO_TEST_CASE(what_was_taken_is_forgotten) {
  const auto b = noise(100);
  block_digester d;
  d.pass(0, b.size(), 0, b);
  BOOST_TEST(d.take(0, b.size()).complete());
  BOOST_TEST(!d.take(0, b.size()).complete());
  d.pass(0, b.size(), 0, b);   // it failed, and is sent again: read back, which is what counts then
  BOOST_TEST(!d.take(0, b.size()).complete());
}

BOOST_AUTO_TEST_SUITE_END()
