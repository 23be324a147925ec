#include "codecs/block_digest.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include <algorithm>
#include <vector>

#include "lib/model/prng.hpp"

using namespace ddf;

// Pieces of several blocks in any order, with repetitions: what is known of a leaf is right, and reading the rest gives the digest.
RC_BOOST_PROP(however_a_block_arrives_its_digest_is_the_same, (std::uint64_t seed)) {
  prng rng(seed);
  const std::size_t blocks = 1 + rng.next() % 3;
  std::vector<std::vector<std::byte>> content(blocks);
  for (auto& b : content) {
    b.resize(1 + rng.next() % (5 * leaf_bytes));
    for (auto& x : b) x = static_cast<std::byte>(rng.next() & 0xff);
  }
  struct piece {
    std::size_t block, offset, bytes;
  };
  std::vector<piece> pieces;
  const std::size_t size = 500 + rng.next() % 9000;
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t at = 0; at < content[b].size(); at += size) pieces.push_back({b, at, std::min(size, content[b].size() - at)});
  for (std::size_t i = rng.next() % 4 * pieces.size() / 8; i-- != 0;) std::swap(pieces[rng.next() % pieces.size()], pieces[rng.next() % pieces.size()]);
  block_digester d;
  for (const piece& p : pieces) d.pass(p.block, content[p.block].size(), p.offset, std::span(content[p.block]).subspan(p.offset, p.bytes));
  for (std::size_t b = 0; b < blocks; ++b) {
    leaf_digests leaves = d.take(b, content[b].size());
    std::uint64_t read = 0;
    for (auto m = leaves.missing_from(0); m.bytes != 0; m = leaves.missing_from(m.offset + m.bytes)) {
      leaves.read(m, std::span(content[b]).subspan(m.offset, m.bytes));
      read += m.bytes;
    }
    RC_ASSERT(read <= content[b].size());
    RC_ASSERT(leaves.complete());
    RC_ASSERT(leaves.block() == block_digest(content[b]));
  }
}
