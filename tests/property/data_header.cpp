#include "lib/wire/data_header.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include <array>

using namespace ddf;

RC_BOOST_PROP(data_headers_round_trip, (std::uint8_t flags, std::uint64_t segment, std::uint32_t tag, std::uint32_t sequence)) {
  const data_header h{flags, segment >> 16, tag, sequence};
  std::array<std::byte, data_header::wire_size + 1> packet{};
  write_data_header(h, std::span(packet).first<data_header::wire_size>());
  RC_ASSERT(parse_data_header(packet) == h);
}

RC_BOOST_PROP(unwrap_finds_what_is_within_two_to_the_31, (std::uint64_t near, std::int32_t distance)) {
  near >>= 8;
  RC_PRE(distance >= 0 || near >= static_cast<std::uint64_t>(-static_cast<std::int64_t>(distance)));
  const std::uint64_t full = near + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
  RC_ASSERT(unwrap(static_cast<std::uint32_t>(full), near) == full);
}
