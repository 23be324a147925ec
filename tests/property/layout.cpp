#include "lib/model/layout.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/catalogues.hpp"
#include "tests/support/layout_check.hpp"

using namespace ddf;

RC_BOOST_PROP(layout_covers_every_catalogue_once, ()) {
  catalogue c;
  const auto objects = *rc::gen::inRange(1, 6);
  for (int o = 0; o < objects; ++o) {
    const auto shift = *rc::gen::inRange(16, 19);
    const auto block = std::uint32_t(1) << shift;
    const auto near = [&] {   // sizes that like to be at the edges
      const auto k = *rc::gen::inRange<std::uint64_t>(0, 3);
      const auto d = *rc::gen::inRange<std::int64_t>(-2, 3);
      const auto size = static_cast<std::int64_t>(k * block) + d;
      return *rc::gen::arbitrary<bool>() ? static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)) : *rc::gen::inRange<std::uint64_t>(0, 3 * block);
    };
    if (*rc::gen::arbitrary<bool>()) {
      c.push_back(test::file("f" + std::to_string(o), near(), block));
    } else {
      std::vector<std::uint64_t> sizes(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
      for (auto& s : sizes) s = near();
      c.push_back(test::folder("d" + std::to_string(o), sizes, block));
    }
  }
  RC_ASSERT(check_catalogue(c).has_value());
  const auto segment = *rc::gen::elementOf(std::vector<std::uint32_t>{512, 777, 1216, 1456, 8956, 65000});
  const layout l(c, segment);
  RC_ASSERT(test::fault(l, c) == "");
  RC_ASSERT(test::fault(l, c, 0, l.blocks()) == "");
  const std::uint64_t first = *rc::gen::inRange<std::uint64_t>(0, l.segments()), last = *rc::gen::inRange<std::uint64_t>(first, l.segments() + 1);
  layout::load sum;
  for (std::uint64_t x = first; x < last; ++x) sum.bytes += l.segment(x).bytes, sum.data_segments += !l.segment(x).table;
  RC_ASSERT(l.load_of(first, last).bytes == sum.bytes);
  RC_ASSERT(l.load_of(first, last).data_segments == sum.data_segments);
}
