// The progress display fits its terminal and does not lie.
#include <string>

#include <boost/test/unit_test.hpp>

#include "tools/common/progress_line.hpp"

using namespace ddf;
using namespace ddf::tools;

namespace {

progress half() {
  progress p;
  p.phase = progress::phase::sending;
  p.bytes_done = 32 << 20;
  p.bytes_total = 64 << 20;
  p.bytes_per_s = 1 << 20;
  p.receivers_joined = 4;
  p.receivers_complete = 1;
  p.nacks = 12;
  p.current = "acme/pölicy\x1b[2J";
  return p;
}

bool has(const std::string& line, std::string_view text) { return line.find(text) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(tool_progress_line)

BOOST_AUTO_TEST_CASE(a_wide_line_says_everything) {
  const auto line = progress_line(half(), true, 3, 140);
  for (const auto* part :
       {"sending", "[", "#", "-", "]", " 50%", "8.39 Mbit/s", "ETA 0:32", "1/4 receivers", "12 NACKs", "acme/pölicy"})
    BOOST_TEST(has(line, part), part << " is missing in: " << line);
  BOOST_TEST(!has(line, "\x1b"));
  BOOST_TEST(!has(progress_line(half(), false, 3, 140), "receivers"));
}

BOOST_AUTO_TEST_CASE(no_line_is_wider_than_it_may_be) {
  for (const bool sender : {false, true})
    for (std::size_t columns = 0; columns <= 200; ++columns) {
      const auto line = progress_line(half(), sender, 3, columns);
      BOOST_TEST(columns_of(line) <= columns, line);
      BOOST_TEST(line.empty() == (columns == 0));
      if (columns >= 10) BOOST_TEST(has(line, "sending"), columns);
      if (columns >= 79) BOOST_TEST(has(line, "["), columns);
    }
}

BOOST_AUTO_TEST_CASE(it_says_100_percent_at_the_end_only) {
  auto p = half();
  p.bytes_done = p.bytes_total - 1;
  BOOST_TEST(has(progress_line(p, true, 3, 100), " 99%"));
  p.bytes_done = p.bytes_total;
  BOOST_TEST(has(progress_line(p, true, 3, 100), "100%"));
  p.bytes_done = p.bytes_total + 1;  // repairs may be counted twice
  BOOST_TEST(has(progress_line(p, true, 3, 100), "100%"));
  BOOST_TEST(!has(progress_line(p, true, 3, 100), "ETA"));
}

BOOST_AUTO_TEST_CASE(nothing_is_known_at_first) {
  BOOST_TEST(progress_line({}, false, 7, 80) == "waiting for a sender  0:07");
  BOOST_TEST(progress_line({}, true, 7, 80) == "waiting for receivers  0:07  0 joined");
  progress p;
  p.phase = progress::phase::receiving;  // of an empty object
  BOOST_TEST(!has(progress_line(p, false, 7, 80), "%"));
  BOOST_TEST(!has(progress_line(p, false, 7, 80), "ETA"));
}

BOOST_AUTO_TEST_SUITE_END()
