#include "lib/session/repair_queue.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/wanted_by.hpp"

using namespace ddf;

RC_BOOST_PROP(repair_queue_agrees_with_a_map_of_segments, ()) {
  constexpr std::uint64_t end = 40;
  repair_queue queue;
  test::wanted_by model;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto a = *rc::gen::inRange<std::uint64_t>(0, end);
    const auto b = *rc::gen::inRange<std::uint64_t>(a, end + 1);
    if (*rc::gen::inRange(0, 4) != 0) {
      const std::uint32_t receiver = *rc::gen::elementOf(std::vector<std::uint32_t>{0, 1, 2, repair_queue::several});
      queue.add({a, b}, receiver), model.add({a, b}, receiver);
    } else {
      queue.erase({a, b}), model.erase({a, b});
    }
    RC_ASSERT(test::difference(queue, model, end) == "");
  }
}
