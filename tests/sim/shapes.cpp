// What is published: sizes around the block, folders, many objects, catalogues of many packets, several interfaces.
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/sim/expect.hpp"

using namespace ddf;
using namespace ddf::sim;
namespace bdata = boost::unit_test::data;

static node_options lossy() {
  node_options net = clean_network();
  net.down.loss = net.up.loss = 0.03;
  net.down.reorder = 0.2;
  return net;
}

static constexpr std::uint64_t block = 64 << 10;
static const std::vector<std::uint64_t> sizes = {0, 1, 511, block - 1, block, block + 1, 3 * block - 1, 3 * block, 3 * block + 1};

BOOST_DATA_TEST_CASE(an_object_of_any_size_arrives_exactly, bdata::make(sizes) * bdata::xrange(3), size, seed) {
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 3, .objects = {{.parts = {size}}}, .network = lossy()});
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(an_empty_object_takes_one_packet_of_data) {
  scenario s({.receivers = 2, .objects = {{.parts = {0}}}, .network = clean_network()});
  expect_success(s, 10s);
  BOOST_TEST(s.sender().data_datagrams() == 1u);
}

BOOST_DATA_TEST_CASE(a_folder_of_many_parts_arrives, bdata::xrange(3), seed) {
  std::vector<std::uint64_t> parts;
  for (std::uint64_t n = 0; n < 400; ++n) parts.push_back(n % 7 == 0 ? 0 : n * 131 % 5000);
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 3, .objects = {{.name = "folder", .parts = parts}}, .network = lossy()});
  expect_success(s, 20s);
}

BOOST_DATA_TEST_CASE(many_objects_of_one_session_arrive, bdata::xrange(5), seed) {
  std::vector<object_spec> objects;
  for (std::uint64_t n = 0; n < 50; ++n) objects.push_back({.name = "tenant/object-" + std::to_string(n), .parts = {n * 7919 % 200'000}});
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 4, .objects = objects, .network = lossy()});
  expect_success(s, 20s);
}

BOOST_AUTO_TEST_CASE(a_receiver_takes_only_what_it_wants) {
  const std::vector<object_spec> objects = {{.name = "a", .parts = {300'000}}, {.name = "b", .parts = {300'000}}, {.name = "c", .parts = {300'000}}};
  scenario s({.receivers = 2, .objects = objects, .network = lossy(), .each = [](std::uint32_t n, receiver_process::options& o) {
                if (n == 0) o.engine.wanted = [](const manifest& m) { return m.name == "b"; };
              }});
  BOOST_TEST(s.run_until_ended(10s));
  BOOST_TEST(s.receiver(0).succeeded());
  BOOST_TEST(s.storage(0).objects() == 1u);
  BOOST_TEST(s.storage(0).visible("b"));
  BOOST_TEST(s.has_all(1));
}

BOOST_AUTO_TEST_CASE(a_receiver_that_wants_nothing_leaves_at_once) {
  scenario s({.receivers = 2, .network = clean_network(), .each = [](std::uint32_t n, receiver_process::options& o) {
                if (n == 0) o.engine.wanted = [](const manifest&) { return false; };
              }});
  BOOST_TEST(s.run_until_ended(10s));
  BOOST_TEST(s.receiver(0).engine()->wanted_nothing());
  BOOST_TEST(s.sender().engine().receivers_joined() == 1u);
  BOOST_TEST(s.has_all(1));
}

BOOST_DATA_TEST_CASE(a_catalogue_of_many_packets_arrives, bdata::xrange(5), seed) {
  std::vector<object_spec> objects;
  for (std::uint64_t n = 0; n < 3000; ++n) objects.push_back({.name = "a/rather/long/name/for/a/small/file/" + std::to_string(n), .parts = {n % 300}});
  node_options net = lossy();
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 4, .objects = objects, .network = net});
  expect_success(s, 30s);
}

BOOST_AUTO_TEST_CASE(a_receiver_that_comes_late_learns_a_catalogue_of_many_packets) {
  std::vector<object_spec> objects;
  for (std::uint64_t n = 0; n < 1000; ++n) objects.push_back({.name = "a/rather/long/name/for/a/small/file/" + std::to_string(n), .parts = {1000}});
  scenario s({.receivers = 2, .objects = objects, .network = lossy(), .sender = {.engine = {.linger = 3s}}, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_for(2500ms);
  s.start_receiver(1);
  expect_success(s, 10s);
}

BOOST_DATA_TEST_CASE(without_multicast_everything_goes_by_unicast, bdata::xrange(5), seed) {
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 3, .network = lossy(), .sender = {.engine = {.multicast = multicast_use::off}}, .start_receivers = false});
  for (std::uint32_t n = 0; n < 3; ++n) s.start_receiver(n);   // they ask the group, as nothing is announced
  expect_success(s, 10s);
  BOOST_TEST(s.sender().engine().count().group_packets == 0u);
}

BOOST_DATA_TEST_CASE(a_late_receiver_without_multicast_finishes, bdata::xrange(3), seed) {
  std::vector<object_spec> objects;
  for (std::uint64_t n = 0; n < 300; ++n) objects.push_back({.name = "a/rather/long/name/for/a/small/file/" + std::to_string(n), .parts = {1000}});
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 2, .objects = objects, .network = lossy(),
              .sender = {.engine = {.multicast = multicast_use::off, .linger = 2s}}, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_for(2500ms);
  s.start_receiver(1);
  expect_success(s, 10s);
}

BOOST_DATA_TEST_CASE(receivers_on_different_interfaces_all_finish, bdata::xrange(10), seed) {
  node_options net = lossy();
  net.rails = 7;
  const std::uint32_t masks[] = {1, 2, 4, 3, 6, 7};
  scenario s({.seed = static_cast<std::uint64_t>(seed), .receivers = 6, .network = net,
              .each = [&](std::uint32_t n, receiver_process::options& o) { o.node.rails = masks[(n + static_cast<std::uint32_t>(seed)) % 6]; }});
  expect_success(s, 10s);
}

BOOST_AUTO_TEST_CASE(only_the_interfaces_that_are_needed_carry_the_data) {
  node_options net = clean_network();
  net.rails = 7;
  scenario s({.receivers = 4, .network = net, .each = [](std::uint32_t n, receiver_process::options& o) { o.node.rails = n == 0 ? 2 : 3; }});
  expect_success(s, 10s);
  BOOST_TEST(s.sender().engine().active_rails() == 2u);
  BOOST_TEST(s.egress_ratio() < 1.15);   // the announcements on three interfaces are 8 % of this small object
}

BOOST_AUTO_TEST_CASE(a_receiver_on_an_idle_interface_may_come_late) {
  node_options net = clean_network();
  net.rails = 3;
  scenario s({.receivers = 2, .network = net, .sender = {.engine = {.linger = 3s}}, .each = [](std::uint32_t n, receiver_process::options& o) { o.node.rails = 1 + n; }, .start_receivers = false});
  s.start_receiver(0);
  s.net().run_for(2200ms);
  s.start_receiver(1);
  expect_success(s, 10s);
}
