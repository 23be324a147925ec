// Rates, sizes, times and counts of the command line (CASES 50 and 55).
#include <limits>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include "tools/common/units.hpp"

using namespace ddf;
using namespace ddf::tools;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view rubbish[] = {"",   " ",   "-1",  "-5M", "+3", "1e9", "0x10",      "abc", "M",   "1..5", ".5",
                                        "5.", "1,5", "1 2", "10X", "5 ", " 5",  "1.1234567", "nan", "inf", "١"};

void says_what_is_allowed(const error& e, std::string_view text) {
  BOOST_TEST((e.code == errc::invalid_argument));
  BOOST_TEST(e.what.find("read '" + std::string(text) + "'") != std::string::npos, e.what);
  BOOST_TEST(e.what.find("allowed: ") != std::string::npos, e.what);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tool_units)

BOOST_AUTO_TEST_CASE(rates_are_bits_per_second_unless_they_say_bytes) {
  const std::pair<std::string_view, std::uint64_t> cases[] = {
      {"8000", 1'000},          {"1k", 125},
      {"1kbit", 125},           {"1K", 125},
      {"10G", 1'250'000'000},   {"10g", 1'250'000'000},
      {"400Mbit", 50'000'000},  {"400 Mbit/s", 50'000'000},
      {"400Mbps", 50'000'000},  {"400mbit", 50'000'000},
      {"1.5Gbit", 187'500'000}, {"0.1M", 12'500},
      {"100M", 12'500'000},     {"100Mb/s", 12'500'000},
      {"80MB/s", 80'000'000},   {"80MBps", 80'000'000},
      {"80MB", 80'000'000},     {"80MiB/s", 80u << 20},
      {"125B/s", 125},          {"1.5GB/s", 1'500'000'000},
  };
  for (const auto& [text, bytes_per_s] : cases) {
    const auto rate = parse_rate(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST_REQUIRE(rate.has_value());
      BOOST_TEST(*rate == bytes_per_s);
    }
  }
}

BOOST_AUTO_TEST_CASE(rates_from_1_kbit_to_1600_gbit_are_taken_and_no_others) {
  BOOST_TEST(parse_rate("1kbit").value() == 125u);
  BOOST_TEST(parse_rate("1.6T").value() == 200'000'000'000u);
  BOOST_TEST(parse_rate("1600G").value() == 200'000'000'000u);
  BOOST_TEST(parse_rate("200GB/s").value() == 200'000'000'000u);
  for (const std::string_view text : {"0", "999", "0.9k", "1.7T", "1601G", "201GB/s", "18446744073709551615",
                                      "18446744073709551616", "99999999999999999999999T", "18446744T", "2305843010T"}) {
    const auto rate = parse_rate(text);
    BOOST_TEST_REQUIRE(!rate.has_value(), text);
    says_what_is_allowed(rate.error(), text);
  }
}

BOOST_AUTO_TEST_CASE(sizes_count_in_1024s_unless_they_say_mb) {
  const std::pair<std::string_view, std::uint64_t> cases[] = {
      {"0", 0},
      {"65536", 65536},
      {"512k", 512 << 10},
      {"512K", 512 << 10},
      {"64M", 64 << 20},
      {"64MiB", 64 << 20},
      {"64 MiB", 64 << 20},
      {"1G", 1 << 30},
      {"1.5k", 1536},
      {"64MB", 64'000'000},
      {"1kB", 1'000},
      {"2T", std::uint64_t{2} << 40},
      {"10B", 10},
      {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST_REQUIRE(size.has_value());
      BOOST_TEST(*size == bytes);
    }
  }
  for (const std::string_view text : {"1.5", "64Mbit", "64MB/s", "16777216T", "99999999999999T"})
    BOOST_TEST(!parse_size(text).has_value(), text);
}

BOOST_AUTO_TEST_CASE(times_take_every_unit_and_bare_seconds) {
  const std::pair<std::string_view, std::chrono::nanoseconds> cases[] = {
      {"30s", 30s},
      {"250ms", 250ms},
      {"2m", 2min},
      {"2min", 2min},
      {"1h", 1h},
      {"1d", 24h},
      {"365d", 365 * 24h},
      {"50us", 50us},
      {"50µs", 50us},
      {"7ns", 7ns},
      {"1.5s", 1500ms},
      {"0.25ms", 250us},
      {"1.5h", 90min},
      {"0.5d", 12h},
      {"30", 30s},
      {"0", 0s},
      {"0s", 0s},
      {"0.000001s", 1us},
      {"1.000001d", 24h + 86'400us},
  };
  for (const auto& [text, expected] : cases) {
    const auto time = parse_time(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST_REQUIRE(time.has_value());
      BOOST_TEST(time->count() == expected.count());
    }
  }
  for (const std::string_view text :
       {"366d", "365.1d", "99999999999999999999s", "18446744073709551615ns", "10M", "1y", "30S", "1ks"}) {
    const auto time = parse_time(text);
    BOOST_TEST_REQUIRE(!time.has_value(), text);
    says_what_is_allowed(time.error(), text);
  }
}

BOOST_AUTO_TEST_CASE(counts_are_digits_within_their_bounds) {
  BOOST_TEST(parse_count("0", 0, 255).value() == 0u);
  BOOST_TEST(parse_count("255", 0, 255).value() == 255u);
  BOOST_TEST(parse_count("18446744073709551615", 1, std::numeric_limits<std::uint64_t>::max()).value() ==
             std::numeric_limits<std::uint64_t>::max());
  for (const std::string_view text : {"256", "1k", "1.0", "1.5", "18446744073709551616", "99999999999999999999"})
    BOOST_TEST(!parse_count(text, 0, 255).has_value(), text);
  BOOST_TEST(!parse_count("18446744073709551616", 1, std::numeric_limits<std::uint64_t>::max()).has_value());
  BOOST_TEST(!parse_count("0", 1, 9).has_value());
}

BOOST_AUTO_TEST_CASE(rubbish_is_refused_by_all) {
  for (const auto text : rubbish) {
    BOOST_TEST_CONTEXT("'" << text << "'") {
      for (const auto& e : {parse_rate(text).map([](auto) {}), parse_size(text).map([](auto) {}),
                            parse_time(text).map([](auto) {}), parse_count(text, 0, 9).map([](auto) {})}) {
        BOOST_TEST_REQUIRE(!e.has_value());
        says_what_is_allowed(e.error(), text);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(amounts_read_well_where_units_change) {
  BOOST_TEST(bytes_text(0) == "0 B");
  BOOST_TEST(bytes_text(1023) == "1023 B");
  BOOST_TEST(bytes_text(1024) == "1.00 KiB");
  BOOST_TEST(bytes_text(64 << 20) == "64.0 MiB");
  BOOST_TEST(bytes_text((1 << 20) - 1) == "1.00 MiB");
  BOOST_TEST(bytes_text(std::numeric_limits<std::uint64_t>::max()) == "16.0 EiB");
  BOOST_TEST(rate_text(0) == "0 bit/s");
  BOOST_TEST(rate_text(-1) == "0 bit/s");
  BOOST_TEST(rate_text(125) == "1.00 kbit/s");
  BOOST_TEST(rate_text(1.25e9) == "10.0 Gbit/s");
  BOOST_TEST(rate_text(12.5e6) == "100 Mbit/s");
  BOOST_TEST(rate_text(2e11) == "1.60 Tbit/s");
  BOOST_TEST(rate_text(124.999e6) == "1.00 Gbit/s");
  BOOST_TEST(clock_text(7) == "0:07");
  BOOST_TEST(clock_text(754) == "12:34");
  BOOST_TEST(clock_text(3723) == "1:02:03");
  BOOST_TEST(clock_text(-1) == "0:00");
  BOOST_TEST(!clock_text(1e300).empty());
}

BOOST_AUTO_TEST_SUITE_END()
