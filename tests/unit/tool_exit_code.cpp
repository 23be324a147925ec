// What the programs exit with is a promise to scripts.
#include <boost/test/unit_test.hpp>

#include "tools/common/exit_code.hpp"

using namespace ddf;
using namespace ddf::tools;

BOOST_AUTO_TEST_SUITE(tool_exit_code)

BOOST_AUTO_TEST_CASE(every_code_has_the_number_that_is_promised) {
  const std::pair<errc, int> promised[] = {
      {errc::ok, 0},          {errc::io, 1},
      {errc::network, 1},     {errc::sender_lost, 1},
      {errc::too_large, 1},   {errc::no_multicast, 1},
      {errc::unsupported, 1}, {errc::invalid_argument, 2},
      {errc::no_sender, 3},   {errc::no_receiver, 3},
      {errc::integrity, 4},   {errc::source_changed, 4},
      {errc::incomplete, 5},  {errc::receiver_lost, 5},
      {errc::refused, 6},     {errc::interrupted, 130},
      {errc::stale_base, 4},
      {errc::unknown_version, 1},
  };
  for (const auto& [code, number] : promised) BOOST_TEST(static_cast<int>(exit_code_of(code)) == number, name(code));
  // A code added to errc must be decided on here, too.
  BOOST_TEST(std::size(promised) == static_cast<std::size_t>(errc::unknown_version) + 1);
}

BOOST_AUTO_TEST_CASE(nothing_but_ok_is_a_success) {
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<errc>(i);
    BOOST_TEST((exit_code_of(code) == exit_complete) == (code == errc::ok));
  }
}

BOOST_AUTO_TEST_SUITE_END()
