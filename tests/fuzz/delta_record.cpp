// Any bytes as a record of a small base: an answer, the same in place, and not a byte read or written outside.
//
// Input: the element; the target's length - 1 (16 bits); whether there is a base, which the length makes; the record.
// With DDF_WRITE_CORPUS=<folder> in the environment the program writes the corpus instead: records of each operation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codecs/delta/record.hpp"
#include "codecs/delta/workspace.hpp"
#include "tests/support/delta_pairs.hpp"

using namespace ddf;
using namespace ddf::delta;

static void expect(bool condition) {
  if (!condition) std::abort();
}

static std::vector<std::byte> base_of(element e, std::size_t bytes) {
  prng random(bytes);
  return test::weights(random, e, bytes);
}

static void write_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  static constexpr const char* names[] = {"keep", "replace", "sparse_context", "sparse_fast", "gather", "dense", "planes", "prefix"};
  bool written[11][8] = {};
  workspace w;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    prng random(seed);
    const auto elements = test::every_element();
    const element e = elements[random.next() % elements.size()];
    const std::size_t bytes = 500 + random.next() % 1000;
    const auto base = base_of(e, bytes), target = test::changed(random, e, base, test::every_change[random.next() % std::size(test::every_change)]);
    const bool has_base = random.next() % 5 != 0;
    std::vector<std::byte> record;
    encode_record(w, e, has_base ? base : std::vector<std::byte>(), target, random.next() % 2 != 0 ? profile::tight : profile::fast, record);
    const auto operation = std::to_integer<unsigned>(record[0]);
    if (std::exchange(written[static_cast<unsigned>(e)][operation], true) || (operation < 2 && e != element::bf16)) continue;
    std::ofstream file(folder / (std::string(names[operation]) + "_" + std::to_string(static_cast<unsigned>(e))), std::ios::binary);
    const std::uint8_t head[] = {static_cast<std::uint8_t>(e), static_cast<std::uint8_t>((bytes - 1) & 0xff), static_cast<std::uint8_t>((bytes - 1) >> 8), static_cast<std::uint8_t>(has_base)};
    file.write(reinterpret_cast<const char*>(head), sizeof head);
    file.write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const char* folder = std::getenv("DDF_WRITE_CORPUS")) {
    write_corpus(folder);
    std::exit(0);
  }
  if (size < 4) return 0;
  const auto e = static_cast<element>(data[0] % (element_last + 1));
  const std::size_t bytes = (data[1] | std::size_t(data[2]) << 8) + 1, record_bytes = size - 4;
  const bool has_base = data[3] % 2 != 0;
  // Of exactly the size, so that the sanitizer sees a byte too far.
  const auto record = std::make_unique<std::byte[]>(record_bytes), base = std::make_unique<std::byte[]>(bytes), target = std::make_unique<std::byte[]>(bytes),
             in_place = std::make_unique<std::byte[]>(bytes);
  std::copy_n(reinterpret_cast<const std::byte*>(data) + 4, record_bytes, record.get());
  const auto b = base_of(e, bytes);
  std::copy(b.begin(), b.end(), base.get());
  std::copy(b.begin(), b.end(), in_place.get());
  const std::span<const std::byte> base_span = has_base ? std::span<const std::byte>(base.get(), bytes) : std::span<const std::byte>();

  static workspace w;
  static workspace plain = [] {
    workspace s;
    s.use_scalar_only();
    return s;
  }();
  const bool good = decode_record(w, e, base_span, {record.get(), record_bytes}, {target.get(), bytes});
  expect(std::equal(b.begin(), b.end(), base.get()));
  if (has_base) {
    expect(good == decode_record_in_place(w, e, {record.get(), record_bytes}, {in_place.get(), bytes}));
    if (good) expect(std::equal(target.get(), target.get() + bytes, in_place.get()));
  }
  if (!good) return 0;
  const std::vector<std::byte> made(target.get(), target.get() + bytes);
  expect(decode_record(plain, e, base_span, {record.get(), record_bytes}, {target.get(), bytes}));
  expect(std::equal(made.begin(), made.end(), target.get()));
  // What it makes can be said again, in either way.
  for (const profile p : {profile::tight, profile::fast}) {
    std::vector<std::byte> again, plainly;
    encode_record(w, e, base_span, made, p, again);
    encode_record(plain, e, base_span, made, p, plainly);
    expect(again == plainly && again.size() <= bytes + record_overhead_bytes_max);
    expect(decode_record(w, e, base_span, again, {target.get(), bytes}));
    expect(std::equal(made.begin(), made.end(), target.get()));
  }
  return 0;
}
