// The receive buffer that a fresh system grants without rights: 212,992 bytes, which hold 92 packets of 1,400 bytes.
#include <ddf/ddf.hpp>

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <mutex>
#include <string>

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(socket_buffer)

BOOST_AUTO_TEST_CASE(the_default_one_is_enough_and_the_cure_is_told) {
  const std::string group = "239.76." + std::to_string(1 + ::getpid() % 250) + ".1:" + std::to_string(20000 + ::getpid() % 20000);
  const std::vector<std::byte> weights(24 << 20, std::byte{7});
  std::mutex mutex;
  std::string told;
  ddf::subscriber_options s;
  s.group = group;
  s.interfaces = {"lo"};
  s.timeout = 10s;
  s.socket_buffer = 212'992 / 2;   // the system doubles it
  s.log = [&](ddf::log_level level, const std::string& text) {
    const std::lock_guard lock(mutex);
    if (level == ddf::log_level::warning) told += text + '\n';
  };
  std::vector<std::unique_ptr<ddf::subscriber>> subscribers;
  for (int i = 0; i < 2; ++i) {
    auto opened = ddf::subscriber::open(s);
    BOOST_REQUIRE(opened);
    BOOST_REQUIRE((*opened)->start());
    subscribers.push_back(std::move(*opened));
  }
  BOOST_TEST(told.find("sysctl -w net.core.rmem_max") != std::string::npos, told);

  ddf::publisher_options p;
  p.group = group;
  p.interfaces = {"lo"};
  p.mtu = 1500;
  p.state_directory = "none";
  auto publisher = ddf::publisher::open(p);
  BOOST_REQUIRE(publisher);
  const ddf::part_view part{"", weights, 1};
  ddf::publish_options o;
  o.expect = 2;
  auto ticket = (*publisher)->publish("weights", std::span(&part, 1), o);
  BOOST_REQUIRE(ticket);
  const ddf::report sent = (*ticket)->wait();
  BOOST_TEST((sent.outcome.code == ddf::errc::ok), ddf::describe(sent.outcome));
  BOOST_TEST(sent.repair.multicast_bytes + sent.repair.unicast_bytes < weights.size() / 10);   // bursts fit the buffer
  for (auto& one : subscribers) BOOST_TEST((one->wait().outcome.code == ddf::errc::ok));
}

BOOST_AUTO_TEST_SUITE_END()
