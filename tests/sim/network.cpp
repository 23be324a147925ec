// The simulator's own promises.
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;

namespace {
struct listener final : process {
  explicit listener(network& n, const node_options& o) : net(n), node(n.attach(*this, o)) {}
  void receive(time_point now, path, bool to_group, std::span<const std::byte> bytes) override { got.push_back({now, bytes.size(), to_group}), last.assign(bytes.begin(), bytes.end()); }
  void wake(time_point now) override { woken.push_back(now); }
  void say(const destination& to, std::size_t bytes) { net.send(node, to, std::make_shared<const datagram>(std::vector<std::byte>(bytes, std::byte{7}))); }
  struct arrival {
    time_point when;
    std::size_t bytes;
    bool to_group;
  };
  network& net;
  network::node_id node;
  std::vector<arrival> got;
  std::vector<std::byte> last;
  std::vector<time_point> woken;
};
}  // namespace

static destination to(const network& net, network::node_id n) { return {false, 0, {net.address(n), 0}}; }

BOOST_AUTO_TEST_CASE(a_group_packet_reaches_every_other_member) {
  network net(1);
  node_options o = clean_network();
  listener a(net, o), b(net, o), c(net, o);
  o.in_group = false;
  listener outside(net, o);
  a.say({true, 1, {}}, 100);
  net.run_for(1ms);
  BOOST_TEST(a.got.size() == 0u);
  BOOST_TEST(b.got.size() == 1u);
  BOOST_TEST(c.got.size() == 1u);
  BOOST_TEST(outside.got.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_packet_takes_two_cables_and_the_time_on_the_wire) {
  network net(1);
  node_options o = clean_network();
  o.up.rate_bytes_per_s = 1'000'000;
  listener a(net, o), b(net, o);
  a.say(to(net, b.node), 1000 - 28 - 38);
  net.run_for(10ms);
  BOOST_TEST(seconds(b.got.at(0).when.time_since_epoch()) > 0.00104);
  BOOST_TEST(seconds(b.got.at(0).when.time_since_epoch()) < 0.001042);
}

BOOST_AUTO_TEST_CASE(a_socket_buffer_of_the_default_size_holds_92_packets) {
  network net(1);
  node_options o = clean_network();
  listener a(net, o);
  o.buffer_bytes = 212'992;
  listener b(net, o);
  net.pause(b.node, 1s);
  for (int i = 0; i < 200; ++i) a.say(to(net, b.node), 1400);
  net.run_for(2s);
  BOOST_TEST(b.got.size() == 92u);
  BOOST_TEST(net.overflows(b.node) == 108u);
}

BOOST_AUTO_TEST_CASE(a_full_queue_and_a_small_mtu_lose_packets) {
  network net(1);
  node_options o = clean_network();
  o.down.queue_bytes = 10'000;
  o.down.rate_bytes_per_s = 1'000'000;
  listener a(net, o), b(net, o);
  for (int i = 0; i < 20; ++i) a.say(to(net, b.node), 972);
  a.say(to(net, b.node), 1473);
  net.run_for(1s);
  BOOST_TEST(b.got.size() == 9u);   // a frame waits with its 38 bytes of preamble and headers
  BOOST_TEST(net.count().lost_queue == 11u);
  BOOST_TEST(net.count().lost_mtu == 1u);
}

BOOST_AUTO_TEST_CASE(a_timer_fires_once_and_no_earlier_than_asked) {
  network net(1);
  listener a(net, clean_network());
  net.wake_at(a.node, time_point{} + 5ms);
  net.wake_at(a.node, time_point{} + 3ms);
  net.wake_at(a.node, time_point{} + 7ms);
  net.run_for(20ms);
  BOOST_TEST(a.woken.size() == 1u);
  BOOST_TEST((a.woken.at(0) >= time_point{} + 7ms));
  BOOST_TEST((a.woken.at(0) <= time_point{} + 7ms + 40us));
}

BOOST_AUTO_TEST_CASE(events_come_in_order_over_any_distance) {
  event_queue q;
  prng random(3);
  std::vector<std::int64_t> times;
  std::int64_t now = 0;
  std::size_t queued = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (queued == 0 || random.next() % 2 != 0) {
      q.push(time_point(duration(now + static_cast<std::int64_t>(random.next() % (std::uint64_t(1) << random.next() % 40)))), event_kind::call, 0, 0);
      ++queued;
    } else {
      const std::int64_t next = q.next().time_since_epoch().count();
      BOOST_REQUIRE((q.pop().when.time_since_epoch().count() == next));
      BOOST_REQUIRE(next >= now);
      now = next;
      --queued;
    }
  }
}

BOOST_AUTO_TEST_CASE(packets_are_written_as_pcap) {
  const auto file = std::filesystem::temp_directory_path() / ("ddf-sim-" + std::to_string(::getpid()) + ".pcap");
  {
    network net(1);
    net.write_pcap(file.string());
    listener a(net, clean_network()), b(net, clean_network());
    a.say(to(net, b.node), 10);
    a.say({true, 1, {}}, 20);
  }
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(file);
  BOOST_TEST(bytes.size() == 24u + (16 + 42 + 10) + (16 + 42 + 20));
  BOOST_TEST(bytes.substr(0, 4) == "\xa1\xb2\x3c\x4d");
  const std::string group = bytes.substr(24 + 16 + 42 + 10 + 16);
  BOOST_TEST(group.substr(0, 6) == std::string("\x01\x00\x5e\x4d\x07\x07", 6));
  BOOST_TEST(group.substr(30, 4) == std::string("\xef\x4d\x07\x07", 4));
}

BOOST_AUTO_TEST_CASE(a_disk_does_not_reveal_wrong_bytes) {
  const auto truth = std::make_shared<content>(std::vector<object_spec>{{.parts = {100'000}}}, 1);
  disk d;
  std::string key;
  BOOST_REQUIRE(d.open(truth->objects()[0], truth, 0, key).has_value());
  BOOST_REQUIRE(d.write(key, 0, 0, truth->part(0, 0).first(99'999)).has_value());
  BOOST_CHECK_THROW(static_cast<void>(d.commit(key, truth->table(0).root)), std::logic_error);
  const std::byte wrong[] = {truth->part(0, 0)[99'999] ^ std::byte{1}};
  BOOST_REQUIRE(d.write(key, 0, 99'999, wrong).has_value());
  BOOST_CHECK_THROW(static_cast<void>(d.commit(key, truth->table(0).root)), std::logic_error);
  BOOST_REQUIRE(d.write(key, 0, 99'999, truth->part(0, 0).subspan(99'999)).has_value());
  BOOST_TEST(d.commit(key, truth->table(0).root).has_value());
  BOOST_TEST(d.visible("model"));
}
