#include "lib/model/range_set.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/number_set.hpp"

using namespace ddf;

RC_BOOST_PROP(range_set_agrees_with_a_set_of_numbers, ()) {
  constexpr std::uint64_t end = 24;
  range_set set;
  test::number_set model;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto a = *rc::gen::inRange<std::uint64_t>(0, end);
    const auto b = *rc::gen::inRange<std::uint64_t>(a, end + 1);
    if (*rc::gen::inRange(0, 3) != 0) RC_ASSERT(set.insert(a, b) == model.insert(a, b));
    else RC_ASSERT(set.erase(a, b) == model.erase(a, b));
    RC_ASSERT(set.to_vector() == model.to_vector());
  }
  RC_ASSERT(std::string(test::difference(set, model, end)).empty());
}
