#include "codecs/delta/record.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include <algorithm>
#include <vector>

#include "codecs/delta/workspace.hpp"
#include "tests/support/delta_pairs.hpp"

using namespace ddf;
using namespace ddf::delta;
using namespace ddf::test;

// Buffers of exactly the size, so that a sanitizer sees a byte too far.
struct both_ways {
  workspace w;
  bool ok(element e, const std::vector<std::byte>& base, const std::vector<std::byte>& target, profile p) {
    std::vector<std::byte> record;
    encode_record(w, e, base, target, p, record);
    record.shrink_to_fit();
    if (record.size() > target.size() + record_overhead_bytes_max) return false;
    std::vector<std::byte> made(target.size());
    if (!decode_record(w, e, base, record, made) || made != target) return false;
    if (base.empty()) return true;
    made = base;
    return decode_record_in_place(w, e, record, made) && made == target;
  }
};

BOOST_AUTO_TEST_SUITE(delta_record_property)

BOOST_AUTO_TEST_CASE(every_length_of_every_element_comes_back) {
  both_ways b;
  prng random(7);
  const auto elements = every_element();
  for (std::size_t n = 1; n < 4100; ++n)
    for (const std::size_t width : {1, 2, 4, 8}) {
      element e;
      do e = elements[random.next() % elements.size()];
      while (width_of(e) != width);
      const change how = every_change[random.next() % std::size(every_change)];
      const auto base = weights(random, e, n), target = changed(random, e, base, how);
      const profile p = random.next() % 2 != 0 ? profile::tight : profile::fast;
      const bool ok = b.ok(e, n % 16 == 3 ? std::vector<std::byte>() : base, target, p);
      if (!ok) BOOST_ERROR("length " << n << ", element " << int(e) << ", change " << int(how) << ", profile " << int(p));
    }
}

RC_BOOST_PROP(any_pair_comes_back, (std::uint64_t seed)) {
  static both_ways b;
  prng random(seed);
  const auto elements = every_element();
  const element e = elements[random.next() % elements.size()];
  const std::size_t n = 1 + random.next() % (random.next() % 4 == 0 ? 200'000 : 3000);
  const auto base = weights(random, e, n);
  // Several kinds of change in one record.
  std::vector<std::byte> target;
  for (std::size_t at = 0; at < n;) {
    const std::size_t length = std::min<std::size_t>(1 + random.next() % n, n - at);
    const std::vector<std::byte> part(base.begin() + static_cast<std::ptrdiff_t>(at), base.begin() + static_cast<std::ptrdiff_t>(at + length));
    const auto made = changed(random, e, part, every_change[random.next() % std::size(every_change)]);
    target.insert(target.end(), made.begin(), made.end());
    at += length;
  }
  RC_ASSERT(b.ok(e, base, target, random.next() % 2 != 0 ? profile::tight : profile::fast));
}

RC_BOOST_PROP(scalar_and_vector_code_make_and_read_the_same, (std::uint64_t seed)) {
  static workspace fast, plain = [] {
    workspace w;
    w.use_scalar_only();
    return w;
  }();
  prng random(seed);
  const auto elements = every_element();
  const element e = elements[random.next() % elements.size()];
  const std::size_t n = 1 + random.next() % 60'000;
  const auto base = weights(random, e, n), target = changed(random, e, base, every_change[random.next() % std::size(every_change)]);
  const profile p = random.next() % 2 != 0 ? profile::tight : profile::fast;
  std::vector<std::byte> one, other;
  encode_record(fast, e, base, target, p, one);
  encode_record(plain, e, base, target, p, other);
  RC_ASSERT(one == other);
  std::vector<std::byte> made(n);
  RC_ASSERT(decode_record(plain, e, base, one, made) && made == target);
  made = base;
  RC_ASSERT(decode_record_in_place(plain, e, one, made) && made == target);
}

// Damage: an answer of some kind, and memory that is not the record's stays as it is (the sanitizers' part).
RC_BOOST_PROP(a_damaged_record_is_refused_or_makes_something, (std::uint64_t seed)) {
  static workspace w;
  prng random(seed);
  const auto elements = every_element();
  const element e = elements[random.next() % elements.size()];
  const std::size_t n = 1 + random.next() % 5000;
  const auto base = weights(random, e, n), target = changed(random, e, base, every_change[random.next() % std::size(every_change)]);
  std::vector<std::byte> record;
  encode_record(w, e, base, target, random.next() % 2 != 0 ? profile::tight : profile::fast, record);
  if (random.next() % 4 == 0) record.resize(random.next() % (record.size() + 1));
  for (std::size_t i = random.next() % 4; i-- != 0 && !record.empty();) record[random.next() % std::min<std::size_t>(record.size(), 64)] ^= static_cast<std::byte>(1u << random.next() % 8);
  record.shrink_to_fit();
  std::vector<std::byte> made(n), in_place = base;
  const bool one = decode_record(w, e, base, record, made), other = decode_record_in_place(w, e, record, in_place);
  RC_ASSERT(one == other);
  if (one) RC_ASSERT(made == in_place);
}

BOOST_AUTO_TEST_SUITE_END()
