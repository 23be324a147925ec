#include "lib/model/endpoint.hpp"

#include <boost/test/unit_test.hpp>

using namespace ddf;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(endpoint_)

BOOST_AUTO_TEST_CASE(what_is_printed_reads_back) {
  for (const auto& text : {"239.77.7.7:7700"s, "0.0.0.0:1"s, "255.255.255.255:65535"s, "[ff15::77:7]:7700"s, "[ff02::1%1]:7700"s, "[::]:80"s, "[::ffff:1.2.3.4]:80"s}) {
    const auto e = parse_endpoint(text, 1);
    BOOST_REQUIRE(e.has_value());
    BOOST_TEST(to_string(*e) == text);
    BOOST_TEST((*parse_endpoint(to_string(*e), 2) == *e));
  }
}

BOOST_AUTO_TEST_CASE(the_default_port_stands_when_none_is_named) {
  BOOST_TEST(parse_endpoint("10.0.0.1", 7700)->port == 7700);
  BOOST_TEST(parse_endpoint("ff15::1", 7700)->port == 7700);
  BOOST_TEST(parse_endpoint("[ff15::1]", 7700)->port == 7700);
  BOOST_TEST(parse_endpoint("ff15::1", 7700)->v6);
}

BOOST_AUTO_TEST_CASE(a_scope_may_be_a_name_or_an_index) {
  BOOST_TEST(parse_endpoint("ff02::1%lo", 7700)->scope == parse_endpoint("[ff02::1%1]:5", 7700)->scope);
  BOOST_TEST(parse_endpoint("[ff02::1%4000000000]:5", 1)->scope == 4'000'000'000u);
}

BOOST_AUTO_TEST_CASE(multicast_and_unspecified_addresses_are_known) {
  BOOST_TEST(is_multicast(*parse_endpoint("224.0.0.1", 1)));
  BOOST_TEST(is_multicast(*parse_endpoint("239.255.255.255", 1)));
  BOOST_TEST(!is_multicast(*parse_endpoint("240.0.0.1", 1)));
  BOOST_TEST(!is_multicast(*parse_endpoint("223.255.255.255", 1)));
  BOOST_TEST(is_multicast(*parse_endpoint("ff05::2", 1)));
  BOOST_TEST(!is_multicast(*parse_endpoint("fe80::2", 1)));
  BOOST_TEST(is_unspecified(*parse_endpoint("0.0.0.0", 1)));
  BOOST_TEST(is_unspecified(*parse_endpoint("::", 1)));
  BOOST_TEST(!is_unspecified(*parse_endpoint("::1", 1)));
}

BOOST_AUTO_TEST_CASE(an_error_names_the_part_that_is_wrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not an IPv4 or IPv6 address"},
      {"host.example:7700", "'host.example' is not an IPv4 or IPv6 address"},
      {"239.77.7:7700", "'239.77.7' is not"},
      {"239.77.7.256", "'239.77.7.256' is not"},
      {"239.77.7.7:0", "port '0'"},
      {"239.77.7.7:65536", "port '65536'"},
      {"239.77.7.7:77x", "port '77x'"},
      {"239.77.7.7:-1", "port '-1'"},
      {"239.77.7.7: 1", "port ' 1'"},
      {"239.77.7.7:99999999999999999999", "port '99999999999999999999'"},
      {"239.77.7.7:", "the port is missing"},
      {"[ff15::1]:", "the port is missing"},
      {"[ff15::1", "closing ']'"},
      {"[ff15::1]7700", "after ']'"},
      {"[]:7700", "is not an IPv4 or IPv6 address"},
      {":7700", "is not an IPv4 or IPv6 address"},
      {"ff15::1::2", "is not an IPv4 or IPv6 address"},
      {"ff02::1%nosuchinterface0", "no interface 'nosuchinterface0'"},
      {"ff02::1%1x", "no interface '1x'"},
      {"ff02::1%0", "no interface '0'"},
      {"ff02::1%", "after '%'"},
      {"10.0.0.1%lo", "is not an IPv4 or IPv6 address"},
      {"10.0.0.1\0.evil"s, "is not an IPv4 or IPv6 address"},
  };
  for (const auto& [text, why] : cases) {
    const auto e = parse_endpoint(text, 7700);
    BOOST_REQUIRE_MESSAGE(!e.has_value(), "'" << text << "' was accepted");
    BOOST_TEST((e.error().code == errc::invalid_argument));
    BOOST_TEST(e.error().what.find(why) != std::string::npos, e.error().what);
  }
}

BOOST_AUTO_TEST_SUITE_END()
