#include "codecs/delta/record.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "codecs/delta/entropy.hpp"
#include "codecs/delta/magnitude.hpp"
#include "codecs/delta/workspace.hpp"
#include "codecs/digest.hpp"
#include "tests/support/delta_pairs.hpp"
#include "tests/support/golden.hpp"

using namespace ddf;
using namespace ddf::delta;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(delta_record)

using bytes = std::vector<std::byte>;

static bytes record_of(element e, const bytes& base, const bytes& target, profile p = profile::tight) {
  static workspace w;
  bytes record;
  encode_record(w, e, base, target, p, record);
  return record;
}

static operation operation_of(const bytes& record) { return static_cast<operation>(record.at(0)); }

static bool comes_back(element e, const bytes& base, const bytes& target, const bytes& record) {
  workspace w;
  bytes made(target.size()), in_place = base;
  if (!decode_record(w, e, base, record, made) || made != target) return false;
  return base.empty() || (decode_record_in_place(w, e, record, in_place) && in_place == target);
}

struct natural {
  const char* name;
  operation op;
  element e;
  change how;
  bool has_base;
  profile p;
};

// What each operation is for.
static const natural naturals[] = {
    {"keep", operation::keep, element::bf16, change::none, true, profile::tight},
    {"replace", operation::replace, element::f32, change::random, true, profile::tight},
    {"sparse_context", operation::sparse_context, element::bf16, change::sparse, true, profile::tight},
    {"sparse_fast", operation::sparse_fast, element::bf16, change::sparse, true, profile::fast},
    {"gather", operation::gather, element::f32, change::runs, true, profile::tight},
    {"dense", operation::dense, element::bf16, change::drift, true, profile::tight},
    {"planes", operation::planes, element::bf16, change::none, false, profile::tight},
    {"prefix", operation::prefix, element::bytes, change::shift, true, profile::tight},
};

static std::pair<bytes, bytes> pair_of(const natural& n, std::size_t size) {
  prng random(42);
  bytes base = n.e == element::bytes ? random_bytes(random, size) : weights(random, n.e, size);
  bytes target = changed(random, n.e, base, n.how);
  if (!n.has_base) base.clear();
  return {std::move(base), std::move(target)};
}

BOOST_AUTO_TEST_CASE(each_operation_is_chosen_for_what_it_is_made_for) {
  for (const natural& n : naturals) {
    const auto [base, target] = pair_of(n, 65'536 + 3);
    const bytes record = record_of(n.e, base, target, n.p);
    BOOST_TEST(int(operation_of(record)) == int(n.op), n.name);
    BOOST_TEST(comes_back(n.e, base, target, record), n.name);
    if (n.op != operation::replace) BOOST_TEST(record.size() < target.size() * 9 / 10, n.name << ": " << record.size());
  }
}

BOOST_AUTO_TEST_CASE(what_is_the_same_costs_one_byte) {
  prng random(1);
  for (const element e : every_element()) {
    const bytes base = weights(random, e, 10'001);
    BOOST_TEST(record_of(e, base, base).size() == 1u);
    BOOST_TEST(record_of(e, base, base, profile::fast).size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(what_is_random_costs_one_byte_more_than_itself) {
  prng random(2);
  for (const element e : every_element())
    for (const std::size_t size : {std::size_t(1), std::size_t(7), std::size_t(1000), record_target_bytes_max}) {
      const bytes base = random_bytes(random, size), target = random_bytes(random, size);
      BOOST_TEST(record_of(e, base, target).size() <= size + 1);
      BOOST_TEST(record_of(e, {}, target).size() <= size + 1);
    }
}

BOOST_AUTO_TEST_CASE(records_are_appended) {
  workspace w;
  const bytes base(100, std::byte{1});
  bytes out = {std::byte{9}};
  encode_record(w, element::bytes, base, base, profile::tight, out);
  encode_record(w, element::bytes, base, bytes(100, std::byte{2}), profile::tight, out);
  BOOST_TEST((out[0] == std::byte{9}));
  BOOST_TEST((out[1] == std::byte{0}));
  BOOST_TEST(comes_back(element::bytes, base, bytes(100, std::byte{2}), {out.begin() + 2, out.end()}));
}

// Zeros of both signs, quiet and signalling NaNs with payloads, infinities, subnormals: bits like all others.
BOOST_AUTO_TEST_CASE(every_bit_pattern_survives) {
  bytes base(1 << 17), target(1 << 17);
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    store(base.data() + 2 * i, static_cast<std::uint16_t>(i));
    store(target.data() + 2 * i, static_cast<std::uint16_t>(i % 5 == 0 ? i ^ 0x8000 : i % 7 == 0 ? i + 1 : i));
  }
  for (const element e : every_element())
    for (const profile p : {profile::tight, profile::fast}) {
      const bytes record = record_of(e, base, target, p);
      BOOST_TEST(comes_back(e, base, target, record), int(e));
      BOOST_TEST(comes_back(e, {}, target, record_of(e, {}, target, p)), int(e));
    }
}

BOOST_AUTO_TEST_CASE(another_base_or_length_never_crashes) {
  prng random(3);
  workspace w;
  for (const natural& n : naturals) {
    const auto [base, target] = pair_of(n, 4096);
    const bytes record = record_of(n.e, base, target, n.p);
    const bytes other = weights(random, n.e, 4096);
    bytes made(4096);
    (void)decode_record(w, n.e, other, record, made);
    (void)decode_record(w, n.e, {}, record, made);
    for (const element e : every_element()) (void)decode_record(w, e, base.empty() ? other : base, record, made);
    for (const std::size_t size : {1u, 2u, 4095u, 4097u}) {
      made.assign(size, {});
      const bytes b(size);
      (void)decode_record(w, n.e, b, record, made);
    }
    for (std::size_t cut = 0; cut < record.size(); ++cut) {
      made.assign(4096, {});
      BOOST_TEST(!decode_record(w, n.e, base, std::span(record).first(cut), made), n.name << " cut to " << cut);
    }
  }
}

BOOST_AUTO_TEST_CASE(records_that_are_none_are_refused) {
  workspace w;
  bytes made(64);
  const bytes base(64);
  BOOST_TEST(!decode_record(w, element::bf16, base, {}, made));
  for (int op = 0; op < 256; ++op) {
    const bytes record = {static_cast<std::byte>(op)};
    BOOST_TEST(decode_record(w, element::bf16, base, record, made) == (op == 0), op);
    BOOST_TEST(!decode_record(w, element::bf16, {}, record, made), op);
  }
}

BOOST_AUTO_TEST_CASE(magnitudes_and_symbols_are_inverse) {
  const auto check = []<class U>(U v) {
    const unsigned symbol = magnitude<U>::symbol(v), bits = magnitude<U>::more_bits(symbol);
    const U more = bits == 0 ? U(0) : static_cast<U>(v & ((std::uint64_t(1) << bits) - 1));
    return symbol < 256 && magnitude<U>::value(symbol, more) == v;
  };
  bool good = true;
  for (unsigned v = 0; v < 256; ++v) good &= check(static_cast<std::uint8_t>(v));
  for (unsigned v = 0; v < 65536; ++v) good &= check(static_cast<std::uint16_t>(v));
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const std::uint64_t near : {0u, 1u, 2u, 3u}) good &= check((std::uint64_t(1) << bit) + near - 1) && check(static_cast<std::uint32_t>((std::uint64_t(1) << bit) + near - 1));
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(symbols_of_any_distribution_come_back) {
  prng random(5);
  workspace w;
  for (const std::size_t size : {0u, 1u, 2u, 255u, 256u, 4095u, 4096u, 4097u, 100'000u})
    for (const unsigned kinds : {1u, 2u, 3u, 17u, 256u})
      for (const bool skewed : {false, true}) {
        std::vector<std::uint8_t> symbols(size), made(size);
        for (auto& s : symbols) s = static_cast<std::uint8_t>((skewed && random.next() % 50 != 0) ? 0 : random.next() % kinds);
        bytes out;
        entropy_encode(w, symbols, out);
        BOOST_TEST(out.size() <= size + 1);
        std::span<const std::byte> in = out;
        BOOST_TEST(entropy_decode(w, in, made));
        BOOST_TEST(in.empty());
        BOOST_TEST((made == symbols));
      }
}

// The format: what each operation makes of a small pair, byte by byte, and the digest of what it makes of a larger one.
BOOST_AUTO_TEST_CASE(the_golden_records_are_made_and_read) {
  const auto folder = golden_folder() / "delta_records";
  for (const natural& n : naturals) {
    const auto [base, target] = pair_of(n, 1600 + 1);
    const auto [large_base, large_target] = pair_of(n, 300'000 + 1);
    bytes record = record_of(n.e, base, target, n.p);
    const digest large = digest_of(record_of(n.e, large_base, large_target, n.p));
    const auto path = folder / (std::string(n.name) + ".hex");
    bytes all = record;
    all.insert(all.begin(), large.bytes.begin(), large.bytes.end());
    if (writes_golden()) write_golden(path, "digest of a record of 300,001 bytes; a record of 1,601 bytes: " + std::string(n.name), all);
    const bytes kept = read_golden(path).bytes;
    BOOST_REQUIRE(kept.size() > large.bytes.size());
    if (n.op != operation::prefix) BOOST_TEST((kept == all), n.name);   // those are as the version of zstd makes them
    record.assign(kept.begin() + static_cast<std::ptrdiff_t>(large.bytes.size()), kept.end());
    BOOST_TEST(int(operation_of(record)) == int(n.op), n.name);
    BOOST_TEST(comes_back(n.e, base, target, record), n.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
