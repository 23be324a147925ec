#include "lib/model/endpoint.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

using namespace ddf;

RC_BOOST_PROP(every_endpoint_prints_and_reads_back, ()) {
  endpoint e;
  e.v6 = *rc::gen::arbitrary<bool>();
  const std::size_t bytes = e.v6 ? 16 : 4;
  for (std::size_t i = 0; i < bytes; ++i) e.address[i] = *rc::gen::arbitrary<std::uint8_t>();
  e.port = *rc::gen::inRange<std::uint16_t>(1, 65535);
  if (e.v6) e.scope = *rc::gen::arbitrary<std::uint32_t>();
  const auto back = parse_endpoint(to_string(e), 9);
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == e);
}
