// Head and index of a delta: what is written reads back, and nothing else is taken for one.
#include "codecs/delta/stream.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "codecs/delta/varint64.hpp"
#include "codecs/digest.hpp"
#include "lib/model/manifest.hpp"
#include "lib/model/prng.hpp"
#include "lib/wire/cursor.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/golden.hpp"

namespace {

using namespace ddf;
using namespace ddf::delta;
using kind = stream_row::kind;
using bytes = std::vector<std::byte>;

digest numbered(std::uint64_t n) {
  digest d;
  for (std::size_t i = 0; i < d.bytes.size(); ++i) d.bytes[i] = static_cast<std::byte>(n >> (i % 8 * 8) ^ i);
  return d;
}

std::vector<digest> base_of(std::size_t rows) {
  std::vector<digest> out;
  for (std::size_t i = 0; i < rows; ++i) out.push_back(numbered(1000 + i));
  return out;
}

stream_row keep(const std::vector<digest>& base, std::uint64_t row) { return {kind::keep, row, 0, 0, base[row]}; }
stream_row patch(std::uint64_t payload, std::uint64_t result) { return {kind::patch, 0, 0, payload, numbered(result)}; }
stream_row whole(std::uint64_t result) { return {kind::whole, 0, 0, 0, numbered(result)}; }

stream_head head() { return {numbered(1), numbered(2), 1 << 20, (1 << 20) + 5, 0}; }

struct sample {
  std::vector<digest> base;
  stream_head h = head();
  std::vector<stream_row> rows;
  bytes front;   // head and index
  std::uint64_t stream_bytes = 0;
};

sample sampled(std::vector<digest> base, std::vector<stream_row> rows) {
  sample s;
  s.base = std::move(base);
  s.rows = std::move(rows);
  s.front = write_stream_head(s.h, s.rows);
  s.stream_bytes = s.front.size();
  for (const stream_row& r : s.rows) s.stream_bytes += r.bytes;
  return s;
}

sample random_sample(std::uint64_t seed) {
  prng random(seed);
  auto base = base_of(random.next() % 20);
  std::vector<stream_row> rows;
  const std::size_t n = random.next() % 40;
  for (std::uint64_t at = 0; rows.size() < n; ++at) {
    const auto how = random.next() % 8;
    if (how < 4 && !base.empty()) rows.push_back(keep(base, how == 0 ? random.next() % base.size() : at % base.size()));
    else if (how < 6) rows.push_back(patch(random.next() >> (random.next() % 40 + 24), at));
    else rows.push_back(whole(at));
  }
  return sampled(std::move(base), std::move(rows));
}

sample one_of_each() {
  const auto base = base_of(9);
  return sampled(base, {keep(base, 0), keep(base, 1), patch(300, 70), patch(0, 71), keep(base, 4), keep(base, 2), keep(base, 3), whole(72), whole(73), keep(base, 4), patch(5, 74)});
}

bool same(const stream_row& a, const stream_row& b) { return a.by == b.by && a.base_row == b.base_row && a.offset == b.offset && a.bytes == b.bytes && a.result == b.result; }

result<std::vector<stream_row>> parse(std::span<const std::byte> front, const sample& s) {
  const auto h = parse_stream_head(front.first(std::min(front.size(), stream_head::wire_size)));
  if (!h) return tl::unexpected(h.error());
  return parse_stream_index(*h, front.subspan(stream_head::wire_size), s.base, s.rows.size(), s.stream_bytes);
}

// An index of groups as they are given.
bytes index_of(std::initializer_list<std::uint64_t> numbers, std::size_t digests = 0) {
  bytes out;
  for (const auto n : numbers) put_varint64(out, n);
  for (std::size_t i = 0; i < digests; ++i) out.insert(out.end(), digest::size, std::byte{1});
  return out;
}

result<std::vector<stream_row>> parse_index(const bytes& index, std::size_t base, std::uint64_t rows, std::uint64_t payload = 0) {
  stream_head h = head();
  h.index_bytes = static_cast<std::uint32_t>(index.size());
  return parse_stream_index(h, index, base_of(base), rows, stream_head::wire_size + index.size() + payload);
}

bool malformed(const result<std::vector<stream_row>>& r) { return !r && r.error().code == errc::integrity; }

}  // namespace

BOOST_AUTO_TEST_SUITE(delta_stream)

BOOST_AUTO_TEST_CASE(random_rows_read_back) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const sample s = random_sample(seed);
    const auto h = parse_stream_head(s.front);
    BOOST_REQUIRE(h.has_value());
    BOOST_TEST((h->target_root == s.h.target_root && h->base_root == s.h.base_root && h->target_bytes == s.h.target_bytes && h->base_bytes == s.h.base_bytes));
    BOOST_TEST(h->index_bytes == s.front.size() - stream_head::wire_size);
    BOOST_TEST(h->index_bytes <= index_bytes_max(s.rows.size()));
    const auto rows = parse(s.front, s);
    BOOST_REQUIRE_MESSAGE(rows.has_value(), "seed " << seed << ": " << rows.error().what);
    BOOST_REQUIRE_MESSAGE(std::ranges::equal(*rows, s.rows, same), "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(payloads_follow_one_another_behind_the_index) {
  const sample s = one_of_each();
  const std::uint64_t first = s.front.size();
  BOOST_TEST(s.rows[2].offset == first);
  BOOST_TEST(s.rows[3].offset == first + 300);
  BOOST_TEST(s.rows[10].offset == first + 300);
  BOOST_TEST(s.stream_bytes == first + 305);
}

BOOST_AUTO_TEST_CASE(a_stream_has_the_bytes_of_its_golden_file) {
  const auto path = test::golden_folder() / "delta_stream.hex";
  if (test::writes_golden()) test::write_golden(path, "blocks kept, patched and left whole, in every order", one_of_each().front);
  BOOST_TEST((test::read_golden(path).bytes == one_of_each().front));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const sample s = one_of_each();
  for (std::size_t n = 0; n < stream_head::wire_size; ++n) BOOST_REQUIRE(!parse_stream_head(std::span(s.front).first(n)).has_value());
  for (std::size_t n = stream_head::wire_size; n < s.front.size(); ++n) BOOST_REQUIRE(malformed(parse(std::span(s.front).first(n), s)));
  bytes longer = s.front;
  longer.push_back(std::byte{0});
  BOOST_TEST(malformed(parse(longer, s)));
}

BOOST_AUTO_TEST_CASE(every_value_of_one_byte_is_refused_or_writes_back_to_itself) {
  for (const sample& s : {one_of_each(), random_sample(3), random_sample(8)})
    for (std::size_t i = 0; i < s.front.size(); ++i)
      for (unsigned v = 0; v < 256; ++v) {
        bytes changed = s.front;
        changed[i] = static_cast<std::byte>(v);
        auto h = parse_stream_head(changed);
        if (!h || h->index_bytes != s.h.index_bytes) continue;   // who reads it takes another number of bytes as the index
        auto rows = parse(changed, s);
        if (rows) BOOST_REQUIRE_MESSAGE(write_stream_head(*h, *rows) == changed, "byte " << i << " = " << v);
        else BOOST_REQUIRE((rows.error().code == errc::integrity || rows.error().code == errc::stale_base));
      }
}

BOOST_AUTO_TEST_CASE(a_group_cut_in_two_is_refused) {
  BOOST_TEST(parse_index(index_of({4 << 2, 0}), 9, 4).has_value());
  BOOST_TEST(malformed(parse_index(index_of({1 << 2, 0, 3 << 2, 0}), 9, 4)));
  BOOST_TEST(parse_index(index_of({1 << 2, 0, 3 << 2, zigzag(2)}), 9, 4).has_value());
  bytes two = index_of({1 << 2 | 2}, 1);
  const bytes one = two;
  two.insert(two.end(), one.begin(), one.end());
  BOOST_TEST(malformed(parse_index(two, 0, 2)));
  BOOST_TEST(parse_index(index_of({2 << 2 | 2}, 2), 0, 2).has_value());
}

BOOST_AUTO_TEST_CASE(counts_beyond_the_blocks_are_refused_and_take_no_memory) {
  for (const std::uint64_t count : {std::uint64_t{5}, std::uint64_t{1} << 32, ~std::uint64_t{0} >> 2})
    for (const std::uint64_t k : {0, 1, 2}) {
      const bytes index = index_of({count << 2 | k, 0}, 5);
      const auto base = base_of(9);
      stream_head h = head();
      h.index_bytes = static_cast<std::uint32_t>(index.size());
      const std::size_t before = test::bytes_allocated();
      const bool refused = malformed(parse_stream_index(h, index, base, 4, stream_head::wire_size + index.size()));
      BOOST_TEST(test::bytes_allocated() - before < 4096u);
      BOOST_TEST(refused);
    }
  BOOST_TEST(malformed(parse_index(index_of({3 << 2, 0}), 9, 4)));       // one block has no line
  BOOST_TEST(malformed(parse_index(index_of({0 << 2 | 2}), 9, 0)));      // a group of nothing
  BOOST_TEST(malformed(parse_index(index_of({1 << 2 | 3}, 1), 9, 1)));   // a kind that is none
  BOOST_TEST(parse_index({}, 9, 0).has_value());
  BOOST_TEST(malformed(parse_index({}, 9, 1)));
}

BOOST_AUTO_TEST_CASE(payloads_fill_the_stream_exactly) {
  const bytes index = index_of({1 << 2 | 1, 100}, 1);
  BOOST_TEST(parse_index(index, 0, 1, 100).has_value());
  BOOST_TEST(malformed(parse_index(index, 0, 1, 99)));
  BOOST_TEST(malformed(parse_index(index, 0, 1, 101)));
  BOOST_TEST(malformed(parse_index(index_of({1 << 2 | 1, ~std::uint64_t{0}}, 1), 0, 1, 100)));
  bytes wraps = index_of({2 << 2 | 1, 50}, 1);   // two lengths whose sum is 100 again
  const bytes second = index_of({50 - 100 - 50 + 100 + ~std::uint64_t{0} - 49}, 1);
  wraps.insert(wraps.end(), second.begin(), second.end());
  BOOST_TEST(malformed(parse_index(wraps, 0, 2, 100)));
}

BOOST_AUTO_TEST_CASE(keeping_blocks_that_the_base_has_not_is_a_stale_base) {
  const auto stale = [](const bytes& index, std::size_t base, std::uint64_t rows) {
    const auto r = parse_index(index, base, rows);
    return !r && r.error().code == errc::stale_base && r.error().what.find("has not") != std::string::npos;
  };
  BOOST_TEST(parse_index(index_of({4 << 2, 0}), 4, 4).has_value());
  BOOST_TEST(stale(index_of({4 << 2, 0}), 3, 4));
  BOOST_TEST(stale(index_of({1 << 2, zigzag(4)}), 4, 1));
  BOOST_TEST(stale(index_of({1 << 2, zigzag(std::uint64_t{0} - 1)}), 4, 1));
  BOOST_TEST(stale(index_of({2 << 2, zigzag(std::uint64_t{0} - 1)}), 4, 2));   // the second would be block 0
  BOOST_TEST(stale(index_of({1 << 2, 0}), 0, 1));
}

BOOST_AUTO_TEST_CASE(an_identical_object_of_256_mib_takes_less_than_256_bytes) {
  const auto base = base_of((256 << 20) / block_bytes_for(256 << 20));
  std::vector<stream_row> rows;
  for (std::uint64_t i = 0; i < base.size(); ++i) rows.push_back(keep(base, i));
  BOOST_TEST(sampled(base, rows).stream_bytes < 256u);
}

BOOST_AUTO_TEST_CASE(numbers_are_taken_in_their_shortest_form_only) {
  BOOST_TEST(malformed(parse_index({std::byte{0x84}, std::byte{0}, std::byte{0}}, 4, 1)));
  BOOST_TEST(malformed(parse_index({std::byte{4}, std::byte{0x80}, std::byte{0}}, 4, 1)));
}

BOOST_AUTO_TEST_SUITE_END()
