#include "codecs/digest.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include <algorithm>
#include <vector>

#include "lib/model/prng.hpp"

using namespace ddf;

RC_BOOST_PROP(a_digest_stream_equals_one_shot_however_it_is_cut, ()) {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(*rc::gen::inRange(0, 400)));
  prng rng(*rc::gen::arbitrary<std::uint64_t>());
  for (auto& word : bytes) word = rng.next();
  const auto all = std::as_bytes(std::span(bytes));
  digest_stream s;
  for (auto rest = all; !rest.empty();) {
    const auto n = static_cast<std::size_t>(rng.next() % std::min<std::size_t>(rest.size() + 1, 700));
    s.update(rest.first(n));
    rest = rest.subspan(n);
    if (n == 0) s.update({});
  }
  RC_ASSERT(s.finish() == digest_of(all));
}
