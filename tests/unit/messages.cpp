#include "lib/wire/messages.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/wire/grant_stamp.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/sealed.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(messages_)

BOOST_AUTO_TEST_CASE(every_message_reads_back) {
  for (const auto& [name, m] : test::samples()) {
    const auto back = parse_message(write_message(m));
    BOOST_REQUIRE_MESSAGE(back.has_value(), name);
    BOOST_TEST((*back == m), name);
  }
}

BOOST_AUTO_TEST_CASE(every_message_has_the_bytes_of_its_golden_file) {
  for (const auto& [name, m] : test::samples()) {
    const auto path = test::golden_folder() / "messages" / (name + ".hex");
    if (test::writes_golden()) test::write_golden(path, name, write_message(m));
    const auto golden = test::read_golden(path);
    BOOST_TEST((write_message(m) == golden.bytes), name);
    const auto back = parse_message(golden.bytes);
    BOOST_REQUIRE_MESSAGE(back.has_value(), name);
    BOOST_TEST((*back == m), name);
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  for (const auto& [name, m] : test::samples()) {
    const auto datagram = write_message(m);
    for (std::size_t n = 0; n < datagram.size(); ++n) BOOST_REQUIRE_MESSAGE(!parse_message(std::span(datagram).first(n)), name << " cut to " << n);
  }
}

// A truncation whose length and check say that it is whole.
BOOST_AUTO_TEST_CASE(every_truncation_that_claims_to_be_whole_is_refused_or_writes_back_to_itself) {
  for (const auto& [name, m] : test::samples()) {
    const auto datagram = write_message(m);
    for (std::size_t n = 0; n < datagram.size(); ++n) {
      std::vector<std::byte> cut(datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(n));
      test::seal(cut);
      if (const auto back = parse_message(cut)) BOOST_REQUIRE_MESSAGE(write_message(*back) == cut, name << " cut to " << n);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_change_of_one_byte_is_refused) {
  for (const auto& [name, m] : test::samples()) {
    auto datagram = write_message(m);
    for (std::size_t i = 0; i < datagram.size(); ++i)
      for (const unsigned flip : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 255u}) {
        datagram[i] ^= static_cast<std::byte>(flip);
        BOOST_REQUIRE_MESSAGE(!parse_message(datagram), name << " byte " << i << " ^ " << flip);
        datagram[i] ^= static_cast<std::byte>(flip);
      }
  }
}

BOOST_AUTO_TEST_CASE(every_value_of_one_byte_with_a_right_check_is_refused_or_writes_back_to_itself) {
  for (const auto& [name, m] : test::samples()) {
    const auto whole = write_message(m);
    for (std::size_t i = 0; i < std::min<std::size_t>(whole.size(), 160); ++i)
      for (unsigned v = 0; v < 256; ++v) {
        auto changed = whole;
        changed[i] = static_cast<std::byte>(v);
        test::seal(changed);
        if (const auto back = parse_message(changed)) BOOST_REQUIRE_MESSAGE(write_message(*back) == changed, name << " byte " << i << " = " << v);
      }
  }
}

BOOST_AUTO_TEST_CASE(padding_is_zeros_and_means_nothing) {
  for (const auto& [name, m] : test::samples()) {
    const auto plain = write_message(m);
    auto padded = write_message(m, 2000);
    BOOST_TEST(padded.size() == 2000u);
    BOOST_TEST(std::equal(plain.begin(), plain.end(), padded.begin()), name);
    BOOST_TEST((parse_message(padded) == m), name);
    padded.back() = std::byte{1};
    BOOST_TEST(!parse_message(padded), name);
    BOOST_TEST((write_message(m, 3) == plain), name);   // never cuts
  }
}

BOOST_AUTO_TEST_CASE(every_message_the_engines_send_passes_every_path) {
  std::vector<range> ranges;
  for (std::uint64_t i = 0; i < nack_ranges_max; ++i) ranges.push_back({2 * i, 2 * i + 1});
  announce a = std::get<announce>(test::samples()[0].second);
  a.plan.assign(100, std::byte{2});
  a.plan_bytes = 100;
  a.catalogue.assign(announce_inline_bytes_max - 100, std::byte{1});
  a.catalogue_bytes = static_cast<std::uint32_t>(a.catalogue.size());
  const message largest[] = {test::a_nack(session_id{1}, join_token{1}, ranges), repair_notice{session_id{1}, ranges}, a,
                             catalogue_chunk{session_id{1}, false, catalogue_chunk_bytes, 0, std::vector<std::byte>(catalogue_chunk_bytes)},
                             join{session_id{1}, {}, false, false, false, 0, 0, 0, 0, 0, std::string(host_bytes_max, 'h'), std::vector<held_version>(held_versions_max), {}},
                             done{session_id{1}, {}, done_state::failed, 1, 0, 0, 0, 0, 0, std::string(reason_bytes_max, 'r')},
                             close_session{session_id{1}, 0, std::string(reason_bytes_max, 'r')},
                             grant{session_id{1}, {}, 1, repair_lane::tcp, std::vector<std::byte>(fabric_address_bytes_max), 0, 0, {ranges.begin(), ranges.begin() + grant_ranges_max}},
                             release{session_id{1}, {}, true, std::vector<std::uint64_t>(released_max), std::string(reason_bytes_max, 'r')}};
  for (const message& m : largest) {
    BOOST_TEST(write_message(m).size() <= control_bytes_max);
    BOOST_TEST(parse_message(write_message(m)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_stamp_is_session_and_grant) {
  const grant_stamp stamp = stamp_of(session_id{0x0102030405060708}, 0x1112131415161718);
  for (unsigned i = 0; i < 16; ++i) BOOST_TEST(std::to_integer<unsigned>(stamp[i]) == (i < 8 ? 0x01 + i : 0x11 + i - 8));
}

BOOST_AUTO_TEST_CASE(texts_are_cut_to_their_maximum) {
  const auto back = parse_message(write_message(close_session{session_id{1}, 0, std::string(5000, 'x')}));
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(std::get<close_session>(*back).reason.size() == reason_bytes_max);
}

BOOST_AUTO_TEST_CASE(the_session_can_be_seen_without_parsing) {
  const auto datagram = write_message(farewell{session_id{0x0102030405060708}, receiver_id{1}});
  BOOST_TEST((peek_session(datagram) == session_id{0x0102030405060708}));
  BOOST_TEST(!peek_session(std::span(datagram).first(15)).has_value());
}

static std::vector<std::byte> nack_of(std::vector<std::pair<std::uint64_t, std::uint32_t>> ranges, int count = -1) {   // first, size - 1
  auto d = write_message(test::a_nack(session_id{1}, join_token{2}, {{0, 1}}));
  d.resize(d.size() - 12);
  const std::size_t n = count < 0 ? ranges.size() : static_cast<std::size_t>(count);
  d.push_back(static_cast<std::byte>(n >> 8)), d.push_back(static_cast<std::byte>(n & 0xff));
  for (const auto& [first, less] : ranges) {
    for (int i = 5; i >= 0; --i) d.push_back(static_cast<std::byte>(first >> (8 * i) & 0xff));
    for (int i = 3; i >= 0; --i) d.push_back(static_cast<std::byte>(less >> (8 * i) & 0xff));
  }
  test::seal(d);
  return d;
}

BOOST_AUTO_TEST_CASE(a_nack_asks_for_ascending_ranges_that_do_not_touch_twice) {
  BOOST_TEST(parse_message(nack_of({{0, 0}})).has_value());
  BOOST_TEST(parse_message(nack_of({{0, 4}, {5, 0}, {100, 0xffffffff}})).has_value());
  BOOST_TEST(!parse_message(nack_of({})).has_value());                      // none
  BOOST_TEST(!parse_message(nack_of({{0, 5}, {5, 0}})).has_value());        // overlapping
  BOOST_TEST(!parse_message(nack_of({{9, 0}, {3, 0}})).has_value());        // descending
  BOOST_TEST(!parse_message(nack_of({{9, 0}, {9, 0}})).has_value());        // twice
  BOOST_TEST(!parse_message(nack_of({{1, 0}}, 2)).has_value());             // fewer than claimed
  BOOST_TEST(!parse_message(nack_of({{1, 0}, {3, 0}}, 1)).has_value());     // more than claimed
  BOOST_TEST(!parse_message(nack_of({{1, 0}}, 65535)).has_value());         // an absurd count
  std::vector<std::pair<std::uint64_t, std::uint32_t>> many;
  for (std::uint64_t i = 0; i < nack_ranges_max; ++i) many.push_back({2 * i, 0});
  BOOST_TEST(parse_message(nack_of(many)).has_value());
  many.push_back({1000, 0});
  BOOST_TEST(!parse_message(nack_of(many)).has_value());
}

BOOST_AUTO_TEST_CASE(files_that_must_be_refused_are) {
  const auto folder = test::golden_folder() / "messages_refused";
  std::size_t files = 0;
  const auto refuse = [&](const std::string& name, const std::string& why, std::vector<std::byte> d, bool sealed = true) {
    if (sealed) test::seal(d);
    if (test::writes_golden()) test::write_golden(folder / (name + ".hex"), why, d);
  };
  const auto sample = [&](std::string_view name) {
    for (const auto& [n, m] : test::samples())
      if (n == name) return write_message(m);
    throw std::logic_error("no such sample");
  };
  const auto with = [&](std::string_view name, std::size_t at, std::initializer_list<unsigned> bytes) {
    auto d = sample(name);
    for (const unsigned b : bytes) d.at(at++) = static_cast<std::byte>(b);
    return d;
  };
  refuse("version", "protocol version 2", with("farewell", 0, {0x29}));
  refuse("type", "type 15 is not defined", with("farewell", 0, {0x1f}));
  refuse("check", "the check is wrong by one bit", with("farewell", 7, {std::to_integer<unsigned>(sample("farewell")[7]) ^ 1}), false);
  refuse("length_below_header", "length 8 is less than the header", with("farewell", 2, {0, 8}), false);
  refuse("length_beyond_datagram", "length is more than the datagram", with("farewell", 2, {0xff, 0xff}), false);
  refuse("flags", "flag bits that are not defined", with("farewell", 1, {0x80}));
  refuse("query_session", "a QUERY belongs to no session", with("query", 15, {1}));
  refuse("announce_state", "session state 4", with("announce", 16, {4}));
  refuse("announce_rail", "interface 32", with("announce", 17, {32}));
  refuse("announce_segment_bytes", "segments of 511 bytes", with("announce", 18, {0x01, 0xff}));
  refuse("announce_segment_bytes_large", "segments of 65,001 bytes", with("announce", 18, {0xfd, 0xe9}));
  refuse("announce_segment_bytes_zero", "streaming in segments of 0 bytes", with("announce", 18, {0, 0}));
  refuse("announce_bulk", "the first pass is beyond the last segment", with("announce", 40, {0, 0, 0, 0, 0, 0, 0xff, 0xff}));
  refuse("announce_segments", "2^48 segments", with("announce", 48, {0, 1, 0, 0, 0, 0, 0, 0}));
  refuse("announce_objects", "no objects", with("announce", 64, {0, 0, 0, 0}));
  refuse("announce_objects_many", "4 billion objects", with("announce", 64, {0xff, 0xff, 0xff, 0xff}));
  refuse("announce_catalogue_large", "a catalogue of 64 MiB + 1", with("announce_gathering", 72, {4, 0, 0, 1}));
  refuse("announce_catalogue_none", "a catalogue of 0 bytes", with("announce_gathering", 72, {0, 0, 0, 0}));
  refuse("chunk_offset", "an offset that is no multiple of 1,100", with("catalogue_chunk", 20, {0, 0, 0, 1}));
  refuse("chunk_beyond", "an offset beyond the catalogue", with("catalogue_chunk", 20, {0, 0, 0x08, 0x98}));
  refuse("chunk_total", "a catalogue of 4 GiB", with("catalogue_chunk", 16, {0xff, 0xff, 0xff, 0xff}));
  refuse("join_host", "a host name longer than its message", with("join", 42, {64}));
  refuse("join_host_long", "a host name of 65 bytes", with("join", 42, {65}));
  refuse("welcome_refusal", "refusal 5", with("welcome", 32, {5}));
  refuse("grant_id", "grant 0", with("grant", 24, {0, 0, 0, 0, 0, 0, 0, 0}));
  refuse("grant_lane", "by a lane that is no memory", with("grant", 32, {1}));
  refuse("grant_lane_unknown", "lane 5", with("grant", 32, {5}));
  refuse("grant_fabric", "a fabric address of no bytes", with("grant", 33, {0}));
  refuse("grant_fabric_long", "a fabric address of 129 bytes", with("grant", 33, {129}));
  refuse("release_none", "releases nothing", with("release", 24, {0}));
  refuse("release_many", "65 grants", with("release", 24, {65}));
  refuse("announce_lanes", "reads by udp", with("announce", 112, {2}));
  refuse("done_state", "state 4", with("done", 24, {4}));
  refuse("nack_empty", "no ranges", nack_of({}));
  refuse("nack_overlap", "overlapping ranges", nack_of({{0, 5}, {5, 0}}));
  refuse("nack_descending", "descending ranges", nack_of({{9, 0}, {3, 0}}));
  refuse("nack_count", "a count of 65,535 ranges with one", nack_of({{1, 0}}, 65535));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto golden = test::read_golden(entry.path());
    BOOST_TEST(!parse_message(golden.bytes).has_value(), entry.path().stem() << ": " << golden.comment);
    ++files;
  }
  BOOST_TEST(files >= 37u);
}

BOOST_AUTO_TEST_SUITE_END()
