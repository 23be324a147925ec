// The library as its users meet it: publisher and subscribers in one process, over the loopback interface.
#include <ddf/ddf.hpp>

#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

using namespace std::chrono_literals;

namespace {

// Each case has its own group: late packets of one do not reach the next.
std::string next_group() {
  static std::atomic<int> n{0};
  return "239.77." + std::to_string(1 + ::getpid() % 250) + "." + std::to_string(1 + n++) + ":" + std::to_string(20000 + ::getpid() % 20000);
}

std::vector<std::byte> pattern(std::size_t n, unsigned seed) {
  std::vector<std::byte> v(n);
  std::uint32_t x = seed * 2654435761u + 1;
  for (std::byte& b : v) {
    x = x * 1664525u + 1013904223u;
    b = std::byte(x >> 24);
  }
  return v;
}

template <class T>
std::string why(const ddf::result<T>& r) { return r ? std::string() : ddf::describe(r.error()); }

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("ddf-runtime-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  static inline std::atomic<int> count{0};
};

ddf::publisher_options publisher_on(const std::string& group) {
  ddf::publisher_options o;
  o.group = group;
  o.interfaces = {"lo"};
  o.state_directory = "none";
  return o;
}
ddf::subscriber_options subscriber_on(const std::string& group) {
  ddf::subscriber_options o;
  o.group = group;
  o.interfaces = {"lo"};
  o.timeout = 10s;
  return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loopback)

BOOST_AUTO_TEST_CASE(parts_in_memory_reach_two_subscribers_verified) {
  const std::string group = next_group();
  const auto weight = pattern(3'000'001, 1), bias = pattern(777, 2);
  std::vector<std::unique_ptr<ddf::subscriber>> subscribers;
  std::atomic<int> delivered{0};
  std::mutex mutex;
  std::vector<std::shared_ptr<const ddf::object>> objects;
  for (int i = 0; i < 2; ++i) {
    auto s = ddf::subscriber::open(subscriber_on(group));
    BOOST_REQUIRE_MESSAGE(s, why(s));
    BOOST_REQUIRE((*s)->subscribe("acme/*", [&](std::shared_ptr<const ddf::object> o) {
      const std::lock_guard lock(mutex);
      objects.push_back(std::move(o));
      ++delivered;
    }));
    BOOST_REQUIRE((*s)->start());
    subscribers.push_back(std::move(*s));
  }
  auto p = ddf::publisher::open(publisher_on(group));
  BOOST_REQUIRE_MESSAGE(p, why(p));
  const std::vector<ddf::part_view> parts{{"wte.weight", weight, 2}, {"ln.bias", bias, 2}, {"empty", {}, 2}};
  ddf::publish_options o;
  o.expect = 2;
  auto t = (*p)->publish("acme/policy", parts, o);
  BOOST_REQUIRE_MESSAGE(t, why(t));
  const ddf::report r = (*t)->wait();
  BOOST_TEST_REQUIRE((r.outcome.code == ddf::errc::ok), ddf::describe(r.outcome));
  BOOST_TEST(r.receivers.size() == 2u);
  for (auto& s : subscribers) {
    const ddf::report got = s->wait();
    BOOST_TEST((got.outcome.code == ddf::errc::ok), ddf::describe(got.outcome));
  }
  BOOST_TEST_REQUIRE(delivered.load() == 2);
  subscribers.clear();   // the objects outlive who received them
  for (const auto& object : objects) {
    BOOST_TEST(object->name() == "acme/policy");
    BOOST_TEST(object->version() == 1u);
    BOOST_TEST(object->part_names().size() == 3u);
    const auto got = object->part("wte.weight");
    BOOST_TEST_REQUIRE(got.size() == weight.size());
    BOOST_TEST((std::memcmp(got.data(), weight.data(), weight.size()) == 0));
    BOOST_TEST((object->part("ln.bias").size() == bias.size() && std::memcmp(object->part("ln.bias").data(), bias.data(), bias.size()) == 0));
    BOOST_TEST(object->part("unknown").empty());
  }
}

BOOST_AUTO_TEST_CASE(several_publications_follow_each_other_to_a_follower) {
  const std::string group = next_group();
  auto options = subscriber_on(group);
  options.follow = true;
  auto s = ddf::subscriber::open(options);
  BOOST_REQUIRE(s);
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  BOOST_REQUIRE((*s)->subscribe("**", [&](std::shared_ptr<const ddf::object> o) {
    const std::lock_guard lock(mutex);
    sizes.push_back(o->part().size());
  }));
  BOOST_REQUIRE((*s)->start());
  auto p = ddf::publisher::open(publisher_on(group));
  BOOST_REQUIRE(p);
  for (const std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(65536), std::size_t(1'000'000)}) {
    const auto bytes = pattern(n, 3);
    const std::vector<ddf::part_view> parts{{"", bytes, 1}};
    ddf::publish_options o;
    o.expect = 1;
    auto t = (*p)->publish("step", parts, o);
    BOOST_REQUIRE_MESSAGE(t, why(t));
    const ddf::report r = (*t)->wait();
    BOOST_TEST((r.outcome.code == ddf::errc::ok), ddf::describe(r.outcome));
  }
  (*s)->stop();
  const ddf::report got = (*s)->wait();
  BOOST_TEST((got.outcome.code == ddf::errc::ok), ddf::describe(got.outcome));
  BOOST_TEST(got.objects.size() == 4u);
  const std::lock_guard lock(mutex);
  BOOST_TEST((sizes == std::vector<std::size_t>{0, 1, 65536, 1'000'000}));
}

BOOST_AUTO_TEST_CASE(files_arrive_in_a_folder_and_an_unchanged_file_keeps_its_version) {
  const std::string group = next_group();
  const folder source, target, state;
  const auto bytes = pattern(2'500'000, 4);
  std::ofstream(source.path / "model.bin", std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  auto po = publisher_on(group);
  po.state_directory = state.path / "publisher";
  for (int round = 0; round < 2; ++round) {
    auto so = subscriber_on(group);
    so.output_directory = target.path / std::to_string(round);
    so.state_directory = state.path / "subscriber";
    auto s = ddf::subscriber::open(so);
    BOOST_REQUIRE_MESSAGE(s, why(s));
    BOOST_REQUIRE((*s)->start());
    auto p = ddf::publisher::open(po);
    BOOST_REQUIRE(p);
    const std::vector<ddf::path_source> paths{{source.path / "model.bin", ""}};
    ddf::publish_options o;
    o.expect = 1;
    auto t = (*p)->publish_paths(paths, o);
    BOOST_REQUIRE_MESSAGE(t, why(t));
    const ddf::report r = (*t)->wait();
    BOOST_TEST_REQUIRE((r.outcome.code == ddf::errc::ok), ddf::describe(r.outcome));
    BOOST_TEST(r.objects.at(0).version == 1u);
    const ddf::report got = (*s)->wait();
    BOOST_TEST((got.outcome.code == ddf::errc::ok), ddf::describe(got.outcome));
    std::ifstream in(target.path / std::to_string(round) / "model.bin", std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    BOOST_TEST((content.size() == bytes.size() && std::memcmp(content.data(), bytes.data(), bytes.size()) == 0));
  }
}

BOOST_AUTO_TEST_CASE(a_receiver_that_has_this_version_fetches_nothing) {
  const std::string group = next_group();
  const folder source, target, state;
  const auto bytes = pattern(1'000'000, 5);
  std::ofstream(source.path / "model.bin", std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  auto po = publisher_on(group);
  po.state_directory = state.path / "publisher";
  for (int round = 0; round < 2; ++round) {
    auto so = subscriber_on(group);
    so.output_directory = target.path;
    so.state_directory = state.path / "subscriber";
    auto s = ddf::subscriber::open(so);
    BOOST_REQUIRE(s);
    BOOST_REQUIRE((*s)->start());
    auto p = ddf::publisher::open(po);
    BOOST_REQUIRE(p);
    const std::vector<ddf::path_source> paths{{source.path / "model.bin", ""}};
    ddf::publish_options o;
    o.expect = 1;
    auto t = (*p)->publish_paths(paths, o);
    BOOST_REQUIRE(t);
    const ddf::report r = (*t)->wait();
    BOOST_TEST_REQUIRE((r.outcome.code == ddf::errc::ok), ddf::describe(r.outcome));
    const ddf::report got = (*s)->wait();
    BOOST_TEST_REQUIRE((got.outcome.code == ddf::errc::ok), ddf::describe(got.outcome));
    BOOST_TEST(got.objects.at(0).encoding == (round == 0 ? "whole" : "none"));
    if (round == 1) BOOST_TEST(r.egress_ratio < 0.05);
  }
}

BOOST_AUTO_TEST_CASE(nobody_there_is_an_error_in_bounded_time) {
  auto p = ddf::publisher::open(publisher_on(next_group()));
  BOOST_REQUIRE(p);
  const auto bytes = pattern(100, 6);
  const std::vector<ddf::part_view> parts{{"", bytes, 1}};
  ddf::publish_options o;
  o.wait = 200ms;
  auto t = (*p)->publish("nobody", parts, o);
  BOOST_REQUIRE(t);
  BOOST_TEST(((*t)->wait().outcome.code == ddf::errc::no_receiver));

  auto so = subscriber_on(next_group());
  so.timeout = 600ms;
  auto s = ddf::subscriber::open(so);
  BOOST_REQUIRE(s);
  BOOST_REQUIRE((*s)->start());
  BOOST_TEST(((*s)->wait().outcome.code == ddf::errc::no_sender));
}

BOOST_AUTO_TEST_CASE(a_cancelled_publication_tells_its_receivers) {
  const std::string group = next_group();
  auto so = subscriber_on(group);
  auto s = ddf::subscriber::open(so);
  BOOST_REQUIRE(s);
  BOOST_REQUIRE((*s)->start());
  auto po = publisher_on(group);
  po.rate_bytes_per_s = 1'000'000;   // it would take half a minute
  auto p = ddf::publisher::open(po);
  BOOST_REQUIRE(p);
  const auto bytes = pattern(30'000'000, 7);
  const std::vector<ddf::part_view> parts{{"", bytes, 1}};
  ddf::publish_options o;
  o.expect = 1;
  auto t = (*p)->publish("slow", parts, o);
  BOOST_REQUIRE(t);
  for (int i = 0; i < 100 && (*s)->snapshot().bytes_done == 0; ++i) (void)(*t)->wait_for(50ms);
  (*t)->cancel();
  BOOST_TEST(((*t)->wait().outcome.code == ddf::errc::interrupted));
  BOOST_TEST(((*s)->wait().outcome.code == ddf::errc::sender_lost));
}

BOOST_AUTO_TEST_CASE(bad_options_name_the_field) {
  const auto fails = [](auto change, const std::string& word) {
    ddf::publisher_options o = publisher_on("239.77.1.1:7700");
    change(o);
    auto p = ddf::publisher::open(o);
    BOOST_REQUIRE(!p);
    BOOST_TEST(p.error().what.find(word) != std::string::npos, p.error().what);
  };
  fails([](auto& o) { o.group = "10.0.0.1:7700"; }, "group");
  fails([](auto& o) { o.group = "239.77.1.1:0"; }, "port");
  fails([](auto& o) { o.ttl = 256; }, "ttl");
  fails([](auto& o) { o.mtu = 100; }, "mtu");
  fails([](auto& o) { o.interfaces = {"nosuch0"}; }, "nosuch0");
  fails([](auto& o) { o.source = "239.1.1.1"; }, "source");
}

BOOST_AUTO_TEST_CASE(a_name_that_every_receiver_refuses_is_not_published) {
  auto p = ddf::publisher::open(publisher_on(next_group()));
  BOOST_REQUIRE(p);
  const auto bytes = pattern(10, 1);
  const std::vector<ddf::part_view> parts{{"", bytes, 1}};
  auto t = (*p)->publish("folder/.a.ddf-00000000.partial", parts, {});
  BOOST_REQUIRE(!t);
  BOOST_TEST((t.error().code == ddf::errc::invalid_argument));
  BOOST_TEST(t.error().what.find("partial") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(destroying_either_end_in_the_middle_is_clean) {
  for (int who = 0; who < 2; ++who) {
    const std::string group = next_group();
    auto s = ddf::subscriber::open(subscriber_on(group));
    BOOST_REQUIRE(s);
    BOOST_REQUIRE((*s)->start());
    auto po = publisher_on(group);
    po.rate_bytes_per_s = 10'000'000;
    auto p = ddf::publisher::open(po);
    BOOST_REQUIRE(p);
    const auto bytes = pattern(30'000'000, 8);
    const std::vector<ddf::part_view> parts{{"", bytes, 1}};
    ddf::publish_options o;
    o.expect = 1;
    auto t = (*p)->publish("gone", parts, o);
    BOOST_REQUIRE(t);
    for (int i = 0; i < 100 && (*s)->snapshot().bytes_done == 0; ++i) (void)(*t)->wait_for(20ms);
    if (who == 0) {
      p->reset();
      BOOST_TEST(((*t)->wait().outcome.code != ddf::errc::ok));
      BOOST_TEST(((*s)->wait().outcome.code != ddf::errc::ok));
    } else {
      s->reset();
      const ddf::report r = (*t)->wait();
      BOOST_TEST((r.outcome.code == ddf::errc::incomplete));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
