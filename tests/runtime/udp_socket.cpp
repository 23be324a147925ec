// What is sent is what is handed over, whatever the sizes and however the kernel coalesces.
#include "transports/udp/udp_socket.hpp"

#include <poll.h>

#include <algorithm>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"

using namespace ddf;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(udp_socket_)

static endpoint loopback() {
  endpoint e;
  e.address = {127, 0, 0, 1};
  return e;
}

static std::unique_ptr<udp_socket> open(bool coalesce) {
  udp_socket::options o;
  o.gso = o.gro = coalesce;
  o.buffer_bytes = 8 << 20;
  auto s = udp_socket::open_unicast(loopback(), 0, o);
  BOOST_REQUIRE(s.has_value());
  return std::move(*s);
}

using packets = std::vector<std::vector<std::byte>>;

static packets receive_all(udp_socket& s, std::size_t count, std::size_t& handed) {
  packets out;
  while (out.size() < count) {
    pollfd p{s.fd(), POLLIN, 0};
    if (::poll(&p, 1, 5000) <= 0) break;
    std::vector<std::pair<std::size_t, data_run>> runs;   // which packet they begin with
    s.receive([&](const datagrams& d) {
      ++handed;
      BOOST_TEST(d.from.port != 0);
      for (std::size_t i = 0; i < d.count(); ++i) {
        if (const auto run = d.run_from(i)) runs.emplace_back(out.size(), *run);
        out.emplace_back(d.datagram(i).begin(), d.datagram(i).end());
      }
    });
    for (const auto& [first, run] : runs)   // all that was handed over is whole until the next receive()
      for (std::uint32_t i = 0; i < run.count; ++i) BOOST_TEST(std::ranges::equal(run.payload(i), std::span(out.at(first + i)).subspan(data_header::wire_size)));
  }
  return out;
}

BOOST_DATA_TEST_CASE(packets_of_all_sizes_arrive_as_they_were_sent, bdata::make({false, true}) * bdata::xrange(20), coalesce, seed) {
  prng rng(static_cast<std::uint64_t>(seed) + 1);
  const auto from = open(coalesce), to = open(coalesce);
  std::size_t handed = 0;
  for (int round = 0; round < 6; ++round) {
    packets sent;
    std::size_t size = 1 + rng.next() % 1500;
    std::vector<std::array<std::byte, 4>> heads;
    const std::size_t n = 1 + rng.next() % 90;
    const std::uint64_t first_segment = rng.next() % 1000;
    for (std::size_t i = 0; i < n; ++i) {
      if (rng.next() % 10 == 0) size = rng.next() % 8 == 0 ? 1 + rng.next() % 20'000 : 1 + rng.next() % 1500;
      sent.emplace_back(size);
      for (auto& b : sent.back()) b = static_cast<std::byte>(rng.next() & 0xff);
      if (size > data_header::wire_size && rng.next() % 4 != 0)
        write_data_header({0, first_segment + i, 7, static_cast<std::uint32_t>(i)}, std::span<std::byte, data_header::wire_size>(sent.back().data(), data_header::wire_size));
    }
    const bool batched = rng.next() % 2 == 0;
    if (batched) {
      std::vector<iovec> none(sent.size()), all;
      for (auto& p : sent) all.push_back({p.data(), p.size()});
      for (std::size_t done = 0; done < sent.size();) {
        udp_socket::sent outcome{};
        done += from->send_batch(to->local(), 0, std::span(none).subspan(done), std::span(all).subspan(done), outcome);
        BOOST_REQUIRE((outcome == udp_socket::sent::all));
      }
    } else {
      for (const auto& p : sent) BOOST_REQUIRE((from->send(to->local(), 0, p) == udp_socket::sent::all));
    }
    BOOST_TEST((receive_all(*to, sent.size(), handed) == sent));
  }
}

BOOST_AUTO_TEST_CASE(equal_packets_are_handed_over_together_though_the_kernel_does_not_coalesce) {
  const auto from = open(false), to = open(false);
  const packets sent(60, std::vector<std::byte>(1472, std::byte{5}));
  std::size_t first = 0, second = 0;
  for (std::size_t* handed : {&first, &second}) {
    for (const auto& p : sent) BOOST_REQUIRE((from->send(to->local(), 0, p) == udp_socket::sent::all));
    BOOST_TEST((receive_all(*to, sent.size(), *handed) == sent));
  }
  BOOST_TEST(second == 1u);   // the first batch shows how large they are
}

BOOST_AUTO_TEST_CASE(two_senders_are_told_apart) {
  const auto a = open(false), b = open(false), to = open(false);
  std::vector<std::uint16_t> ports;
  for (int round = 0; round < 2; ++round) {
    ports.clear();
    for (int i = 0; i < 20; ++i) BOOST_REQUIRE(((i % 3 == 0 ? a : b)->send(to->local(), 0, std::vector<std::byte>(100)) == udp_socket::sent::all));
    while (ports.size() < 20) {
      pollfd p{to->fd(), POLLIN, 0};
      BOOST_REQUIRE(::poll(&p, 1, 5000) > 0);
      to->receive([&](const datagrams& d) { ports.insert(ports.end(), d.count(), d.from.port); });
    }
    for (int i = 0; i < 20; ++i) BOOST_TEST(ports[static_cast<std::size_t>(i)] == (i % 3 == 0 ? a : b)->local().port);
  }
}

BOOST_AUTO_TEST_SUITE_END()
