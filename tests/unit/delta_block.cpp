#include "codecs/delta/block.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "codecs/delta/varint64.hpp"
#include "tests/support/weights.hpp"

using namespace ddf;
using namespace ddf::delta;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(delta_block)

static bytes_of raw(std::initializer_list<unsigned> values) {
  bytes_of out;
  for (const unsigned v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

static result<bytes_of> applied(const bytes_of& payload, const bytes_of& base, std::size_t bytes, std::uint64_t offset = 0) {
  workspace w;
  bytes_of out(bytes);
  const auto made = apply_block(w, offset, payload, memory_base(base), out);
  if (!made) return tl::unexpected(made.error());
  return out;
}

static bytes_of payload_of(const bytes_of& base, const bytes_of& target, const std::vector<region>& regions, std::uint64_t offset = 0, account* made = nullptr) {
  workspace w;
  bytes_of out;
  BOOST_REQUIRE(encode_block(w, offset, target, regions, memory_base(base), profile::tight, out, made).has_value());
  return out;
}

BOOST_AUTO_TEST_CASE(an_untouched_block_needs_no_payload) {
  const auto base = noise(1, 3 << 20);
  const bytes_of block(base.begin() + (1 << 20), base.begin() + (2 << 20));
  account made;
  BOOST_TEST(payload_of(base, block, {{0, 3 << 20, 0, element::bf16}}, 1 << 20, &made).empty());
  BOOST_TEST((made.of(operation::keep) == account::line{1, 1 << 20, 0}));
  const auto again = applied({}, base, 1 << 20, 1 << 20);
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((*again == block));
  BOOST_TEST((applied({}, base, 1 << 20, (2 << 20) + 1).error().code == errc::integrity));
  BOOST_TEST((applied({}, base, 1 << 20, ~std::uint64_t(0)).error().code == errc::integrity));
}

BOOST_AUTO_TEST_CASE(a_moved_block_is_one_short_record) {
  const auto base = noise(1, 4 << 20);
  const bytes_of block(base.begin() + 1360, base.begin() + 1360 + (2 << 20));
  const auto payload = payload_of(base, block, {{0, 2 << 20, 1360, element::bf16}});
  BOOST_TEST((payload == raw({15 << 4 | 1 << 2 | 1, 0xa0, 0x15})));   // a keep of the rest, 1360 bytes further on
  const auto again = applied(payload, base, block.size());
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((*again == block));
}

BOOST_AUTO_TEST_CASE(kept_runs_are_joined_across_regions) {
  const auto base = noise(1, 1 << 20);
  auto target = base;
  target[700'000] ^= std::byte(1);
  std::vector<region> regions;
  for (std::uint64_t at = 0; at < target.size(); at += 4096) regions.push_back({at, 4096, at, at % 8192 ? element::f32 : element::bf16});
  account made;
  const auto payload = payload_of(base, target, regions, 0, &made);
  BOOST_TEST(made.of(operation::keep).records == 2u);
  BOOST_TEST(made.total().records == 3u);
  BOOST_TEST(made.total().target_bytes == target.size());
  BOOST_TEST(made.total().payload_bytes == payload.size());
  const auto again = applied(payload, base, target.size());
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((*again == target));
}

BOOST_AUTO_TEST_CASE(elements_stay_whole_across_odd_blocks) {
  const auto base = bf16_weights(1, 300'001);
  const auto target = stepped(base, 2, 0.01);
  const bytes_of odd = raw({1, 2, 3});
  bytes_of whole = odd;
  whole.insert(whole.end(), target.begin(), target.end());
  const std::vector<region> regions{{0, 3, region::no_base, element::bytes}, {3, target.size(), 0, element::bf16}};
  std::size_t at = 0;
  for (const std::size_t n : {std::size_t(1), std::size_t(65'536), std::size_t(65'535), std::size_t(4), std::size_t(400'000), whole.size()}) {
    const std::size_t bytes = std::min(n, whole.size() - at);
    const bytes_of block(whole.begin() + static_cast<std::ptrdiff_t>(at), whole.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    const auto payload = payload_of(base, block, regions, at);
    const auto again = applied(payload, base, bytes, at);
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST((*again == block));
    at += bytes;
  }
}

BOOST_AUTO_TEST_CASE(bits_that_compare_equal_are_not_equal) {   // -0.0 and 0.0, NaNs of different payloads
  const auto f32 = [](std::initializer_list<std::uint32_t> bits) {
    bytes_of out;
    for (const auto b : bits)
      for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(b >> (8 * i)));
    return out;
  };
  const auto base = f32({0, 0x80000000, 0x7fc00000, 0x7f800001, 0xffffffff}), target = f32({0x80000000, 0, 0x7fc00001, 0x7fc00000, 0x7fffffff});
  for (const element e : {element::f32, element::bf16, element::f64, element::i32, element::f8_e4m3, element::bytes}) {
    const auto again = applied(payload_of(base, target, {{0, target.size(), 0, e}}), base, target.size());
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST((*again == target));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto base = noise(1, 1000);
  const unsigned keep = 15 << 4, moved = 1 << 2, none = 2 << 2, rest = 1, usual = 2, same = 3;
  const auto refused = [&](const bytes_of& payload, std::size_t bytes, std::string_view why, std::uint64_t offset = 0) {
    const auto made = applied(payload, base, bytes, offset);
    BOOST_REQUIRE_MESSAGE(!made.has_value(), why);
    BOOST_TEST((made.error().code == errc::integrity));
    BOOST_TEST((made.error().what.find(why) != std::string::npos), made.error().what);
  };
  BOOST_TEST(applied(raw({keep | rest}), base, 1000).has_value());
  refused(raw({keep | rest}), 1001, "outside the base");
  refused(raw({keep | rest}), 10, "outside the base", 991);
  refused(raw({keep | rest}), 10, "outside the base", ~std::uint64_t(0) - 4);   // would wrap
  refused(raw({keep | rest | moved, 1}), 10, "outside the base");                // one before the base
  refused(raw({keep | rest | moved, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), 10, "outside the base");
  refused(raw({keep | rest | moved, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}), 10, "no sound distance");
  refused(raw({keep | rest | moved, 0x80}), 10, "no sound distance");
  refused(raw({keep | rest | moved, 0x80, 0}), 10, "no sound distance");   // one number has one form
  refused(raw({keep | rest | none}), 10, "keeps bytes of no base");
  refused(raw({keep | rest | none | moved, 0}), 10, "unknown kind of base");
  refused(raw({14 << 4 | rest}), 10, "unknown element");
  refused(raw({keep, 0}), 10, "too little or too much");
  refused(raw({keep, 11}), 10, "too little or too much");
  refused(raw({keep, 0xff, 0xff, 0xff, 0xff, 0x7f}), 10, "too little or too much");   // a bomb
  refused(raw({keep | usual}), 10, "too little or too much");
  refused(raw({keep | same}), 10, "too little or too much");   // as nothing before it
  refused(raw({keep}), 10, "no sound length");
  refused(raw({keep, 9}), 10, "ends too early");
  refused(raw({keep | rest, 0}), 10, "more than it needs");
  refused(raw({0, 5}), 10, "cut short");
  refused(raw({0, 5, 7, 1}), 10, "cut short");
  refused(raw({0, 5, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}), 10, "cut short");
  refused(raw({rest}), 10, "does not fit its base");       // an empty record
  refused(raw({0, 5, 0, keep | rest}), 10, "does not fit its base");
  refused(raw({rest | none, 0}), 10, "does not fit its base");   // keep of no base
  refused(raw({rest, 200}), 10, "does not fit its base");        // no such operation
  refused(raw({rest, 1, 2, 3}), 10, "does not fit its base");    // a literal that is too short
  const auto big = noise(2, 2 << 20);
  workspace w;
  bytes_of out(2 << 20);
  const auto made = apply_block(w, 0, raw({rest, 0}), memory_base(big), out);
  BOOST_TEST((made.error().what.find("makes too much") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_flipped_byte_is_refused_or_harmless) {
  const auto base = bf16_weights(1, 3000);
  auto target = stepped(base, 2, 0.05);
  const std::vector<region> regions{{0, 2000, 0, element::bf16}, {2000, 1001, 2000, element::bytes}, {3001, target.size() - 3001, 500, element::f32}};
  const auto payload = payload_of(base, target, regions);
  for (std::size_t n = 1; n < payload.size(); ++n) {
    const bytes_of cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(n));
    const auto made = applied(cut, base, target.size());
    BOOST_TEST((!made || *made != target));
  }
  for (std::size_t i = 0; i < payload.size(); ++i) {
    auto bent = payload;
    bent[i] ^= std::byte(0x41);
    (void)applied(bent, base, target.size());   // the block's digest decides; here only that nothing is overrun
  }
}

BOOST_AUTO_TEST_CASE(tiny_tensors_cost_little_framing) {   // 3.6 KB each, one in ten of them changed
  std::vector<weights> old, now;
  for (unsigned i = 0; i < 1000; ++i) {
    old.push_back(bf16_tensor("experts." + std::to_string(i) + ".w", i, 1800));
    now.push_back(old.back());
    if (i % 10 == 0) now.back().bytes = stepped(now.back().bytes, i, 0.02);
  }
  const auto base = file_object(safetensors(old)), target = file_object(safetensors(now));
  const auto made = delta_of(base, target, 1 << 20);
  BOOST_TEST(made.equal);
  BOOST_TEST(made.how.total().target_bytes == target.bytes.size());
  BOOST_TEST(made.how.framing_bytes < 200u);
}

BOOST_AUTO_TEST_CASE(a_base_that_cannot_be_read_ends_it) {
  class broken final : public base_bytes {
   public:
    std::uint64_t size() const override { return 1000; }
    result<std::span<const std::byte>> at(std::uint64_t, std::size_t, std::vector<std::byte>&) const override { return fail(errc::io, "no", 5); }
  };
  workspace w;
  bytes_of out, target(100);
  BOOST_TEST((encode_block(w, 0, target, std::vector<region>{{0, 100, 0, element::bytes}}, broken(), profile::tight, out).error().code == errc::io));
  BOOST_TEST((apply_block(w, 0, {}, broken(), target).error().code == errc::io));
  BOOST_TEST((apply_block(w, 0, raw({15 << 4 | 1}), broken(), target).error().code == errc::io));
}

BOOST_AUTO_TEST_CASE(regions_of_another_target_are_refused) {
  workspace w;
  bytes_of out;
  const auto base = noise(1, 100), target = noise(2, 100);
  const auto code = [&](const std::vector<region>& r, std::uint64_t offset = 0) {
    const auto made = encode_block(w, offset, target, r, memory_base(base), profile::tight, out);
    return made ? errc::ok : made.error().code;
  };
  BOOST_TEST((code({}) == errc::invalid_argument));
  BOOST_TEST((code({{0, 99, 0, element::bytes}}) == errc::invalid_argument));
  BOOST_TEST((code({{1, 200, 0, element::bytes}}) == errc::invalid_argument));
  BOOST_TEST((code({{0, 100, 1, element::bytes}}) == errc::invalid_argument));
  BOOST_TEST((code({{0, 100, region::no_base, element::bytes}}) == errc::ok));
}

BOOST_AUTO_TEST_SUITE_END()
