// Repair by reading, as users of the library meet it: a subscriber that hears no multicast reads everything from the publisher's memory.
#include <ddf/ddf.hpp>

#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "transports/fabric/fabric_endpoint.hpp"

using namespace std::chrono_literals;

namespace {

template <class T>
std::string why(const ddf::result<T>& r) { return r ? std::string() : ddf::describe(r.error()); }

struct site {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("ddf-reads-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  std::string group = "239.78." + std::to_string(1 + ::getpid() % 250) + "." + std::to_string(1 + count) + ":" + std::to_string(20000 + ::getpid() % 20000);
  site() { std::filesystem::create_directories(folder); }
  ~site() { std::filesystem::remove_all(folder); }
  static inline std::atomic<int> count{0};

  std::string file(const char* name, std::size_t bytes) const {
    std::string content(bytes, '\0');
    std::uint32_t x = 7;
    for (char& c : content) c = static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }
  std::string content(const std::filesystem::path& p) const {
    std::ifstream in(p, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  ddf::publisher_options publisher(ddf::repair_lane lane) const {
    ddf::publisher_options o;
    o.group = group, o.interfaces = {"lo"}, o.state_directory = "none", o.repair = lane;
    return o;
  }
  ddf::subscriber_options subscriber(ddf::repair_lane lane) const {
    ddf::subscriber_options o;
    o.group = group, o.interfaces = {"lo"}, o.source = "127.0.0.1", o.multicast = ddf::multicast_use::off, o.timeout = 20s, o.repair = lane;
    o.output_directory = folder / "out", o.state_directory = folder / "state";
    return o;
  }
  ddf::report run(const std::string& path, ddf::repair_lane sends, ddf::repair_lane receives, ddf::report* received = nullptr) const {
    auto s = ddf::subscriber::open(subscriber(receives));
    BOOST_REQUIRE_MESSAGE(s, why(s));
    BOOST_REQUIRE((*s)->start());
    auto p = ddf::publisher::open(publisher(sends));
    BOOST_REQUIRE_MESSAGE(p, why(p));
    ddf::publish_options o;
    o.expect = 1, o.wait = 10s, o.deadline = 30s;
    const std::vector<ddf::path_source> paths{{path, "w"}};
    auto t = (*p)->publish_paths(paths, o);
    BOOST_REQUIRE_MESSAGE(t, why(t));
    const ddf::report sent = (*t)->wait();
    const ddf::report got = (*s)->wait();
    if (received != nullptr) *received = got;
    return sent;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(reads)

static void read_by(ddf::repair_lane lane) {
  if (lane != ddf::repair_lane::automatic && !ddf::find_fabric(lane, "127.0.0.1")) {
    BOOST_TEST_MESSAGE("skipped: " << ddf::describe(ddf::find_fabric(lane, "127.0.0.1").error()));
    return;
  }
  site here;
  const std::string path = here.file("w", 9'000'001);
  ddf::report got;
  const ddf::report sent = here.run(path, lane, lane, &got);
  BOOST_TEST((sent.outcome.code == ddf::errc::ok), ddf::describe(sent.outcome));
  BOOST_TEST((got.outcome.code == ddf::errc::ok), ddf::describe(got.outcome));
  BOOST_TEST((here.content(here.folder / "out/w") == here.content(path)));
  const bool named = lane != ddf::repair_lane::automatic;   // which lane is quicker is not what is tested
  if (named) BOOST_TEST(got.repair.read_bytes > 8'900'000u);
  if (named) BOOST_TEST(sent.repair.read_bytes == got.repair.read_bytes);
  BOOST_TEST(sent.receivers.at(0).lane != "udp");
  BOOST_TEST(sent.warnings.empty());

  site tree;
  std::filesystem::create_directories(tree.folder / "d/e");
  tree.file("d/a", 3'000'000), tree.file("d/e/b", 70'001), tree.file("d/none", 0), tree.file("d/one", 1);
  const ddf::report of_tree = tree.run(tree.folder / "d", lane, lane, &got);
  BOOST_TEST((of_tree.outcome.code == ddf::errc::ok), ddf::describe(of_tree.outcome));
  for (const char* name : {"a", "e/b", "none", "one"}) BOOST_TEST((tree.content(tree.folder / "out/w" / name) == tree.content(tree.folder / "d" / name)), name);
  if (named) BOOST_TEST(got.repair.read_bytes > 3'000'000u);
}

BOOST_AUTO_TEST_CASE(a_file_and_a_folder_are_read_by_every_lane) {
  for (const auto lane : {ddf::repair_lane::automatic, ddf::repair_lane::tcp, ddf::repair_lane::shm}) read_by(lane);
}

BOOST_AUTO_TEST_CASE(one_side_without_lanes_is_served_by_udp) {
  site here;
  const std::string path = here.file("w", 3'000'000);
  const ddf::report sent = here.run(path, ddf::repair_lane::automatic, ddf::repair_lane::udp);
  BOOST_TEST((sent.outcome.code == ddf::errc::ok), ddf::describe(sent.outcome));
  BOOST_TEST(sent.repair.read_bytes == 0u);
  BOOST_TEST(sent.receivers.at(0).lane == "udp");
  BOOST_TEST((here.content(here.folder / "out/w") == here.content(path)));
}

BOOST_AUTO_TEST_CASE(a_lane_that_is_named_and_missing_is_an_error_that_says_so) {
  if (ddf::find_fabric(ddf::repair_lane::verbs, "127.0.0.1")) return;
  site here;
  const auto p = ddf::publisher::open(here.publisher(ddf::repair_lane::verbs));
  BOOST_REQUIRE(!p);
  BOOST_TEST(p.error().what.find("verbs") != std::string::npos, p.error().what);
  BOOST_TEST(p.error().what.find("--repair auto") != std::string::npos, p.error().what);
  const auto s = ddf::subscriber::open(here.subscriber(ddf::repair_lane::verbs));
  BOOST_REQUIRE(!s);
  BOOST_TEST(s.error().what.find("verbs") != std::string::npos, s.error().what);
}

BOOST_AUTO_TEST_CASE(sides_that_name_different_lanes_tell_each_other) {
  site here;
  const std::string path = here.file("w", 100'000);
  ddf::report got;
  const ddf::report sent = here.run(path, ddf::repair_lane::tcp, ddf::repair_lane::shm, &got);
  BOOST_TEST((sent.outcome.code != ddf::errc::ok));
  BOOST_TEST((got.outcome.code != ddf::errc::ok));
  BOOST_TEST(got.outcome.what.find("--repair") != std::string::npos, got.outcome.what);
  BOOST_TEST(sent.receivers.at(0).reason.find("--repair") != std::string::npos, sent.receivers.at(0).reason);
}

// A source that changes while it is read ends the session as it does over UDP.
BOOST_AUTO_TEST_CASE(a_source_that_shrinks_ends_the_session) {
  site here;
  const std::string path = here.file("w", 60'000'000);
  auto s = ddf::subscriber::open(here.subscriber(ddf::repair_lane::automatic));
  BOOST_REQUIRE((*s)->start());
  auto p = ddf::publisher::open(here.publisher(ddf::repair_lane::automatic));
  ddf::publish_options o;
  o.expect = 1, o.wait = 10s, o.deadline = 20s;
  const std::vector<ddf::path_source> paths{{path, "w"}};
  auto t = (*p)->publish_paths(paths, o);
  BOOST_REQUIRE(t);
  std::filesystem::resize_file(path, 1'000'000);
  const ddf::report sent = (*t)->wait();
  BOOST_TEST((sent.outcome.code == ddf::errc::source_changed), ddf::describe(sent.outcome));
  (*s)->stop();
  BOOST_TEST(((*s)->wait().outcome.code != ddf::errc::ok));
  BOOST_TEST(!std::filesystem::exists(here.folder / "out/w"));
}

BOOST_AUTO_TEST_SUITE_END()
