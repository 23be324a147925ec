#include "lib/wire/catalogue_codec.hpp"

#include <boost/test/unit_test.hpp>

#include "lib/wire/cursor.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/catalogues.hpp"
#include "tests/support/golden.hpp"

using namespace ddf;

BOOST_AUTO_TEST_SUITE(catalogue_codec_)

static catalogue sample() {
  catalogue c{test::file("model.safetensors", (std::uint64_t(1) << 33) + 1, 4 << 20), test::folder("f\xc3\xbcr/alle", {0, 1, 65537}), test::file("-empty", 0)};
  c[0].version = version_id{77};
  c[0].element_bytes = 2;
  c[0].consistent = consistency::append_only;
  c[0].base = "models/base";
  c[1].parts[0].directory = true;
  c[1].parts[0].mode = 0755;
  c[1].parts[2].mode = 04755;
  manifest memory;
  memory.name = "weights";
  memory.kind = object_kind::memory;
  memory.parts = {{"layer.0", 4096, 0644, false}, {"layer.1", 0, 0644, false}};
  c.push_back(memory);
  return c;
}

BOOST_AUTO_TEST_CASE(a_catalogue_reads_back) {
  const auto back = parse_catalogue(write_catalogue(sample()));
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST((*back == sample()));
}

BOOST_AUTO_TEST_CASE(a_catalogue_has_the_bytes_of_its_golden_file) {
  const auto path = test::golden_folder() / "catalogue.hex";
  if (test::writes_golden()) test::write_golden(path, "a file, a folder, an empty file and an object in memory", write_catalogue(sample()));
  BOOST_TEST((test::read_golden(path).bytes == write_catalogue(sample())));
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  auto bytes = write_catalogue(sample());
  for (std::size_t n = 0; n < bytes.size(); ++n) BOOST_REQUIRE(!parse_catalogue(std::span(bytes).first(n)).has_value());
  bytes.push_back(std::byte{0});
  BOOST_TEST(!parse_catalogue(bytes).has_value());
}

BOOST_AUTO_TEST_CASE(every_value_of_one_byte_is_refused_or_writes_back_to_itself) {
  const auto whole = write_catalogue(sample());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (unsigned v = 0; v < 256; ++v) {
      auto changed = whole;
      changed[i] = static_cast<std::byte>(v);
      if (const auto back = parse_catalogue(changed)) BOOST_REQUIRE_MESSAGE(write_catalogue(*back) == changed, "byte " << i << " = " << v);
    }
}

// Offsets: objects at 0; then of the first object its name's length at 4, name at 5.
static std::vector<std::byte> one_object(std::string_view name, std::uint32_t parts, std::uint8_t shift = 16, std::uint8_t kind = 0, std::uint64_t size = 1,
                                         std::uint64_t version = 1, std::uint32_t objects = 1, std::string_view part_name = "", std::uint32_t parts_written = 1) {
  std::vector<std::byte> out;
  writer w(out);
  w.u32(objects);
  w.u8(static_cast<std::uint8_t>(name.size()));
  w.text(name);
  w.u64(version);
  w.u8(kind), w.u8(1), w.u8(1), w.u8(shift);
  w.u8(0), w.u8(0);   // consistency, no base
  w.u32(parts);
  for (std::uint32_t i = 0; i < parts_written; ++i) {
    w.u16(static_cast<std::uint16_t>(part_name.size()));
    w.text(part_name);
    w.u64(size);
    w.u16(0644);
    w.u8(0);
  }
  return out;
}

struct refused {
  std::string name, error;
  std::vector<std::byte> bytes;
};
static std::vector<refused> refusals() {
  auto long_part = std::string(256, 'x');
  return {
      {"objects_claimed", "malformed", one_object("a", 1, 16, 0, 1, 1, 65536)},
      {"objects_claimed_absurdly", "malformed", one_object("a", 1, 16, 0, 1, 1, 0xffffffff)},
      {"parts_claimed", "malformed", one_object("a", 1 << 20)},
      {"parts_claimed_absurdly", "malformed", one_object("a", 0xffffffff)},
      {"no_objects", "at least one object", std::vector<std::byte>(4)},
      {"block_shift_64", "malformed", one_object("a", 1, 64)},
      {"block_shift_15", "power of two from 64 KiB", one_object("a", 1, 15)},
      {"block_shift_23", "power of two from 64 KiB", one_object("a", 1, 23)},
      {"kind_3", "malformed", one_object("a", 1, 16, 3)},
      {"version_0", "version 0", one_object("a", 1, 16, 0, 1, 0)},
      {"size_2_to_the_63", "larger than 1 PiB", one_object("a", 1, 22, 0, std::uint64_t(1) << 63)},
      {"size_1_pib", "2^24 blocks", one_object("a", 1, 22, 0, std::uint64_t(1) << 50)},
      {"sum_wraps", "larger than 1 PiB", one_object("a", 2, 22, 1, ~std::uint64_t(0), 1, 1, "p", 2)},
      {"name_climbs", "'.' or '..'", one_object("../../x", 1)},
      {"name_absolute", "empty component", one_object("/etc/passwd", 1)},
      {"name_nul", "NUL", one_object(std::string_view("a\0b", 3), 1)},
      {"name_empty", "empty", one_object("", 1)},
      {"part_climbs", "'.' or '..'", one_object("a", 1, 16, 1, 1, 1, 1, "x/../../y")},
      {"part_of_a_file_named", "one unnamed part", one_object("a", 1, 16, 0, 1, 1, 1, "p")},
      {"part_of_memory_climbs", "'.' or '..'", one_object("a", 1, 16, 2, 1, 1, 1, "../y")},
      {"part_component_long", "longer than 255", one_object("a", 1, 16, 1, 1, 1, 1, long_part)},
      {"part_twice", "there twice", one_object("a", 2, 16, 1, 1, 1, 1, "p", 2)},
      {"file_in_two_parts", "one unnamed part", one_object("a", 2, 16, 0, 1, 1, 1, "", 2)},
  };
}

BOOST_AUTO_TEST_CASE(a_catalogue_that_breaks_a_rule_is_refused_with_its_reason) {
  for (const refused& r : refusals()) {
    const auto c = parse_catalogue(r.bytes);
    BOOST_REQUIRE_MESSAGE(!c.has_value(), r.name);
    BOOST_TEST(c.error().what.find(r.error) != std::string::npos, r.name << ": " << c.error().what);
  }
}

BOOST_AUTO_TEST_CASE(files_that_must_be_refused_are) {
  const auto folder = test::golden_folder() / "catalogues_refused";
  if (test::writes_golden())
    for (const refused& r : refusals()) test::write_golden(folder / (r.name + ".hex"), r.error, r.bytes);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto golden = test::read_golden(entry.path());
    const auto c = parse_catalogue(golden.bytes);
    BOOST_REQUIRE_MESSAGE(!c.has_value(), entry.path().stem());
    BOOST_TEST(c.error().what.find(golden.comment) != std::string::npos, entry.path().stem() << ": " << c.error().what);
    ++files;
  }
  BOOST_TEST(files == refusals().size());
}

BOOST_AUTO_TEST_CASE(counts_beyond_the_bytes_take_no_memory) {
  for (const refused& r : refusals()) {
    const std::size_t before = test::bytes_allocated();
    const bool parsed = parse_catalogue(r.bytes).has_value();
    const std::size_t taken = test::bytes_allocated() - before;
    BOOST_TEST(!parsed);
    BOOST_TEST(taken < 4096u, r.name << " took " << taken << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(memory_is_a_small_multiple_of_the_bytes) {
  catalogue c{test::folder("d", std::vector<std::uint64_t>(20'000, 1))};
  const auto bytes = write_catalogue(c);
  const std::size_t before = test::bytes_allocated();
  BOOST_REQUIRE(parse_catalogue(bytes).has_value());
  BOOST_TEST(test::bytes_allocated() - before < 20 * bytes.size());
}

BOOST_AUTO_TEST_CASE(the_bounds_of_a_session_hold) {
  catalogue many;
  for (std::uint64_t i = 0; i < limits::objects; ++i) many.push_back(test::file("f" + std::to_string(i), 0));
  BOOST_TEST(check_catalogue(many).has_value());
  many.push_back(test::file("one more", 0));
  BOOST_TEST((check_catalogue(many).error().code == errc::too_large));
  BOOST_TEST((check_catalogue({test::file("a", limits::blocks * limits::block_bytes_max, limits::block_bytes_max), test::file("b", 1)}).error().code == errc::too_large));
  BOOST_TEST(check_catalogue({test::file("a", 1), test::file("a", 2)}).error().what.find("two objects are named 'a'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
