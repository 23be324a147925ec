// One end of one-sided reads between hosts: `lend` offers memory, `read` reads from it and compares.
//
//   rdma_peer lend LANE ADDRESS BYTES                 writes "PEER MEMORY KEY" when it can be read from, and stays until it is killed
//   rdma_peer read LANE ADDRESS PEER MEMORY KEY DEADLINE_MS BYTES...
//                                                     reads so many bytes at a time; a line each: "BYTES OUTCOME MILLISECONDS [WORDS]"
//
// OUTCOME is ok, differs, or the name of an error. The memory holds numbers, from the first: whoever reads knows what must be there.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "transports/fabric/fabric_endpoint.hpp"

using namespace ddf;

static void count_up(std::span<std::byte> bytes) {
  std::uint64_t value = 0x9e3779b97f4a7c15u;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof value, value += 0x9e3779b97f4a7c15u)
    std::memcpy(bytes.data() + at, &value, std::min(sizeof value, bytes.size() - at));
}

static std::optional<repair_lane> lane_of(std::string_view text) {
  if (text == "verbs") return repair_lane::verbs;
  if (text == "tcp") return repair_lane::tcp;
  return std::nullopt;
}

static std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

static std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> out(hex.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned value = 0;
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, value, 16);
    out[i] = static_cast<std::byte>(value);
  }
  return out;
}

static int failed(const error& e) {
  fmt::print(stderr, "rdma_peer: {}: {}\n", name(e.code), describe(e));
  return 1;
}

static int lend(fabric_endpoint& endpoint, std::size_t bytes) {
  std::vector<std::byte> there(bytes);
  count_up(there);
  const auto memory = endpoint.register_memory(there);
  if (!memory) return failed(memory.error());
  for (const std::byte b : endpoint.address()) fmt::print("{:02x}", static_cast<unsigned>(b));
  fmt::print(" {} {}\n", (*memory)->address(), (*memory)->key());
  std::fflush(stdout);
  for (;;) ::pause();
}

static int read(fabric_endpoint& endpoint, std::span<const std::string_view> arguments) {
  std::vector<std::size_t> sizes;
  for (const std::string_view text : arguments.subspan(4)) sizes.push_back(number(text));
  std::vector<std::byte> expected(std::ranges::max(sizes)), here(expected.size());
  count_up(expected);
  const auto memory = endpoint.register_memory(here);
  if (!memory) return failed(memory.error());
  bool good = true;
  for (const std::size_t bytes : sizes) {
    std::ranges::fill(here, std::byte{});
    remote_read r;
    r.peer = bytes_of(arguments[0]);
    r.address = number(arguments[1]);
    r.key = number(arguments[2]);
    r.into = memory->get();
    r.bytes = bytes;
    r.deadline = std::chrono::milliseconds(number(arguments[3]));
    fmt::print("{} begun\n", bytes);
    std::fflush(stdout);
    const auto begun = std::chrono::steady_clock::now();
    std::promise<result<void>> done;
    endpoint.read(r, [&](result<void> outcome) { done.set_value(std::move(outcome)); });
    const auto outcome = done.get_future().get();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun).count();
    const bool equal = std::ranges::equal(std::span(here).first(bytes), std::span(expected).first(bytes)) &&
                       std::ranges::all_of(std::span(here).subspan(bytes), [](std::byte b) { return b == std::byte{}; });
    if (outcome) fmt::print("{} {} {}\n", bytes, equal ? "ok" : "differs", ms);
    else fmt::print("{} {} {} {}\n", bytes, name(outcome.error().code), ms, describe(outcome.error()));
    std::fflush(stdout);
    good = good && outcome && equal;
  }
  return good ? 0 : 1;
}

int main(int count, char** values) {
  const std::vector<std::string_view> arguments(values + 1, values + count);
  const bool lends = arguments.size() == 4 && arguments[0] == "lend", reads = arguments.size() >= 8 && arguments[0] == "read";
  const auto lane = lends || reads ? lane_of(arguments[1]) : std::nullopt;
  if (!lane) {
    fmt::print(stderr, "usage: rdma_peer lend LANE ADDRESS BYTES | read LANE ADDRESS PEER MEMORY KEY DEADLINE_MS BYTES...\n");
    return 2;
  }
  fabric_options options;
  options.lane = *lane;
  options.local_address = arguments[2];
  const auto endpoint = fabric_endpoint::open(options);
  if (!endpoint) return failed(endpoint.error());
  fmt::print(stderr, "rdma_peer: {} at {}\n", (*endpoint)->provider(), arguments[2]);
  if (lends) return lend(**endpoint, number(arguments[3]));
  return read(**endpoint, std::span(arguments).subspan(3));
}
