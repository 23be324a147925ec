#include "lib/wire/data_header.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <vector>

using namespace ddf;

BOOST_AUTO_TEST_SUITE(data_header_)

static std::vector<std::byte> packet(const data_header& h, std::size_t payload = 1) {
  std::vector<std::byte> out(data_header::wire_size + payload);
  write_data_header(h, std::span<std::byte, data_header::wire_size>(out.data(), data_header::wire_size));
  return out;
}

BOOST_AUTO_TEST_CASE(every_field_reads_back) {
  const data_header h{data_header::confirm | data_header::repair, 0x123456789abc, 0xdeadbeef, 0xfffffffe};
  BOOST_TEST((parse_data_header(packet(h)) == h));
  const data_header last{255, (std::uint64_t(1) << 48) - 1, 0xffffffff, 0xffffffff};
  BOOST_TEST((parse_data_header(packet(last)) == last));
}

BOOST_AUTO_TEST_CASE(the_bytes_are_as_the_picture_says) {
  const auto p = packet({3, 0x010203040506, 0x0708090a, 0x0b0c0d0e}, 0);
  const unsigned expected[] = {0x10, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  for (std::size_t i = 0; i < 16; ++i) BOOST_TEST(std::to_integer<unsigned>(p[i]) == expected[i]);
}

BOOST_AUTO_TEST_CASE(a_packet_without_payload_or_shorter_than_its_header_is_refused) {
  const auto p = packet({}, 1);
  for (std::size_t n = 0; n <= data_header::wire_size; ++n) BOOST_TEST(!parse_data_header(std::span(p).first(n)));
  BOOST_TEST(parse_data_header(p).has_value());
}

BOOST_AUTO_TEST_CASE(other_versions_and_types_are_refused) {
  auto p = packet({}, 1);
  for (unsigned first = 0; first < 256; ++first) {
    p[0] = static_cast<std::byte>(first);
    BOOST_TEST(parse_data_header(p).has_value() == (first == 0x10));
    const bool known = first >> 4 == protocol_version && (first & 15) <= 14;
    BOOST_TEST(type_of(p).has_value() == known);
  }
  BOOST_TEST(!type_of({}).has_value());
}

BOOST_AUTO_TEST_CASE(a_wrapped_number_unwraps_to_the_nearest) {
  const std::uint64_t wrap = std::uint64_t(1) << 32;
  BOOST_TEST(unwrap(0, 0) == 0u);
  BOOST_TEST(unwrap(5, wrap - 3) == wrap + 5);
  BOOST_TEST(unwrap(0xfffffffe, wrap + 3) == wrap - 2);
  BOOST_TEST(unwrap(0xfffffffe, 3 * wrap + 3) == 3 * wrap - 2);
  BOOST_TEST(unwrap(0xffffffff, 0) == 0xffffffffu);   // there is nothing below zero
  for (const std::uint64_t near : {wrap - 1, wrap, wrap + 1, 2 * wrap - 1, 2 * wrap, 7 * wrap + 12345})
    for (const std::int64_t d : {-2147483647ll, -1000ll, -1ll, 0ll, 1ll, 1000ll, 2147483647ll}) {
      const std::uint64_t full = near + static_cast<std::uint64_t>(d);
      BOOST_TEST(unwrap(static_cast<std::uint32_t>(full), near) == full);
    }
}

BOOST_AUTO_TEST_SUITE_END()
