#include "lib/session/window_control.hpp"

#include <boost/test/unit_test.hpp>

using namespace ddf;

BOOST_AUTO_TEST_SUITE(window_control_)

BOOST_AUTO_TEST_CASE(it_starts_small_doubles_and_stops_at_the_cap) {
  window_control w({.initial = 64, .least = 16, .tolerated = 0.02});
  w.set_cap(1000);
  BOOST_TEST(w.packets() == 64u);
  for (const std::uint64_t expected : {128u, 256u, 512u, 1000u, 1000u}) {
    w.window_confirmed(0);
    BOOST_TEST(w.packets() == expected);
  }
}

BOOST_AUTO_TEST_CASE(a_cap_that_falls_shrinks_it_at_once_but_not_below_the_least) {
  window_control w({.initial = 512, .least = 16, .tolerated = 0.02});
  w.set_cap(100);
  BOOST_TEST(w.packets() == 100u);
  w.set_cap(3);
  BOOST_TEST(w.packets() == 16u);
  w.set_cap(0);
  BOOST_TEST(w.packets() == 16u);
}

BOOST_AUTO_TEST_CASE(without_a_cap_it_grows_for_ever_without_overflow) {
  window_control w;
  for (int i = 0; i < 2000; ++i) w.window_confirmed(0);
  BOOST_TEST(w.packets() == w.cap());
}

// A link that carries 500 packets: what is beyond is lost. The window must settle about there.
BOOST_AUTO_TEST_CASE(loss_that_grows_with_the_window_shrinks_it) {
  window_control w({.initial = 64, .least = 16, .tolerated = 0.02});
  w.set_cap(1 << 14);
  double sum = 0;
  for (int i = 0; i < 400; ++i) {
    const auto packets = static_cast<double>(w.packets());
    w.window_confirmed(packets > 500 ? (packets - 500) / packets : 0);
    if (i >= 200) sum += static_cast<double>(w.packets());
  }
  BOOST_TEST(sum / 200 < 900);
  BOOST_TEST(sum / 200 > 250);
}

// A link that loses a twentieth of everything, however few: shrinking would be in vain.
BOOST_AUTO_TEST_CASE(loss_that_does_not_depend_on_the_window_does_not_shrink_it) {
  for (const double loss : {0.01, 0.05, 0.15}) {
    window_control w({.initial = 64, .least = 16, .tolerated = 0.02});
    w.set_cap(4000);
    double sum = 0;
    for (int i = 0; i < 400; ++i) {
      w.window_confirmed(loss);
      if (i >= 100) sum += static_cast<double>(w.packets());
    }
    BOOST_TEST(sum / 300 > 3000, "at loss " << loss << " the mean window is " << sum / 300);
  }
}

BOOST_AUTO_TEST_CASE(a_full_local_queue_shrinks_it) {
  window_control w({.initial = 1000, .least = 16, .tolerated = 0.02});
  w.local_queue_full();
  BOOST_TEST(w.packets() == 700u);
  for (int i = 0; i < 100; ++i) w.local_queue_full();
  BOOST_TEST(w.packets() == 16u);
}

BOOST_AUTO_TEST_CASE(total_loss_ends_at_the_least_and_recovers) {
  window_control w({.initial = 1024, .least = 16, .tolerated = 0.02});
  w.set_cap(1024);
  for (int i = 0; i < 100; ++i) w.window_confirmed(1);
  for (int i = 0; i < 200; ++i) w.window_confirmed(0);
  BOOST_TEST(w.packets() == 1024u);
}

BOOST_AUTO_TEST_SUITE_END()
