// NCCL's syntax, its examples among the cases.
#include "transports/verbs/device_selector.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

using namespace ddf;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(verbs_selector)

struct sample {
  const char* text;
  const char* device;
  unsigned port;
  bool matches;
};
static std::ostream& operator<<(std::ostream& o, const sample& s) { return o << s.text << " of " << s.device << ":" << s.port; }

static const std::vector<sample> samples{
    {"", "mlx5_0", 1, true},
    {"mlx5", "mlx5_0", 1, true}, {"mlx5", "mlx5_7", 2, true}, {"mlx5", "rxe0", 1, false},
    {"mlx5_0", "mlx5_0", 2, true}, {"mlx5_1", "mlx5_10", 1, true}, {"mlx5_0", "mlx5_1", 1, false},
    {"mlx5_0:1", "mlx5_0", 1, true}, {"mlx5_0:1", "mlx5_0", 2, false},
    {"mlx5_0:1,mlx5_1:1", "mlx5_1", 1, true}, {"mlx5_0:1,mlx5_1:1", "mlx5_1", 2, false}, {"mlx5_0,,mlx5_1", "mlx5_1", 1, true},
    {"=mlx5_1", "mlx5_1", 1, true}, {"=mlx5_1", "mlx5_10", 1, false}, {"=mlx5_0:1,mlx5_1:1", "mlx5_0", 1, true},
    {"^mlx5_2", "mlx5_2", 1, false}, {"^mlx5_2", "mlx5_0", 1, true}, {"^mlx5_2", "mlx5_20", 1, false}, {"^mlx5_2:1", "mlx5_2", 2, true},
    {"^=mlx5_2", "mlx5_2", 1, false}, {"^=mlx5_2", "mlx5_20", 1, true}, {"^=mlx5_3,mlx5_4", "mlx5_4", 1, false},
};

BOOST_DATA_TEST_CASE(a_device_is_chosen_as_nccl_would, bdata::make(samples), s) {
  const auto selector = device_selector::parse(s.text);
  BOOST_REQUIRE(selector.has_value());
  BOOST_TEST(selector->matches(s.device, s.port) == s.matches);
}

BOOST_DATA_TEST_CASE(what_is_no_selector_is_refused_with_the_syntax, bdata::make({"^", "=", "^=", ",", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "mlx5_0:1:2", ":1", "=^mlx5_0", "mlx5_0,^mlx5_1", "mlx5_0 mlx5_1", "mlx5_0:-1"}), text) {
  const auto selector = device_selector::parse(text);
  BOOST_REQUIRE(!selector.has_value());
  BOOST_TEST((selector.error().code == errc::invalid_argument));
  BOOST_TEST(selector.error().what.find("mlx5_0:1,mlx5_1") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
