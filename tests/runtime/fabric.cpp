// One-sided reads: what is read is what is there, whatever ends, stops, is refused or fails meanwhile.
#include "transports/fabric/fabric_endpoint.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"

using namespace ddf;
using namespace std::chrono_literals;
namespace bdata = boost::unit_test::data;

namespace ddf {
static std::ostream& operator<<(std::ostream& o, repair_lane lane) { return o << (lane == repair_lane::shm ? "shm" : "tcp"); }
}  // namespace ddf

BOOST_AUTO_TEST_SUITE(fabric)

static const std::vector<repair_lane> lanes{repair_lane::tcp, repair_lane::shm};

static bool there(repair_lane lane) {
  const auto found = find_fabric(lane, "127.0.0.1");
  if (found) return true;
  BOOST_TEST_MESSAGE("SKIP: " << describe(found.error()));
  return false;
}

static std::unique_ptr<fabric_endpoint> open(repair_lane lane, fabric_options o = {}) {
  o.lane = lane;
  o.local_address = "127.0.0.1";
  auto e = fabric_endpoint::open(o);
  BOOST_REQUIRE_MESSAGE(e.has_value(), (e ? std::string() : describe(e.error())));
  return std::move(*e);
}

static std::vector<std::byte> random_bytes(std::size_t bytes, std::uint64_t seed) {
  prng rng(seed);
  std::vector<std::byte> out(bytes);
  for (auto& b : out) b = static_cast<std::byte>(rng.next() & 0xff);
  return out;
}

// The answers of reads, in the order they came.
class answers {
 public:
  fabric_endpoint::answer take(std::size_t index = 0) {
    return [this, index](result<void> r) {
      const std::lock_guard lock(mutex_);
      came_.emplace_back(index, std::move(r));
      changed_.notify_all();
    };
  }
  std::vector<std::pair<std::size_t, result<void>>> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 60s, [&] { return came_.size() >= count; });
    BOOST_REQUIRE(came_.size() == count);
    return came_;
  }
  result<void> one() { return wait(1).front().second; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::size_t, result<void>>> came_;
};

static std::string words(const result<void>& r) { return r ? "ok" : describe(r.error()); }

static remote_read from(const fabric_endpoint& peer, const fabric_memory& there, fabric_memory& into) {
  remote_read r;
  r.peer.assign(peer.address().begin(), peer.address().end());
  r.address = there.address();
  r.key = there.key();
  r.into = &into;
  r.bytes = into.bytes().size();
  r.deadline = 20s;
  return r;
}

BOOST_DATA_TEST_CASE(reads_of_all_sizes_bring_equal_bytes, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  const auto a = open(lane), b = open(lane);
  BOOST_TEST(a->address().size() <= fabric_address_bytes_max);
  auto source = random_bytes((20 << 20) + 64, 1);
  std::vector<std::byte> target(source.size());
  const auto source_memory = b->register_memory(source), target_memory = a->register_memory(target);
  BOOST_REQUIRE((source_memory && target_memory));
  for (const std::size_t bytes : {1u, 2u, 63u, 4095u, 4096u, 65537u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, 20u << 20}) {
    std::ranges::fill(target, std::byte{});
    const std::size_t there_at = bytes % 61 + 1, here_at = bytes % 53 + 3;
    remote_read r = from(*b, **source_memory, **target_memory);
    r.address += there_at;
    r.offset = here_at;
    r.bytes = bytes;
    answers done;
    a->read(r, done.take());
    BOOST_TEST(words(done.one()) == "ok");
    BOOST_TEST(std::ranges::equal(std::span(target).subspan(here_at, bytes), std::span(source).subspan(there_at, bytes)));
    BOOST_TEST((std::ranges::all_of(std::span(target).first(here_at), [](std::byte x) { return x == std::byte{}; }) &&
                std::ranges::all_of(std::span(target).subspan(here_at + bytes), [](std::byte x) { return x == std::byte{}; })));
  }
  const auto n = a->count();
  BOOST_TEST(n.reads == 10u);
  BOOST_TEST(n.connections == 1u);
  BOOST_TEST(n.splits == 1u + 19u);
}

BOOST_AUTO_TEST_SUITE_END()
