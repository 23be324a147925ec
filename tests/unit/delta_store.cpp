// A delta from end to end: made, written as a stream, applied while it arrives.
#include <array>
#include <boost/test/data/test_case.hpp>

#include "tests/unit/delta_fixture.hpp"

namespace ddf::test {

struct pair_case {
  const char* what;
  content from, to;
  double share_max;   // of the target, beside 20 bytes a block and 2 KiB
  friend std::ostream& operator<<(std::ostream& out, const pair_case& c) { return out << c.what; }
};

std::vector<pair_case> pairs() {
  const auto m = model();
  const auto s = step(m);
  const std::string f = safetensors(m);
  std::vector<pair_case> out{
      {"nothing changed", file(f), file(f), 0},
      {"a sparse step", file(f), file(safetensors(s)), 0.02},
      {"a longer header", file(f), file(safetensors(m, 1001)), 0.001},
      {"a longer header and a step", file(f), file(safetensors(s, 3)), 0.02},
      {"a shorter header", file(safetensors(m, 500)), file(f), 0.001},
      {"tensors in another order", file(f), file(safetensors(subset(m, {5, 0, 4, 3, 2, 1}))), 0.001},
      {"tensors moved between shards", shards({{"1.safetensors", safetensors(subset(m, {0, 1, 2}))}, {"2.safetensors", safetensors(subset(m, {3, 4, 5}))}}),
       shards({{"1.safetensors", safetensors(subset(s, {0, 1}))}, {"2.safetensors", safetensors(subset(s, {2, 4}))}, {"3.safetensors", safetensors(subset(s, {3, 5}))}}), 0.02},
      {"one file split in shards", file(f), shards({{"1.safetensors", safetensors(subset(m, {0, 1, 2}))}, {"2.safetensors", safetensors(subset(m, {3, 4, 5}))}}), 0.001},
      {"files removed and added", shards({{"a", pattern(100'000, 1)}, {"b", pattern(70'001, 2)}, {"c", pattern(65'536, 3)}}),
       shards({{"a", pattern(100'000, 1)}, {"b2", pattern(3'000, 9)}, {"c", pattern(65'536, 3)}, {"d", ""}}), 0.05},
      {"an untyped file with bytes put in", file_content("f", pattern(500'000, 4)), file_content("f", pattern(500'000, 4).insert(100'001, "seventeen bytes  ")), 0.001},
      {"an untyped file cut", file_content("f", pattern(500'000, 4)), file_content("f", pattern(500'000, 4).substr(0, 333'333)), 0.001},
      {"all of it new", file_content("f", pattern(300'000, 4)), file_content("f", pattern(300'001, 5)), 1.0001},
      {"from nothing", file_content("f", ""), file_content("f", pattern(100'000)), 1.0001},
      {"to nothing", file_content("f", pattern(100'000)), file_content("f", ""), 0},
      {"one byte", file_content("f", "a"), file_content("f", "b"), 2},
  };
  // The bits count, not what they mean: zeros of both signs, NaNs with payloads, infinities.
  std::string bits(1 << 17, '\0'), others = bits;
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    const std::uint16_t a = static_cast<std::uint16_t>(i), b = static_cast<std::uint16_t>(i % 3 == 0 ? i ^ 0x8000 : i % 5 == 0 ? i ^ 1 : i);
    std::memcpy(bits.data() + 2 * i, &a, 2), std::memcpy(others.data() + 2 * i, &b, 2);
  }
  for (const char* dtype : {"BF16", "F16"})
    out.push_back({"every pattern of 16 bits", file(safetensors({{"t", dtype, {1 << 16}, bits}})), file(safetensors({{"t", dtype, {1 << 16}, others}})), 0.4});
  std::string zeros(100'000, '\0'), negative = zeros;
  for (std::size_t i = 3; i < negative.size(); i += 4000) negative[i] = '\x80';
  out.push_back({"-0.0 for 0.0", file(safetensors({{"t", "F32", {25'000}, zeros}})), file(safetensors({{"t", "F32", {25'000}, negative}})), 0.01});
  for (const std::size_t odd : {1, 2, 3, 5, 7, 65'535, 65'537, 131'071}) out.push_back({"odd sizes", file_content("f", pattern(odd + 1, 2)), file_content("f", stepped(pattern(odd, 2), 3)), 1.001});
  return out;
}

}  // namespace ddf::test

using namespace ddf;
using namespace ddf::test;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(delta_store)

BOOST_DATA_TEST_CASE(every_pair_comes_out_bit_for_bit, bdata::make(pairs()), c) {
  for (const delta::profile p : {delta::profile::tight, delta::profile::fast})
    for (const unsigned threads : {1u, 2u})
      for (const bool known : {false, true}) {
        delta_options how;
        how.profile = p;
        how.threads = threads;
        const made m = make(c.from, c.to, how, true, known);
        const double most = c.share_max * static_cast<double>(c.to.description.size()) + 20.0 * static_cast<double>(c.to.description.blocks()) + 2048;
        BOOST_TEST(static_cast<double>(m.stream.size()) <= most * (p == delta::profile::fast ? 2 : 1));
        check_applies(c.from, c.to, m.stream, all_rows(c.to), threads);
      }
}

BOOST_AUTO_TEST_CASE(the_stream_is_the_same_however_many_threads_made_it) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  delta_options one, four;
  one.threads = 1, four.threads = 4;
  BOOST_TEST((make(from, to, one).stream == make(from, to, four).stream));
}

BOOST_AUTO_TEST_CASE(an_identical_object_takes_less_than_256_bytes) {
  const content c = file(safetensors(model()));
  BOOST_TEST(make(c, c).stream.size() < 256u);
  BOOST_TEST(make(c, c, {}, false).stream.size() < 256u);
}

BOOST_AUTO_TEST_CASE(the_stream_is_read_in_any_pieces) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  const delta_object o = stream_of(m.delta, m.table.root, to.description.size(), {});
  BOOST_REQUIRE(o.bytes == m.stream.size());
  prng random(1);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t at = random.next() % (o.bytes + 1), n = random.next() % (o.bytes - at + 1);
    byte_vector piece(n);
    DDF_REQUIRE_OK(o.source->read(0, at, piece));
    BOOST_REQUIRE(std::equal(piece.begin(), piece.end(), m.stream.begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

BOOST_AUTO_TEST_CASE(a_base_of_digests_only_keeps_blocks_or_leaves_them_whole) {
  const content from = file_content("f", pattern(10 * 65'536 + 17, 1));
  content to = from;
  to.parts[0][3 * 65'536 + 5] ^= 1;
  to.parts[0][10 * 65'536 + 16] ^= 1;
  const made m = make(from, to, {}, false);
  range_set kept;
  for (std::size_t i = 0; i < m.delta.rows.size(); ++i) {
    BOOST_TEST((m.delta.rows[i].by == (i == 3 || i == 10 ? kind::whole : kind::keep)));
    if (m.delta.rows[i].by == kind::keep) kept.insert(i, i + 1);
  }
  BOOST_TEST(m.stream.size() < 200u);
  BOOST_TEST(m.delta.costs(to.description)[3] > 65'536u);
  check_applies(from, to, m.stream, kept);
}

BOOST_AUTO_TEST_CASE(blocks_that_moved_are_kept_by_their_digests) {
  const std::string a = pattern(65'536, 1), b = pattern(65'536, 2), c = pattern(65'536, 3);
  const content from = file_content("f", a + b + c), to = file_content("f", c + a + a + b);
  const made m = make(from, to, {}, false);
  for (const auto& row : m.delta.rows) BOOST_TEST((row.by == kind::keep));
  BOOST_TEST(m.stream.size() < 100u);
  check_applies(from, to, m.stream, all_rows(to));
}

BOOST_AUTO_TEST_CASE(only_the_blocks_that_are_said_to_have_changed_are_read) {
  const content from = file_content("f", pattern(20 * 65'536 + 100, 1));
  content to = from;
  for (const std::size_t at : {5 * 65'536 + 7, 6 * 65'536, 20 * 65'536 + 99}) to.parts[0][at] ^= 1;
  range_set changed, blocks;
  changed.insert(5 * 65'536 + 7, 6 * 65'536 + 1);
  changed.insert(20 * 65'536 + 99, 20 * 65'536 + 100);
  blocks.insert(5 * 65'536, 7 * 65'536);
  blocks.insert(20 * 65'536, 20 * 65'536 + 100);
  for (const bool with_bytes : {false, true})
    for (const bool known : {false, true}) {
      counting_source source(to);
      digest_table table;
      if (known) table = digests(to);
      delta_options how;
      how.changed = &changed;
      auto d = make_delta(to.description, source, table, known, base_over(from, with_bytes), how, go_on);
      DDF_REQUIRE_OK(d);
      BOOST_TEST((table.blocks == digests(to).blocks && table.root == digests(to).root));
      const range_set& seen = source.seen();
      if (!with_bytes) BOOST_TEST((seen == (known ? range_set{} : blocks)));
      for (const auto& [first, last] : blocks) BOOST_TEST((seen.contains(first, last) || !with_bytes));
      // To align the two, a glance at where they may have shifted.
      BOOST_TEST(seen.count() <= blocks.count() + to.parts[0].size() / 100, "bytes " << with_bytes << ", digests " << known << ": " << seen.count() << " bytes read");
      if (with_bytes) check_applies(from, to, stream_bytes(*d, to), all_rows(to));
    }
}

BOOST_AUTO_TEST_CASE(a_longer_object_reads_its_tail_and_what_changed_only) {
  const content from = file_content("f", pattern(3 * 65'536 + 100, 1)), to = file_content("f", from.parts[0] + pattern(100'000, 2));
  range_set changed;
  changed.insert(from.parts[0].size(), to.parts[0].size());
  counting_source source(to);
  digest_table table;
  delta_options how;
  how.changed = &changed;
  DDF_REQUIRE_OK(make_delta(to.description, source, table, false, base_over(from, false), how, go_on));
  BOOST_TEST((table.blocks == digests(to).blocks));
  BOOST_TEST(source.seen().front()->first == 3u * 65'536);
}

BOOST_AUTO_TEST_CASE(blocks_left_to_the_whole_are_neither_in_the_stream_nor_written) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  const std::vector<range> whole{{0, 1}, {3, 6}, {to.description.blocks() - 1, to.description.blocks()}};
  range_set rows = all_rows(to);
  std::uint64_t less = 0;
  for (const range& r : whole) {
    rows.erase(r.first, r.last);
    for (std::uint64_t i = r.first; i < r.last; ++i) less += m.delta.rows[i].bytes;
  }
  const byte_vector stream = stream_bytes(m.delta, to, whole);
  BOOST_TEST(stream.size() <= m.stream.size() - less + 16 * 6);
  check_applies(from, to, stream, rows);
  check_applies(from, to, stream_bytes(m.delta, to, {{0, to.description.blocks()}}), {});
}

BOOST_AUTO_TEST_CASE(blocks_whose_base_changed_on_disk_are_never_written) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  content touched = from;
  touched.parts[0][2 * 65'536 + 100] ^= 1;
  delta_base base = base_over(touched);
  base.digests = digests(from);
  const auto sink = std::make_shared<string_sink>(to);
  application a(to, m.stream.size(), base, sink);
  a.arrives_whole(m.stream);
  const auto p = a.end();
  DDF_REQUIRE_OK(p);
  BOOST_TEST(p->rows.count() == to.description.blocks() - 1);
  BOOST_TEST(!p->rows.contains(2));
  check_rows(to, *sink, p->rows);
}

BOOST_AUTO_TEST_CASE(another_base_is_refused_by_name) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  const content other = file(safetensors(step(model(), 99)));
  for (const bool kept_only : {false, true}) {
    const byte_vector stream = kept_only ? make(from, from).stream : m.stream;
    const content& target = kept_only ? from : to;
    const auto sink = std::make_shared<string_sink>(target);
    application a(target, stream.size(), base_over(other), sink);
    a.arrives_whole(stream);
    const auto p = a.end();
    DDF_CHECK_FAILS(p, errc::stale_base);
    BOOST_TEST(p.error().what.find("'w.safetensors'") != std::string::npos);
    BOOST_TEST(p.error().what.find("version 7") != std::string::npos);
    BOOST_TEST(sink->writes == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_base_that_cannot_be_opened_ends_it_before_the_stream_is_whole) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  for (const errc code : {errc::stale_base, errc::io}) {
    application a(to, m.stream.size(), [code]() -> result<delta_base> { return fail(code, "it is gone"); }, std::make_shared<string_sink>(to));
    a.arrives(0, std::span(m.stream).first(4096));
    DDF_CHECK_FAILS(a.end(), code);
  }
}

BOOST_AUTO_TEST_CASE(a_stream_of_another_target_is_refused) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model()))), other = file(safetensors(step(model(), 50)));
  const auto sink = std::make_shared<string_sink>(to);
  const byte_vector stream = make(from, other).stream;
  application a(to, stream.size(), base_over(from), sink);
  a.arrives_whole(stream);
  DDF_CHECK_FAILS(a.end(), errc::integrity);
  BOOST_TEST(sink->writes == 0);
}

// Whatever one byte of the stream is: refused, or every block that counts is right.
BOOST_AUTO_TEST_CASE(a_damaged_stream_never_makes_a_wrong_block) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  prng random(3);
  for (int round = 0; round < 150; ++round) {
    byte_vector damaged = m.stream;
    const std::size_t at = round < 75 ? random.next() % 400 : random.next() % damaged.size();
    damaged[at] ^= static_cast<std::byte>(1 + random.next() % 255);
    const auto sink = std::make_shared<string_sink>(to);
    application a(to, damaged.size(), base_over(from), sink, 1);
    a.arrives_whole(damaged);
    const auto p = a.end();
    BOOST_REQUIRE((p.has_value() || p.error().code == errc::integrity || p.error().code == errc::stale_base));
    check_rows(to, *sink, p ? p->rows : range_set{});
    if (p) BOOST_REQUIRE((p->table.blocks == digests(to).blocks && p->rows.count() + 1 >= to.description.blocks()));
  }
}

BOOST_AUTO_TEST_CASE(an_index_of_impossible_length_takes_no_memory) {
  const content c = file_content("f", pattern(100'000));
  byte_vector stream = make(c, c).stream;
  stream.resize(64 + (32 << 20));
  stream[56] = std::byte{2};   // index bytes: 32 MiB
  stream[57] = stream[58] = stream[59] = std::byte{0};
  application a(c, stream.size(), base_over(c), std::make_shared<string_sink>(c), 1);
  a.arrives_whole(stream);
  DDF_CHECK_FAILS(a.end(), errc::integrity);
  BOOST_TEST(a.allocated < 1u << 20);
}

BOOST_DATA_TEST_CASE(pieces_arrive_in_any_order_and_damaged_first, bdata::xrange(150), seed) {
  static const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  static const made m = make(from, to);
  prng random(static_cast<std::uint64_t>(seed));
  struct piece {
    std::uint64_t at, size;
    bool damaged;
  };
  std::vector<piece> pieces;
  const bool front_damaged = seed % 3 == 0;
  for (std::uint64_t at = 0; at < m.stream.size();) {
    const std::uint64_t n = std::min<std::uint64_t>(m.stream.size() - at, 1 + random.next() % (seed % 2 ? 200 : 9000));
    pieces.push_back({at, n, random.next() % 4 == 0 || (front_damaged && at < 300)});
    at += n;
  }
  if (seed % 5 != 0)
    for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.next() % i]);
  const auto sink = std::make_shared<string_sink>(to);
  application a(to, m.stream.size(), base_over(from), sink, 1 + static_cast<unsigned>(seed) % 3);
  for (const piece& p : pieces) {
    byte_vector b(m.stream.begin() + static_cast<std::ptrdiff_t>(p.at), m.stream.begin() + static_cast<std::ptrdiff_t>(p.at + p.size));
    if (p.damaged)
      for (int n = 0; n < 3; ++n) b[random.next() % b.size()] ^= static_cast<std::byte>(1 + random.next() % 255);
    a.arrives(p.at, b);
  }
  for (const piece& p : pieces)   // mended
    if (p.damaged) DDF_REQUIRE_OK(a.scratch->write(p.at, std::span(m.stream).subspan(p.at, p.size)));
  a.applier->complete();
  const auto p = a.end();
  DDF_REQUIRE_OK(p);
  BOOST_TEST((p->rows == all_rows(to)));
  check_rows(to, *sink, p->rows);
}

// Every byte of head and index, damaged when it is first looked at.
BOOST_AUTO_TEST_CASE(damage_in_front_is_no_verdict_before_the_stream_is_proven) {
  const content from = file_content("f", pattern(5 * 65'536, 1));
  content to = from;
  to.parts[0][70'000] ^= 1;
  const made m = make(from, to);
  for (std::size_t at = 0; at < m.stream.size(); ++at)
    for (const unsigned flip : {1u, 0x80u}) {
      byte_vector damaged = m.stream;
      damaged[at] ^= static_cast<std::byte>(flip);
      const auto sink = std::make_shared<string_sink>(to);
      application a(to, m.stream.size(), base_over(from), sink);
      a.arrives(0, damaged);
      BOOST_REQUIRE_MESSAGE(!a.is_over(2ms), "byte " << at);
      DDF_REQUIRE_OK(a.scratch->write(0, m.stream));
      a.applier->complete();
      const auto p = a.end();
      DDF_REQUIRE_OK(p);
      BOOST_TEST((p->rows == all_rows(to)));
      check_rows(to, *sink, p->rows);
    }
}

BOOST_DATA_TEST_CASE(giving_up_in_the_middle_never_hangs_or_writes_later, bdata::xrange(200), seed) {
  static const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  static const made m = make(from, to);
  prng random(static_cast<std::uint64_t>(seed));
  const auto sink = std::make_shared<string_sink>(to);
  application a(to, m.stream.size(), base_over(from), sink, 1 + static_cast<unsigned>(seed) % 4);
  const std::uint64_t until = seed % 4 == 0 ? random.next() % 200 : random.next() % m.stream.size();
  for (std::uint64_t at = 0; at < until;) {
    const std::uint64_t n = std::min<std::uint64_t>(until - at, 1 + random.next() % 5000);
    byte_vector b(m.stream.begin() + static_cast<std::ptrdiff_t>(at), m.stream.begin() + static_cast<std::ptrdiff_t>(at + n));
    if (random.next() % 8 == 0) b[0] ^= std::byte{1};
    a.arrives(at, b);
    at += n;
  }
  a.applier.reset();
  a.dead = true;
  sink->dead = true;
  for (std::size_t i = 0; i < to.parts.size(); ++i)
    for (const auto& [first, last] : sink->written[i]) BOOST_REQUIRE((sink->parts[i].compare(first, last - first, to.parts[i], first, last - first) == 0));
}

BOOST_AUTO_TEST_CASE(a_full_disk_at_any_write_ends_it_with_its_errno) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  for (int nth = 1;; ++nth) {
    const auto sink = std::make_shared<string_sink>(to, nth);
    application a(to, m.stream.size(), base_over(from), sink, 1 + static_cast<unsigned>(nth) % 3);
    a.arrives_whole(m.stream);
    const auto p = a.end();
    if (p) {
      BOOST_TEST(nth == static_cast<int>(to.description.blocks()) + 1);
      break;
    }
    BOOST_REQUIRE((p.error().code == errc::io && p.error().os == ENOSPC));
  }
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_told_while_other_blocks_are_still_to_come) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  const auto head = delta::parse_stream_head(m.stream);
  DDF_REQUIRE_OK(head);
  const auto rows = delta::parse_stream_index(*head, std::span(m.stream).subspan(delta::stream_head::wire_size, head->index_bytes), digests(from).blocks, m.delta.rows.size(), m.stream.size());
  DDF_REQUIRE_OK(rows);
  const std::size_t half = rows->size() / 2;
  for (int round = 0; round < 100; ++round) {   // whether the others wait by then is up to the scheduler: in some rounds they do
    const auto sink = std::make_shared<string_sink>(to, static_cast<int>(half));   // at the last block that is here
    application a(to, m.stream.size(), base_over(from), sink, 3);
    a.arrives(0, std::span(m.stream).first((*rows)[half].offset));   // the rest never comes
    DDF_CHECK_FAILS(a.end(), errc::io);
  }
}

BOOST_AUTO_TEST_CASE(memory_does_not_grow_with_the_object) {
  const auto allocated = [](std::size_t mib) {
    content from = file_content("f", bf16(mib << 19, 1));
    from.description.block_bytes = 1 << 20;
    content to = from;
    to.parts[0] = stepped(to.parts[0], 2);
    counting_source source(to);
    const delta_base base = base_over(from, true, true);
    digest_table table;
    delta_options how;
    how.threads = 1;
    const std::size_t before = bytes_allocated();
    auto d = make_delta(to.description, source, table, false, base, how, go_on);
    const std::size_t made = bytes_allocated() - before;
    DDF_REQUIRE_OK(d);
    const byte_vector stream = stream_bytes(*d, to);
    application a(to, stream.size(), base, std::make_shared<string_sink>(to), 1);
    a.arrives_whole(stream);
    DDF_REQUIRE_OK(a.end());
    return std::array{made, a.allocated};
  };
  const auto small = allocated(8), large = allocated(32);
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(large[i] < small[i] + (2 << 20), (i == 0 ? "make: " : "apply: ") << small[i] << " bytes for 8 MiB, " << large[i] << " for 32");
}

BOOST_AUTO_TEST_CASE(an_abandoned_delta_is_interrupted) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  counting_source source(to);
  digest_table table;
  const std::atomic<bool> abandon = true;
  DDF_CHECK_FAILS(make_delta(to.description, source, table, false, base_over(from), {}, abandon), errc::interrupted);
}

BOOST_DATA_TEST_CASE(random_folders_come_out_bit_for_bit, bdata::xrange(60), seed) {
  prng random(static_cast<std::uint64_t>(seed) + 1000);
  const auto size = [&]() -> std::size_t {
    switch (random.next() % 5) {
      case 0: return 0;
      case 1: return random.next() % 10;
      case 2: return 65'536 * (random.next() % 3);
      default: return random.next() % 200'000;
    }
  };
  std::vector<std::pair<std::string, std::string>> before, after;
  for (std::uint64_t i = 0; i < 1 + random.next() % 6; ++i) before.emplace_back("f" + std::to_string(i), pattern(size(), static_cast<std::uint32_t>(random.next() & 0xffff)));
  for (const auto& [name, data] : before) {
    std::string changed = data;
    switch (random.next() % 7) {
      case 0: continue;
      case 1: changed = stepped(changed, random.next(), 20); break;
      case 2: changed.insert(random.next() % (changed.size() + 1), pattern(random.next() % 50, 77)); break;
      case 3: changed.resize(random.next() % (changed.size() + 1)); break;
      case 4: changed += pattern(random.next() % 100'000, 3); break;
      default: break;
    }
    after.emplace_back(random.next() % 5 == 0 ? name + "x" : name, changed);
  }
  if (random.next() % 2 || after.empty()) after.emplace_back("new", pattern(size(), 5));
  const content from = shards(before), to = shards(after);
  const made m = make(from, to);
  check_applies(from, to, m.stream, all_rows(to));
  BOOST_TEST(m.stream.size() <= 64 + limits::delta_bytes(to.description.size()));
}

BOOST_AUTO_TEST_CASE(a_delta_lands_in_sealed_memory) {
  const content from = file(safetensors(model())), to = file(safetensors(step(model())));
  const made m = make(from, to);
  auto opened = memory_sink::open(to.description);
  DDF_REQUIRE_OK(opened);
  const std::shared_ptr<memory_sink> sink = std::move(*opened);
  application a(to, m.stream.size(), base_over(from), sink);
  a.arrives_whole(m.stream);
  const auto p = a.end();
  DDF_REQUIRE_OK(p);
  DDF_REQUIRE_OK(sink->commit(p->table));
  const auto view = sink->view(0);
  BOOST_TEST((std::string(reinterpret_cast<const char*>(view.data()), view.size()) == to.parts[0]));
}

BOOST_AUTO_TEST_SUITE_END()
