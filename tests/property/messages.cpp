#include "tests/support/messages.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/sealed.hpp"

using namespace ddf;

RC_BOOST_PROP(every_message_round_trips_and_so_do_its_bytes, (std::uint64_t seed)) {
  prng rng(seed);
  for (std::size_t kind = 0; kind < 11; ++kind) {
    const message m = test::random_message(rng, kind);
    const auto datagram = write_message(m, rng.next() % 2 == 0 ? 0 : rng.next() % 1500);
    const auto back = parse_message(datagram);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == m);
    RC_ASSERT(write_message(*back, datagram.size()) == datagram);
  }
}

RC_BOOST_PROP(what_parses_after_damage_writes_back_to_the_same_bytes, (std::uint64_t seed)) {
  prng rng(seed);
  for (std::size_t kind = 0; kind < 44; ++kind) {
    auto datagram = write_message(test::random_message(rng, kind));
    const auto changes = 1 + rng.next() % 3;
    for (std::uint64_t i = 0; i < changes; ++i) datagram[rng.next() % datagram.size()] = static_cast<std::byte>(rng.next() & 0xff);
    if (rng.next() % 4 == 0) datagram.resize(rng.next() % (datagram.size() + 20));
    if (datagram.size() >= 16) test::seal(datagram);
    if (const auto back = parse_message(datagram)) RC_ASSERT(write_message(*back) == datagram);
  }
}
