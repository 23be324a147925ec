// One-sided reads: what is read is what is there, whatever ends, stops, is refused or fails meanwhile.
#include "transports/fabric/fabric_endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "lib/model/prng.hpp"
#include "lib/store/descriptor.hpp"
#include "transports/fabric/fabric_arena.hpp"

using namespace ddf;
using namespace std::chrono_literals;
namespace bdata = boost::unit_test::data;

namespace ddf {
static std::ostream& operator<<(std::ostream& o, repair_lane lane) { return o << (lane == repair_lane::shm ? "shm" : "tcp"); }
}  // namespace ddf

// Bytes that are served come before the endpoint that serves them: it may be sending when the reader has them all.

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
  std::vector<std::uint64_t> words((bytes + 7) / 8);
  for (auto& w : words) w = rng.next();
  std::vector<std::byte> out(bytes);
  std::memcpy(out.data(), words.data(), bytes);
  return out;
}

static bool all_are(std::span<const std::byte> bytes, std::byte value) {
  return bytes.empty() || (bytes[0] == value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
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
  auto source = random_bytes((20 << 20) + 64, 1);
  std::vector<std::byte> target(source.size());
  const auto a = open(lane), b = open(lane);
  BOOST_TEST(a->address().size() <= fabric_address_bytes_max);
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
    BOOST_TEST(std::memcmp(target.data() + here_at, source.data() + there_at, bytes) == 0);
    BOOST_TEST((all_are(std::span(target).first(here_at), std::byte{}) && all_are(std::span(target).subspan(here_at + bytes), std::byte{})));
  }
  const auto n = a->count();
  BOOST_TEST(n.reads == 10u);
  BOOST_TEST(n.connections == 1u);
  BOOST_TEST(n.splits == 1u + 19u);
}

BOOST_DATA_TEST_CASE(many_reads_of_many_threads_bring_what_each_asked_for, bdata::make(lanes) * bdata::make({1u, 7u, 64u}), lane, outstanding) {
  if (!there(lane)) return;
  constexpr std::size_t threads = 3, each = 60, piece = 40'000;
  auto first = random_bytes(3 << 20, 2), second = random_bytes(3 << 20, 3);
  std::vector<std::byte> target(threads * each * piece);
  const auto a = open(lane, {.outstanding_max = outstanding}), b = open(lane), c = open(lane);
  const auto first_memory = b->register_memory(first), second_memory = c->register_memory(second), target_memory = a->register_memory(target);
  BOOST_REQUIRE((first_memory && second_memory && target_memory));
  answers done;
  std::vector<remote_read> reads;
  prng rng(outstanding);
  for (std::size_t i = 0; i < threads * each; ++i) {
    remote_read r = i % 2 == 0 ? from(*b, **first_memory, **target_memory) : from(*c, **second_memory, **target_memory);
    r.offset = i * piece + rng.next() % 64;
    r.bytes = 1 + rng.next() % (piece - 64);
    r.address += rng.next() % (first.size() - piece);
    reads.push_back(r);
  }
  {
    std::vector<std::jthread> askers;
    for (std::size_t t = 0; t < threads; ++t)
      askers.emplace_back([&, t] {
        for (std::size_t i = t * each; i < (t + 1) * each; ++i) a->read(reads[i], done.take(i));
      });
  }
  std::vector<bool> answered(reads.size());
  for (const auto& [i, r] : done.wait(reads.size())) {
    BOOST_TEST(words(r) == "ok");
    BOOST_TEST(!answered[i]);
    answered[i] = true;
    const auto& source = i % 2 == 0 ? first : second;
    const std::uint64_t at = reads[i].address - (i % 2 == 0 ? **first_memory : **second_memory).address();
    BOOST_TEST(std::ranges::equal(std::span(target).subspan(reads[i].offset, reads[i].bytes), std::span(source).subspan(at, reads[i].bytes)));
  }
}

BOOST_DATA_TEST_CASE(a_callback_may_read_on, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  auto source = random_bytes(50'000, 4);
  std::vector<std::byte> target(source.size());
  const auto a = open(lane), b = open(lane);
  const auto source_memory = b->register_memory(source), target_memory = a->register_memory(target);
  BOOST_REQUIRE((source_memory && target_memory));
  answers done;
  std::function<void(std::size_t)> next = [&](std::size_t at) {
    remote_read r = from(*b, **source_memory, **target_memory);
    r.address += at;
    r.offset = at;
    r.bytes = 1000;
    a->read(r, [&, at, last = done.take()](result<void> e) {
      if (e && at + 1000 < target.size()) next(at + 1000);
      else last(e);
    });
  };
  next(0);
  BOOST_TEST(words(done.one()) == "ok");
  BOOST_TEST((target == source));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_taken_is_answered_at_once) {
  const auto a = open(repair_lane::shm, {.waiting_max = 3});
  std::vector<std::byte> target(100);
  const auto memory = a->register_memory(target);
  BOOST_REQUIRE(memory.has_value());
  const auto refusal = [&](auto change) {
    remote_read r = from(*a, **memory, **memory);
    change(r);
    std::optional<result<void>> came;
    a->read(r, [&](result<void> e) { came = e; });
    BOOST_REQUIRE(came.has_value());
    return came->has_value() ? errc::ok : came->error().code;
  };
  BOOST_TEST((refusal([](remote_read& r) { r.bytes = 0; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](remote_read& r) { r.offset = 1; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](remote_read& r) { r.offset = ~std::size_t{0}; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](remote_read& r) { r.into = nullptr; }) == errc::invalid_argument));
  BOOST_TEST((refusal([](remote_read& r) { r.peer.clear(); }) == errc::invalid_argument));
  BOOST_TEST((refusal([](remote_read& r) { r.peer.resize(fabric_address_bytes_max + 1); }) == errc::invalid_argument));
  BOOST_TEST(a->count().refused == 6u);
}

BOOST_AUTO_TEST_CASE(more_reads_than_may_wait_are_refused_and_those_that_wait_are_answered) {
  if (!there(repair_lane::tcp)) return;
  std::vector<std::byte> source(1 << 20, std::byte{9}), target(1 << 20);
  const auto a = open(repair_lane::tcp, {.waiting_max = 3}), b = open(repair_lane::tcp);
  const auto source_memory = b->register_memory(source), target_memory = a->register_memory(target);
  BOOST_REQUIRE((source_memory && target_memory));
  answers done;
  std::promise<void> may_go_on;
  a->read(from(*b, **source_memory, **target_memory), [&](result<void>) { may_go_on.get_future().wait(); });   // the thread is held: all others wait
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 10; ++i)
    a->read(from(*b, **source_memory, **target_memory), [&, answered = done.take()](result<void> e) {
      if (!e && e.error().code == errc::too_large) ++refused;
      answered(std::move(e));
    });
  BOOST_TEST(refused >= 7u);
  may_go_on.set_value();
  BOOST_TEST(std::ranges::count_if(done.wait(10), [](const auto& r) { return r.second.has_value(); }) == static_cast<std::ptrdiff_t>(10 - refused));
  BOOST_TEST(a->count().refused == refused);
}

BOOST_DATA_TEST_CASE(a_wrong_key_or_range_is_an_error_and_the_next_read_is_not, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  auto source = random_bytes(100'000, 5);
  std::vector<std::byte> target(source.size());
  const auto a = open(lane), b = open(lane);
  const auto source_memory = b->register_memory(source), target_memory = a->register_memory(target);
  BOOST_REQUIRE((source_memory && target_memory));
  const auto attempt = [&](auto change) {
    remote_read r = from(*b, **source_memory, **target_memory);
    change(r);
    answers done;
    a->read(r, done.take());
    return done.one();
  };
  BOOST_TEST(words(attempt([](remote_read&) {})) == "ok");
  for (int round = 0; round < 2; ++round) {
    BOOST_TEST(words(attempt([](remote_read& r) { r.key ^= 0x10; })) != "ok");
    BOOST_TEST(words(attempt([](remote_read& r) { r.address += 1; })) != "ok");
    BOOST_TEST(words(attempt([](remote_read& r) { r.address -= 1; })) != "ok");
    BOOST_TEST(words(attempt([](remote_read& r) { r.address = ~std::uint64_t{7}; })) != "ok");
    BOOST_TEST(words(attempt([](remote_read&) {})) == "ok");
  }
  BOOST_TEST((target == source));
}

BOOST_DATA_TEST_CASE(memory_that_was_given_up_cannot_be_read_any_more, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  auto source = random_bytes(1000, 6);
  std::vector<std::byte> target(source.size());
  const auto a = open(lane), b = open(lane);
  auto source_memory = b->register_memory(source), target_memory = a->register_memory(target);
  BOOST_REQUIRE((source_memory && target_memory));
  const remote_read r = from(*b, **source_memory, **target_memory);
  source_memory->reset();
  answers done;
  a->read(r, done.take());
  BOOST_TEST(words(done.one()) != "ok");
}

BOOST_DATA_TEST_CASE(what_is_no_address_is_an_error, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  const auto a = open(lane);
  std::vector<std::byte> target(1000);
  const auto memory = a->register_memory(target);
  BOOST_REQUIRE(memory.has_value());
  for (const std::size_t bytes : {1u, 15u, 16u, 17u, 128u}) {
    remote_read r = from(*a, **memory, **memory);
    r.peer = random_bytes(bytes, bytes);
    if (bytes == 16) r.peer[0] = a->address()[0];   // of this provider, and no more
    r.deadline = 50ms;
    answers done;
    a->read(r, done.take());
    BOOST_TEST(words(done.one()) != "ok");
  }
}

BOOST_AUTO_TEST_CASE(no_more_connections_than_allowed_and_everybody_is_served) {
  if (!there(repair_lane::tcp)) return;
  const auto a = open(repair_lane::tcp, {.peers_max = 2});
  std::vector<std::byte> target(6 * 1000);
  const auto memory = a->register_memory(target);
  std::vector<std::vector<std::byte>> sources;
  std::vector<std::unique_ptr<fabric_endpoint>> others;
  std::vector<std::unique_ptr<fabric_memory>> memories;
  for (std::size_t i = 0; i < 6; ++i) sources.push_back(random_bytes(1000, 10 + i));
  for (std::size_t i = 0; i < 6; ++i) {
    others.push_back(open(repair_lane::tcp));
    memories.push_back(std::move(*others.back()->register_memory(sources[i])));
  }
  for (int round = 0; round < 2; ++round) {
    std::ranges::fill(target, std::byte{});
    answers done;
    for (std::size_t i = 0; i < 6; ++i) {
      remote_read r = from(*others[i], *memories[i], **memory);
      r.offset = 1000 * i;
      r.bytes = 1000;
      a->read(r, done.take(i));
    }
    for (const auto& [i, r] : done.wait(6)) BOOST_TEST(words(r) == "ok");
    for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(std::ranges::equal(std::span(target).subspan(1000 * i, 1000), sources[i]));
  }
  BOOST_TEST(a->count().dropped >= 8u);
  memories.clear();
}

BOOST_AUTO_TEST_CASE(signals_are_handled_as_before) {
  const auto handlers = [] {
    std::map<int, void*> out;
    for (int s = 1; s < 32; ++s) {
      struct sigaction action {};
      ::sigaction(s, nullptr, &action);
      out[s] = reinterpret_cast<void*>(action.sa_sigaction);
    }
    return out;
  };
  const auto before = handlers();
  for (const repair_lane lane : {repair_lane::tcp, repair_lane::shm, repair_lane::verbs}) {
    fabric_options o;
    o.lane = lane;
    if (const auto found = find_fabric(lane, ""); found) BOOST_TEST(fabric_endpoint::open(o).has_value());
  }
  BOOST_TEST((handlers() == before));
  struct sigaction term {};
  ::sigaction(SIGTERM, nullptr, &term);
  BOOST_TEST(term.sa_handler == SIG_DFL);
}

BOOST_AUTO_TEST_CASE(lanes_that_are_none_and_addresses_of_others_are_errors) {
  for (const repair_lane lane : {repair_lane::automatic, repair_lane::udp}) {
    const auto found = find_fabric(lane, "");
    BOOST_REQUIRE(!found.has_value());
    BOOST_TEST((found.error().code == errc::invalid_argument));
  }
  for (const char* address : {"localhost", "0.0.0.0", "::"}) BOOST_TEST((find_fabric(repair_lane::tcp, address).error().code == errc::invalid_argument));
  if (!there(repair_lane::tcp)) return;
  const auto foreign = find_fabric(repair_lane::tcp, "198.51.100.77");
  BOOST_REQUIRE(!foreign.has_value());
  BOOST_TEST(foreign.error().what.find("ip address") != std::string::npos);
}

// Another process that serves 16 MiB of the bytes of a seed: this program once more, told by the environment.

struct served {
  std::uint64_t address = 0, key = 0, name_bytes = 0;
  std::array<std::byte, fabric_address_bytes_max> name{};
};
static constexpr std::size_t served_bytes = 16 << 20;

BOOST_AUTO_TEST_CASE(serves_when_told_to) {
  const char* told = std::getenv("DDF_TEST_FABRIC_SERVE");   // lane, port
  if (told == nullptr) return;
  fabric_options o;
  o.local_port = static_cast<std::uint16_t>(std::atoi(told + 4));
  auto bytes = random_bytes(served_bytes, 77);
  const auto endpoint = open(std::string_view(told).starts_with("shm") ? repair_lane::shm : repair_lane::tcp, o);
  const auto memory = endpoint->register_memory(bytes);
  served s{(*memory)->address(), (*memory)->key(), endpoint->address().size(), {}};
  std::ranges::copy(endpoint->address(), s.name.begin());
  BOOST_REQUIRE(::write(3, &s, sizeof s) == static_cast<ssize_t>(sizeof s));
  char c;
  while (::read(0, &c, 1) > 0) {}   // until whoever started us closes our input, or is gone
}

class serving_process {
 public:
  explicit serving_process(repair_lane lane, std::uint16_t port = 0) {
    int in[2], out[2];
    BOOST_REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    BOOST_REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    input_ = descriptor(in[1]);
    const descriptor its_input(in[0]), its_output(out[1]), output(out[0]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, its_input.get(), 0);
    ::posix_spawn_file_actions_adddup2(&actions, its_output.get(), 3);
    std::string program = "/proc/self/exe", what = "--run_test=fabric/serves_when_told_to", level = "--log_level=nothing";
    std::string told = "DDF_TEST_FABRIC_SERVE=" + std::string(lane == repair_lane::shm ? "shm" : "tcp") + " " + std::to_string(port);
    char* arguments[] = {program.data(), what.data(), level.data(), nullptr};
    std::vector<char*> environment;
    for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
    environment.push_back(told.data());
    environment.push_back(nullptr);
    BOOST_REQUIRE(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environment.data()) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    pollfd p{output.get(), POLLIN, 0};
    BOOST_REQUIRE(::poll(&p, 1, 60'000) == 1);
    BOOST_REQUIRE(::read(output.get(), &served_, sizeof served_) == static_cast<ssize_t>(sizeof served_));
  }
  ~serving_process() { end(); }

  void signal(int s) { ::kill(pid_, s); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  std::uint16_t port() const {
    std::uint16_t p;
    std::memcpy(&p, served_.name.data() + 3, 2);   // of a sockaddr_in, behind the byte of the provider
    return ntohs(p);
  }
  remote_read read(fabric_memory& into, std::chrono::nanoseconds deadline) const {
    remote_read r;
    r.peer.assign(served_.name.begin(), served_.name.begin() + static_cast<std::ptrdiff_t>(served_.name_bytes));
    r.address = served_.address;
    r.key = served_.key;
    r.into = &into;
    r.bytes = into.bytes().size();
    r.deadline = deadline;
    return r;
  }

 private:
  pid_t pid_ = 0;
  descriptor input_;
  served served_;
};

static result<void> read_now(fabric_endpoint& a, const remote_read& r) {
  answers done;
  a.read(r, done.take());
  return done.one();
}

// Until so many more operations are on their way, or it takes too long.
static void wait_for_splits(const fabric_endpoint& a, std::uint64_t splits) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (a.count().splits < splits && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Reads all of what is served, so often that it takes a while; what `meanwhile` does happens while a read is on its way.
template <class Meanwhile>
static std::vector<result<void>> read_through(fabric_endpoint& a, const remote_read& r, std::size_t reads, Meanwhile&& meanwhile) {
  answers done;
  const std::uint64_t before = a.count().splits;
  for (std::size_t i = 0; i < reads; ++i) a.read(r, done.take(i));
  wait_for_splits(a, before + 3);
  meanwhile();
  std::vector<result<void>> out(reads);
  for (auto& [i, e] : done.wait(reads)) out[i] = std::move(e);
  return out;
}

BOOST_DATA_TEST_CASE(a_peer_that_is_killed_costs_no_more_than_the_deadline_and_the_next_is_read_from, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  const auto a = open(lane);
  std::vector<std::byte> target(served_bytes);
  const auto memory = a->register_memory(target);
  {
    serving_process peer(lane);
    const auto start = std::chrono::steady_clock::now();
    const auto came = read_through(*a, peer.read(**memory, 2s), 100, [&] { peer.end(); });
    BOOST_TEST((std::chrono::steady_clock::now() - start < 10s));
    BOOST_TEST(words(came.back()) != "ok");
    BOOST_TEST_MESSAGE(words(came.back()));
  }
  serving_process peer(lane);
  BOOST_TEST(words(read_now(*a, peer.read(**memory, 20s))) == "ok");
  BOOST_TEST((target == random_bytes(served_bytes, 77)));
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_stopped_costs_the_deadline_and_nothing_is_written_after_the_answer) {
  if (!there(repair_lane::tcp)) return;
  const auto a = open(repair_lane::tcp);
  std::vector<std::byte> target(served_bytes), other(1000);
  const auto memory = a->register_memory(target), other_memory = a->register_memory(other);
  serving_process peer(repair_lane::tcp);
  for (int round = 0; round < 3; ++round) {
    const auto came = read_through(*a, peer.read(**memory, 300ms), 100, [&] { peer.signal(SIGSTOP); });
    BOOST_REQUIRE(words(came.back()) != "ok");
    BOOST_TEST(came.back().error().os == ETIMEDOUT);
    std::ranges::fill(target, std::byte{1});
    const auto late = peer.read(**other_memory, 20s);
    answers done;
    a->read(late, done.take());   // waits until the peer goes on
    peer.signal(SIGCONT);
    BOOST_TEST(words(done.one()) == "ok");
    BOOST_TEST(all_are(target, std::byte{1}));
  }
  BOOST_TEST(words(read_now(*a, peer.read(**memory, 20s))) == "ok");
  BOOST_TEST((target == random_bytes(served_bytes, 77)));
  BOOST_TEST(a->count().cut >= 3u);
  BOOST_TEST(a->count().held == 0u);
}

BOOST_AUTO_TEST_CASE(reads_that_have_time_go_on_when_a_silent_connection_is_ended) {
  if (!there(repair_lane::tcp)) return;
  const auto a = open(repair_lane::tcp);
  std::vector<std::byte> target(served_bytes), other(served_bytes);
  const auto memory = a->register_memory(target), other_memory = a->register_memory(other);
  serving_process peer(repair_lane::tcp);
  answers patient;
  const auto came = read_through(*a, peer.read(**memory, 300ms), 100, [&] {
    a->read(peer.read(**other_memory, 60s), patient.take());
    peer.signal(SIGSTOP);
  });
  peer.signal(SIGCONT);
  BOOST_TEST(words(patient.one()) == "ok");
  BOOST_TEST((other == random_bytes(served_bytes, 77)));
}

BOOST_AUTO_TEST_CASE(a_peer_that_comes_back_at_its_address_is_read_from_again) {
  if (!there(repair_lane::tcp)) return;
  const auto a = open(repair_lane::tcp);
  std::vector<std::byte> target(served_bytes);
  const auto memory = a->register_memory(target);
  auto peer = std::make_unique<serving_process>(repair_lane::tcp);
  BOOST_TEST(words(read_now(*a, peer->read(**memory, 20s))) == "ok");
  const std::uint16_t port = peer->port();
  const remote_read stale = peer->read(**memory, 200ms);
  peer.reset();
  BOOST_TEST(words(read_now(*a, stale)) != "ok");
  peer = std::make_unique<serving_process>(repair_lane::tcp, port);
  BOOST_TEST(words(read_now(*a, stale)) != "ok");   // its key was the other's
  BOOST_TEST(words(read_now(*a, peer->read(**memory, 20s))) == "ok");
  BOOST_TEST((target == random_bytes(served_bytes, 77)));
}

BOOST_AUTO_TEST_CASE(an_endpoint_that_goes_answers_all_that_was_asked) {
  if (!there(repair_lane::tcp)) return;
  serving_process peer(repair_lane::tcp), stopped(repair_lane::tcp);
  for (int round = 0; round < 3; ++round) {
    answers done;
    std::vector<std::byte> target(served_bytes), other(served_bytes);
    auto a = open(repair_lane::tcp);
    const auto memory = a->register_memory(target), other_memory = a->register_memory(other);
    for (std::size_t i = 0; i < 100; ++i) a->read(i % 2 == 0 ? peer.read(**memory, 60s) : stopped.read(**other_memory, 60s), done.take(i));
    wait_for_splits(*a, 10);
    stopped.signal(SIGSTOP);
    const auto start = std::chrono::steady_clock::now();
    a.reset();
    BOOST_TEST((std::chrono::steady_clock::now() - start < 5s));
    const auto came = done.wait(100);
    BOOST_TEST((came.back().second.error().code == errc::interrupted));
    std::ranges::fill(other, std::byte{1});
    stopped.signal(SIGCONT);
    const auto b = open(repair_lane::tcp);
    std::vector<std::byte> few(1000);
    const auto few_memory = b->register_memory(few);
    BOOST_TEST(words(read_now(*b, stopped.read(**few_memory, 20s))) == "ok");   // it has gone on
    BOOST_TEST(all_are(other, std::byte{1}));
  }
}

// Calls of which the nth of one kind fails.

enum class call : std::uint8_t { load, getinfo, fabric, domain, av_open, cq_open, endpoint, bind, enable, getname, mr_reg, av_insert, read, cq_read, completion, trywait, process_read };

class nth_call_fails final : public fabric_calls {
 public:
  nth_call_fails(call kind, int nth, int code) : kind_(kind), left_(nth), code_(code) {}
  bool failed() const { return left_ <= 0; }

  result<void> load() override {
    if (fails(call::load)) return fail(errc::unsupported, "libfabric is not here");
    return fabric_calls::load();
  }
  int getinfo(const char* node, const char* service, std::uint64_t flags, const fi_info* hints, fi_info** out) override {
    return fails(call::getinfo) ? -code_ : fabric_calls::getinfo(node, service, flags, hints, out);
  }
  int fabric(fi_info* info, fid_fabric** out) override { return fails(call::fabric) ? -code_ : fabric_calls::fabric(info, out); }
  int domain(fid_fabric* f, fi_info* info, fid_domain** out) override { return fails(call::domain) ? -code_ : fabric_calls::domain(f, info, out); }
  int av_open(fid_domain* d, std::size_t n, fid_av** out) override { return fails(call::av_open) ? -code_ : fabric_calls::av_open(d, n, out); }
  int cq_open(fid_domain* d, std::size_t n, bool waitable, fid_cq** out) override { return fails(call::cq_open) ? -code_ : fabric_calls::cq_open(d, n, waitable, out); }
  int endpoint(fid_domain* d, fi_info* info, fid_ep** out) override { return fails(call::endpoint) ? -code_ : fabric_calls::endpoint(d, info, out); }
  int bind(fid_ep* e, fid* to, std::uint64_t flags) override { return fails(call::bind) ? -code_ : fabric_calls::bind(e, to, flags); }
  int enable(fid_ep* e) override { return fails(call::enable) ? -code_ : fabric_calls::enable(e); }
  int getname(fid_ep* e, void* out, std::size_t* bytes) override { return fails(call::getname) ? -code_ : fabric_calls::getname(e, out, bytes); }
  int mr_reg(fid_domain* d, std::span<std::byte> b, std::uint64_t access, std::uint64_t key, fid_mr** out) override {
    return fails(call::mr_reg) ? -code_ : fabric_calls::mr_reg(d, b, access, key, out);
  }
  int av_insert(fid_av* av, const void* address, std::uint64_t* out) override { return fails(call::av_insert) ? -code_ : fabric_calls::av_insert(av, address, out); }
  ssize_t read(fid_ep* e, void* into, std::size_t n, void* d, std::uint64_t from, std::uint64_t address, std::uint64_t key, void* context) override {
    return fails(call::read) ? -code_ : fabric_calls::read(e, into, n, d, from, address, key, context);
  }
  ssize_t cq_read(fid_cq* cq, std::span<fabric_completion> out) override {
    if (fails(call::cq_read)) return -code_;
    const ssize_t n = fabric_calls::cq_read(cq, out);
    for (ssize_t i = 0; i < n; ++i)
      if (fails(call::completion)) out[static_cast<std::size_t>(i)].code = code_;
    return n;
  }
  int trywait(fid_fabric* f, fid_cq* cq) override { return fails(call::trywait) ? -code_ : fabric_calls::trywait(f, cq); }
  ssize_t process_read(pid_t p, std::span<const iovec> into, std::span<const iovec> source) override {
    if (fails(call::process_read)) return errno = code_, -1;
    return fabric_calls::process_read(p, into, source);
  }

 private:
  bool fails(call kind) {
    if (kind != kind_) return false;
    const int left = --left_;
    return left == 0 || (left < 0 && kind == call::getinfo);   // then of all providers: net, the second choice, leaks (1.17)
  }
  const call kind_;
  std::atomic<int> left_;
  const int code_;
};

// All of it: open, register, read 3 MiB in pieces, close. Output: the error, if there is one.
static std::optional<error> whole_run(repair_lane lane, fabric_calls& calls, fabric_endpoint& source, const fabric_memory& source_memory, std::span<const std::byte> expected) {
  std::vector<std::byte> target(expected.size());
  fabric_options o;
  o.lane = lane;
  o.local_address = "127.0.0.1";
  o.outstanding_max = 8;
  auto a = fabric_endpoint::open(o, calls);
  if (!a) return a.error();
  const auto memory = (*a)->register_memory(target);
  if (!memory) return memory.error();
  const auto outcome = read_now(**a, from(source, source_memory, **memory));
  if (!outcome) return outcome.error();
  BOOST_TEST(std::ranges::equal(target, expected));
  return std::nullopt;
}

BOOST_DATA_TEST_CASE(whatever_call_fails_the_error_says_so_and_nothing_is_left, bdata::xrange(17), kind_number) {
  const auto kind = static_cast<call>(kind_number);
  const repair_lane lane = kind == call::process_read ? repair_lane::shm : repair_lane::tcp;
  if (!there(lane)) return;
  auto bytes = random_bytes(3 << 20, 20);
  const auto source = open(lane);
  const auto source_memory = source->register_memory(bytes);
  BOOST_REQUIRE(source_memory.has_value());
  int nth = 1;
  for (; nth <= 25; ++nth) {
    nth_call_fails calls(kind, nth, nth % 2 == 0 ? int{FI_EOTHER} : int{FI_EIO});
    const auto e = whole_run(lane, calls, *source, **source_memory, bytes);
    if (!calls.failed()) {
      BOOST_TEST((!e.has_value()));
      break;
    }
    if (!e) continue;   // done without: looked again
    BOOST_TEST((e->code != errc::ok && !e->what.empty()));
  }
  BOOST_TEST(nth > 1);
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_registered_is_too_large) {
  if (!there(repair_lane::tcp)) return;
  nth_call_fails calls(call::mr_reg, 1, FI_ENOMEM);
  fabric_options o;
  o.local_address = "127.0.0.1";
  const auto a = fabric_endpoint::open(o, calls);
  BOOST_REQUIRE(a.has_value());
  std::vector<std::byte> bytes(1000);
  const auto refused = (*a)->register_memory(bytes);
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().code == errc::too_large));
  BOOST_TEST((*a)->register_memory(bytes).has_value());
  BOOST_TEST(((*a)->register_memory({}).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(a_provider_that_is_busy_is_asked_again) {
  if (!there(repair_lane::tcp)) return;
  class busy final : public fabric_calls {
   public:
    ssize_t read(fid_ep* e, void* into, std::size_t n, void* d, std::uint64_t from, std::uint64_t address, std::uint64_t key, void* context) override {
      if (++calls % 3 != 0) return -FI_EAGAIN;
      return fabric_calls::read(e, into, n, d, from, address, key, context);
    }
    int calls = 0;
  } calls;
  auto bytes = random_bytes(8 << 20, 21);
  const auto source = open(repair_lane::tcp);
  const auto source_memory = source->register_memory(bytes);
  BOOST_TEST((!whole_run(repair_lane::tcp, calls, *source, **source_memory, bytes).has_value()));
}

BOOST_DATA_TEST_CASE(an_arena_gives_each_slot_once_and_serves_reads, bdata::make(lanes), lane) {
  if (!there(lane)) return;
  const auto a = open(lane);
  auto b = open(lane);
  auto arena = fabric_arena::make(*b, 1000, 4);
  BOOST_REQUIRE(arena.has_value());
  std::vector<std::byte> target(1024);
  const auto memory = a->register_memory(target);
  std::vector<fabric_arena::slot> slots;
  while (auto s = (*arena)->take()) slots.push_back(*s);
  BOOST_TEST(slots.size() == 4u);
  for (const auto& s : slots) {
    BOOST_TEST(s.bytes.size() == 1024u);   // whole lines
    const auto bytes = random_bytes(1024, 30 + s.index);
    std::ranges::copy(bytes, s.bytes.begin());
    remote_read r = from(*b, (*arena)->memory(), **memory);
    r.address = s.address;
    BOOST_TEST(words(read_now(*a, r)) == "ok");
    BOOST_TEST((target == bytes));
  }
  (*arena)->give_back(slots[2]);
  BOOST_TEST((*arena)->free() == 1u);
  BOOST_TEST((*arena)->take()->index == slots[2].index);
  BOOST_TEST(!(*arena)->take().has_value());
  BOOST_TEST((fabric_arena::make(*b, 0, 4).error().code == errc::invalid_argument));
  BOOST_TEST((fabric_arena::make(*b, ~std::size_t{0}, 4).error().code == errc::too_large));
  b.reset();   // nobody is served from the arena any more when it goes
}

BOOST_AUTO_TEST_SUITE_END()
