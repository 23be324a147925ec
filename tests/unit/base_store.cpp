// What a publisher remembers of what it published, and how the bytes of an older version are found again.
#include "lib/store/base_store.hpp"

#include <chrono>

#include "lib/store/record.hpp"
#include "tests/support/golden.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(base_store_)

namespace {

using numbers = std::vector<std::uint64_t>;

numbers listed(const base_store& store, const std::string& name) {
  numbers out;
  for (const published_base& b : store.list(name)) out.push_back(b.description.version.value);
  return out;
}

struct opened {
  published_base base;
  std::shared_ptr<object_source> source;
};

opened open_version(const std::string& path, std::uint64_t v, const std::string& name = {}) {
  auto o = open_path({path, name});
  DDF_REQUIRE_OK(o);
  opened out;
  out.source = std::move(o->source);
  out.base.description = std::move(o->description);
  out.base.description.version = version_id{v};
  out.base.identity = out.source->identity();
  out.base.path = out.source->path();
  for (const block_place& b : block_places(out.base.description)) {
    std::vector<std::byte> bytes(b.bytes);
    DDF_REQUIRE_OK(out.source->read(b.part, b.offset, bytes));
    out.base.digests.blocks.push_back(block_digest(bytes));
  }
  out.base.digests.root = root_digest(out.base.description.name, out.base.description.size(), out.base.digests.blocks);
  return out;
}

// As long ago, so that a change shows in the time of the last.
void made_long_ago(const std::string& path) { fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1)); }

void save(const base_store& store, const opened& o) { DDF_REQUIRE_OK(store.save(o.base, *o.source)); }

std::string all_bytes(const delta_base& b) {
  if (!b.bytes) return "none";
  std::vector<std::byte> out(b.bytes->size());
  const auto ok = b.bytes->read(0, out);
  return ok ? std::string(reinterpret_cast<const char*>(out.data()), out.size()) : std::string(name(ok.error().code));
}

std::vector<std::string> copies(const temporary_folder& t) {
  std::vector<std::string> out;
  for (const auto& e : fs::directory_iterator(t / "state/bases"))
    if (e.is_directory()) out.push_back(e.path().filename().string().substr(32));
  std::sort(out.begin(), out.end());
  return out;
}

using paths = std::vector<std::string>;

published_base sample() {
  content c = folder_content("acme/policy", {{"a/b", pattern(70'000)}, {"empty", ""}, {"c", "x"}});
  c.description.version = version_id{41};
  digest identity;
  identity.bytes.fill(std::byte{7});
  return {c.description, identity, "/models/policy", digests(c)};
}

bool equal(const published_base& a, const published_base& b) {
  return a.description == b.description && a.identity == b.identity && a.path == b.path && a.digests.root == b.digests.root && a.digests.blocks == b.digests.blocks;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_record_reads_back) {
  const auto back = parse_base(write_base(sample()));
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(equal(*back, sample()));
  published_base memory = sample();
  memory.path.clear(), memory.identity = {};
  BOOST_TEST(equal(*parse_base(write_base(memory)), memory));
}

BOOST_AUTO_TEST_CASE(a_record_has_the_bytes_of_its_golden_file) {
  const auto path = golden_folder() / "published_base.hex";
  if (writes_golden()) write_golden(path, "a folder of three files, published as version 41", write_base(sample()));
  BOOST_TEST((read_golden(path).bytes == write_base(sample())));
}

BOOST_AUTO_TEST_CASE(a_damaged_record_is_none) {
  auto whole = write_base(sample());
  for (std::size_t n = 0; n < whole.size(); ++n) BOOST_REQUIRE(!parse_base(std::span(whole).first(n)).has_value());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto changed = whole;
    changed[i] ^= std::byte{1};
    BOOST_REQUIRE(!parse_base(changed).has_value());
  }
  whole.push_back(std::byte{0});
  BOOST_TEST(!parse_base(whole).has_value());
}

BOOST_AUTO_TEST_CASE(every_value_of_one_byte_of_an_intact_record_is_none_or_writes_back_to_itself) {
  const auto whole = write_base(sample());
  const auto body = *unseal_record("ddfbase1", whole);
  for (std::size_t i = 0; i < body.size(); ++i)
    for (const unsigned v : {0u, 1u, 0x7fu, 0x80u, 0xffu}) {
      std::vector<std::byte> changed(body.begin(), body.end());
      changed[i] = static_cast<std::byte>(v);
      const auto sealed = seal_record("ddfbase1", changed);
      if (const auto back = parse_base(sealed)) BOOST_REQUIRE(write_base(*back) == sealed);
    }
}

BOOST_AUTO_TEST_CASE(versions_are_listed_newest_first_and_by_name) {
  temporary_folder t;
  put(t / "f", "x");
  const base_store store(t / "state", 0);
  BOOST_TEST(store.list("f").empty());
  for (const std::uint64_t v : {9, 1, 10, 2}) save(store, open_version(t / "f", v));
  save(store, open_version(t / "f", 5, "f@9"));
  save(store, open_version(t / "f", 6, "dir/f"));
  BOOST_TEST((listed(store, "f") == numbers{10, 9, 2, 1}));
  BOOST_TEST((listed(store, "f@9") == numbers{5}));
  BOOST_TEST((listed(store, "dir/f") == numbers{6}));
  BOOST_TEST(listed(store, "g").empty());
}

BOOST_AUTO_TEST_CASE(a_damaged_or_foreign_file_among_them_is_passed_over) {
  temporary_folder t;
  put(t / "f", "x");
  const base_store store(t / "state", 0);
  for (const std::uint64_t v : {1, 2, 3}) save(store, open_version(t / "f", v));
  const std::string key = t / "state/bases/" + record_name({}, "f") + '@';
  put(key + "2", get(key + "2").substr(0, 100));
  fs::copy_file(key + "1", key + "7");   // says that it is version 1
  put(key + "x", "x");
  put(key + "18446744073709551616", "x");
  fs::create_directory(key + "8");
  BOOST_TEST((listed(store, "f") == numbers{3, 1}));
}

BOOST_AUTO_TEST_CASE(only_so_many_are_remembered) {
  temporary_folder t;
  put(t / "f", "x");
  for (const unsigned keep : {0u, 2u, 30u}) {
    const base_store store(t / "state", keep);
    const std::string object = "keep" + std::to_string(keep);
    for (std::uint64_t v = 1; v <= base_store::versions_max + 3; ++v) save(store, open_version(t / "f", v, object));
    const auto all = listed(store, object);
    BOOST_TEST(all.size() == base_store::versions_max);
    BOOST_TEST(all.front() == base_store::versions_max + 3);
    BOOST_TEST(copies(t).size() == std::min<std::size_t>(keep, base_store::versions_max));   // none of a version that is forgotten
    fs::remove_all(t / "state/bases");
  }
}

BOOST_AUTO_TEST_CASE(the_bytes_come_from_the_path_then_from_a_copy_then_from_nowhere) {
  temporary_folder t;
  const base_store store(t / "state", 1);
  const std::string bytes = pattern(200'000);
  put(t / "f", bytes);
  const opened o = open_version(t / "f", 1);
  save(store, o);
  const published_base b = store.list("f").at(0);
  BOOST_TEST(equal(b, o.base));
  const std::string copy = t / "state/bases/" + record_name({}, "f") + "@1.data/0";
  BOOST_TEST((get(copy) == bytes));

  put(copy, "not looked at");
  BOOST_TEST((all_bytes(store.open(b)) == bytes));
  put(copy, bytes);
  put(t / "f", pattern(200'000, 2));   // overwritten in place
  BOOST_TEST((all_bytes(store.open(b)) == bytes));
  put(copy, bytes.substr(1));
  BOOST_TEST(all_bytes(store.open(b)) == "stale_base");
  fs::remove_all(fs::path(copy).parent_path());
  const delta_base left = store.open(b);
  BOOST_TEST(!left.bytes);
  BOOST_TEST((left.digests.blocks == o.base.digests.blocks));
  BOOST_TEST((left.description == o.base.description));
  fs::remove(t / "f");
  BOOST_TEST(!store.open(b).bytes);
}

BOOST_AUTO_TEST_CASE(a_folder_is_copied_part_by_part) {
  temporary_folder t;
  const base_store store(t / "state", 1);
  put(t / "d/a/1", pattern(100'000, 1));
  put(t / "d/b", "two");
  put(t / "d/empty", "");
  fs::create_directory(t / "d/none");
  save(store, open_version(t / "d", 1));
  fs::remove_all(t / "d");
  BOOST_TEST((all_bytes(store.open(store.list("d").at(0))) == pattern(100'000, 1) + "two"));
}

BOOST_AUTO_TEST_CASE(copies_are_of_the_newest_so_many) {
  temporary_folder t;
  const base_store store(t / "state", 2);
  for (std::uint64_t v = 1; v <= 4; ++v) {
    put(t / "f", "version " + std::to_string(v));
    save(store, open_version(t / "f", v));
  }
  BOOST_TEST((copies(t) == paths{"@3.data", "@4.data"}));
  BOOST_TEST((listed(store, "f") == numbers{4, 3, 2, 1}));
  fs::remove(t / "f");
  std::vector<std::string> found;
  for (const published_base& b : store.list("f")) found.push_back(all_bytes(store.open(b)));
  BOOST_TEST((found == paths{"version 4", "version 3", "none", "none"}));
  put(t / "f", "version 5");
  save(base_store(t / "state", 0), open_version(t / "f", 5));
  BOOST_TEST(copies(t).empty());
}

BOOST_AUTO_TEST_CASE(a_copy_of_other_bytes_under_the_same_version_is_made_anew) {
  temporary_folder t;
  const base_store store(t / "state", 1);
  put(t / "f", "the first");
  save(store, open_version(t / "f", 1));
  put(t / "f", "another");
  const opened o = open_version(t / "f", 1);
  save(store, o);
  fs::remove(t / "f");
  BOOST_TEST(all_bytes(store.open(o.base)) == "another");
}

BOOST_AUTO_TEST_CASE(what_a_killed_run_left_is_removed) {
  temporary_folder t;
  const base_store store(t / "state", 1);
  const std::string key = t / "state/bases/" + record_name({}, "f") + '@';
  put(key + "1.data/0", "never recorded");
  put(key + "2.data/0", "neither");
  put(key + "2.making/0", "half");
  put(t / "f", "the real one");
  const opened o = open_version(t / "f", 2);
  save(store, o);
  BOOST_TEST((copies(t) == paths{"@2.data"}));
  fs::remove(t / "f");
  BOOST_TEST(all_bytes(store.open(o.base)) == "the real one");
}

BOOST_AUTO_TEST_CASE(memory_is_remembered_by_digests_and_copied_when_that_is_wanted) {
  for (const unsigned keep : {0u, 1u}) {
    temporary_folder t;
    const base_store store(t / "state", keep);
    const std::string weight = pattern(100'000), bias = "bias";
    const std::vector<part_view> parts{{"weight", std::as_bytes(std::span(weight)), 2}, {"bias", std::as_bytes(std::span(bias)), 2}};
    auto o = open_memory("m", parts);
    DDF_REQUIRE_OK(o);
    content c{o->description, {weight, bias}};
    DDF_REQUIRE_OK(store.save({o->description, {}, {}, digests(c)}, *o->source));
    BOOST_TEST((all_bytes(store.open(store.list("m").at(0))) == (keep == 0 ? "none" : weight + bias)));
  }
}

BOOST_AUTO_TEST_CASE(without_a_state_folder_nothing_is_remembered) {
  temporary_folder t;
  put(t / "f", "x");
  const base_store store("", 3);
  save(store, open_version(t / "f", 1));
  BOOST_TEST(store.list("f").empty());
}

BOOST_AUTO_TEST_CASE(a_state_folder_that_cannot_be_made_is_an_io_error) {
  temporary_folder t;
  put(t / "f", "x");
  put(t / "state", "a file");
  const opened o = open_version(t / "f", 1);
  DDF_CHECK_FAILS(base_store(t / "state", 1).save(o.base, *o.source), errc::io);
}

BOOST_AUTO_TEST_CASE(a_source_that_changed_before_it_was_copied_leaves_no_copy) {
  temporary_folder t;
  const base_store store(t / "state", 1);
  put(t / "f", pattern(100'000));
  auto o = open_path({t / "f", ""});   // never read, so not open yet
  DDF_REQUIRE_OK(o);
  opened version = open_version(t / "f", 1);
  version.source = std::move(o->source);
  put(t / "f", "shorter");
  DDF_CHECK_FAILS(store.save(version.base, *version.source), errc::source_changed);
  BOOST_TEST(copies(t).empty());
  BOOST_TEST((listed(store, "f") == numbers{1}));   // its digests are right still
}

// A publisher has the files of its last version open: replaced by a rename they are still there.
BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_is_readable_as_long_as_it_is_open) {
  temporary_folder t;
  const std::string bytes = pattern(200'000);
  put(t / "f", bytes);
  const opened o = open_version(t / "f", 1);
  put(t / "next", pattern(200'000, 2));
  fs::rename(t / "next", t / "f");
  DDF_CHECK_FAILS(o.source->check_unchanged(), errc::source_changed);
  DDF_REQUIRE_OK(o.source->check_open());
  BOOST_TEST((all_bytes(base_from(o.base, o.source)) == bytes));
  fs::remove(t / "f");
  DDF_REQUIRE_OK(o.source->check_open());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_written_to_in_place_is_noticed) {
  temporary_folder t;
  const auto changed = [&](auto change) {
    put(t / "f", pattern(1000));
    made_long_ago(t / "f");
    const opened o = open_version(t / "f", 1);
    change();
    DDF_CHECK_FAILS(o.source->check_open(), errc::source_changed);
  };
  changed([&] { std::fstream(t / "f", std::ios::in | std::ios::out | std::ios::binary).write("y", 1); });
  changed([&] { fs::resize_file(t / "f", 999); });
  changed([&] { std::ofstream(t / "f", std::ios::app) << "more"; });
  // One of many, too.
  put(t / "d/a", "1"), put(t / "d/b", "2");
  made_long_ago(t / "d/b");
  const opened o = open_version(t / "d", 1);
  put(t / "d/b", "3");
  DDF_CHECK_FAILS(o.source->check_open(), errc::source_changed);
}

BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_before_it_was_read_is_noticed) {
  temporary_folder t;
  put(t / "f", "x");
  auto o = open_path({t / "f", ""});
  DDF_REQUIRE_OK(o);
  put(t / "next", "y");
  fs::rename(t / "next", t / "f");
  DDF_CHECK_FAILS(o->source->check_open(), errc::source_changed);
}

BOOST_AUTO_TEST_CASE(nothing_stays_open) {
  temporary_folder t;
  put(t / "f", "x");
  const std::size_t before = open_descriptors();
  {
    const base_store store(t / "state", 2);
    for (std::uint64_t v = 1; v <= 5; ++v) save(store, open_version(t / "f", v));
    fs::remove(t / "f");
    for (const published_base& b : store.list("f")) (void)all_bytes(store.open(b));
  }
  BOOST_TEST(open_descriptors() == before);
}

BOOST_AUTO_TEST_SUITE_END()
