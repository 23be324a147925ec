#include "lib/wire/catalogue_codec.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "lib/model/prng.hpp"
#include "tests/support/catalogues.hpp"

using namespace ddf;

RC_BOOST_PROP(what_parses_as_a_catalogue_writes_back_to_the_same_bytes, (std::uint64_t seed)) {
  prng rng(seed);
  catalogue c;
  for (std::uint64_t o = 0; o < 1 + rng.next() % 4; ++o) {
    if (rng.next() % 2 == 0) c.push_back(test::file("f" + std::to_string(o), rng.next() >> 30));
    else c.push_back(test::folder("d" + std::to_string(o), std::vector<std::uint64_t>(rng.next() % 5, rng.next() >> 40)));
  }
  const auto bytes = write_catalogue(c);
  const auto back = parse_catalogue(bytes);
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == c);
  for (int i = 0; i < 200; ++i) {
    auto damaged = bytes;
    for (std::uint64_t n = 1 + rng.next() % 3; n != 0; --n) damaged[rng.next() % damaged.size()] = static_cast<std::byte>(rng.next() & 0xff);
    if (const auto other = parse_catalogue(damaged)) RC_ASSERT(write_catalogue(*other) == damaged);
  }
}
