// What every run has to keep, whatever its network.
#pragma once
#include <boost/test/unit_test.hpp>

#include "transports/sim/scenario.hpp"

namespace ddf::sim {

/// No receiver that lacks something says that all is well; what is visible is whole (the simulated disk sees to that).
inline void expect_honesty(scenario& s) {
  for (std::uint32_t n = 0; n < s.receivers(); ++n)
    if (s.runs(n) && s.receiver(n).outcome() && s.receiver(n).succeeded()) BOOST_TEST(s.has_all(n), s.summary());
}

/// Sender and receivers end within `limit`, well or not, and none says more than is true.
inline void expect_end(scenario& s, duration limit) {
  const bool ended = s.run_until_ended(limit);
  BOOST_TEST(ended, "not ended: " << s.summary());
  expect_honesty(s);
}

/// Sender and receivers end within `limit`, all well, with everything everywhere.
inline void expect_success(scenario& s, duration limit) {
  const bool ended = s.run_until_ended(limit);
  BOOST_TEST(ended, "not ended: " << s.summary());
  BOOST_TEST(s.all_complete(), s.summary());
  for (std::uint32_t n = 0; n < s.receivers(); ++n) BOOST_TEST((s.runs(n) && s.receiver(n).succeeded()), "receiver " << n << ": " << s.summary());
  BOOST_TEST(s.sender().succeeded(), s.summary());
  expect_honesty(s);
}

/// Whether one of the notes contains `text`.
inline bool said(const std::vector<std::string>& notes, std::string_view text) {
  for (const std::string& n : notes)
    if (n.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace ddf::sim
