// Records survive damage by counting as none, and writing them again gives the same bytes.
#include "lib/store/published.hpp"
#include "lib/store/receive_records.hpp"
#include "lib/store/record.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

digest some_digest(int i) {
  digest d;
  d.bytes.fill(std::byte(i));
  return d;
}

partial_record some_partial() {
  partial_record p{some_digest(1), "tenant/.m.ddf-00000000.partial", {}};
  p.complete.insert(0, 3);
  p.complete.insert(7, 8);
  p.complete.insert(100, 1000);
  return p;
}

committed_record some_committed() {
  committed_record c;
  c.description = some_digest(1);
  c.root = some_digest(2);
  c.version = version_id{7};
  c.inode = 42;
  c.files = {{1, 2, -3, 4}, {5, 6, 7, 8}};
  return c;
}

// Flips every bit and cuts at every length.
template <class Parse>
void check_damage(const std::vector<std::byte>& record, Parse parse) {
  for (std::size_t i = 0; i < record.size(); ++i) {
    BOOST_TEST(!parse(std::span(record).first(i)));
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = record;
      damaged[i] ^= std::byte(1 << bit);
      BOOST_TEST(!parse(std::span<const std::byte>(damaged)));
    }
  }
  auto longer = record;
  longer.push_back(std::byte{0});
  BOOST_TEST(!parse(std::span<const std::byte>(longer)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(store_record)

BOOST_AUTO_TEST_CASE(records_come_back_as_they_were) {
  const auto p = parse_partial_record(write_record(some_partial()));
  BOOST_REQUIRE(p);
  BOOST_TEST((*p == some_partial()));
  const auto c = parse_committed_record(write_record(some_committed()));
  BOOST_REQUIRE(c);
  BOOST_TEST((*c == some_committed()));
  const digest_table table{some_digest(9), {some_digest(1), some_digest(2)}};
  const auto t = parse_digest_record(write_record(table));
  BOOST_REQUIRE(t);
  BOOST_TEST((t->root == table.root));
  BOOST_TEST((t->blocks == table.blocks));
}

BOOST_AUTO_TEST_CASE(a_damaged_record_counts_as_none) {
  check_damage(write_record(some_partial()), [](auto bytes) { return parse_partial_record(bytes).has_value(); });
  check_damage(write_record(some_committed()), [](auto bytes) { return parse_committed_record(bytes).has_value(); });
  check_damage(write_record(digest_table{some_digest(1), {some_digest(2)}}), [](auto bytes) { return parse_digest_record(bytes).has_value(); });
  check_damage(write_published("n", {version_id{3}, some_digest(1), {some_digest(2), {some_digest(3)}}}), [](auto bytes) { return parse_published("n", bytes).has_value(); });
  BOOST_TEST(!parse_partial_record(write_record(some_committed())));   // of another kind
}

BOOST_AUTO_TEST_CASE(ranges_out_of_order_or_out_of_bounds_count_as_none) {
  const auto parses = [](std::vector<range> ranges) {
    std::vector<std::byte> body(18);
    const auto put64 = [&](std::uint64_t v) {
      for (int i = 7; i >= 0; --i) body.push_back(std::byte(v >> (8 * i) & 0xff));
    };
    for (int i = 3; i >= 0; --i) body.push_back(std::byte(ranges.size() >> (8 * i) & 0xff));
    for (const range& r : ranges) put64(r.first), put64(r.last);
    return parse_partial_record(seal_record("ddfpart1", body)).has_value();
  };
  BOOST_TEST(parses({}));
  BOOST_TEST(parses({{0, 1}, {2, 3}}));
  BOOST_TEST(!parses({{1, 1}}));
  BOOST_TEST(!parses({{2, 1}}));
  BOOST_TEST(!parses({{2, 3}, {0, 1}}));
  BOOST_TEST(!parses({{0, 1}, {1, 2}}));
  BOOST_TEST(!parses({{0, limits::blocks + 1}}));
}

BOOST_AUTO_TEST_CASE(more_ranges_than_a_record_holds_are_cut_not_refused) {
  partial_record p;
  for (std::uint64_t i = 0; i < partial_record::ranges_max + 10; ++i) p.complete.insert(2 * i, 2 * i + 1);
  const auto bytes = write_record(p);
  BOOST_TEST(bytes.size() <= partial_record::bytes_max);
  const auto back = parse_partial_record(bytes);
  BOOST_REQUIRE(back);
  BOOST_TEST(back->complete.count() == partial_record::ranges_max);
}

BOOST_AUTO_TEST_CASE(a_description_differs_by_everything_but_the_version) {
  manifest m = folder_content("f", {{"a", "1"}, {"b", "2"}}).description;
  const digest before = description_digest(m);
  m.version = version_id{99};
  BOOST_TEST((description_digest(m) == before));
  for (const auto& change : std::vector<std::function<void(manifest&)>>{
           [](manifest& c) { c.name = "g"; }, [](manifest& c) { c.parts[0].size = 2; }, [](manifest& c) { c.parts[0].name = "c"; },
           [](manifest& c) { c.parts[1].mode = 0755; }, [](manifest& c) { c.block_bytes *= 2; }, [](manifest& c) { c.parts.pop_back(); },
           [](manifest& c) { c.kind = object_kind::memory; }, [](manifest& c) { c.element_bytes = 2; }}) {
    manifest changed = m;
    change(changed);
    BOOST_TEST((description_digest(changed) != before));
  }
}

BOOST_AUTO_TEST_CASE(a_publication_is_remembered_until_the_next) {
  temporary_folder t;
  const published_store store(t / "state/ddf");
  BOOST_TEST(!store.load("acme/policy"));
  const published_version v{version_id{3}, some_digest(1), {some_digest(2), {some_digest(3), some_digest(4)}}};
  DDF_REQUIRE_OK(store.save("acme/policy", v));
  DDF_REQUIRE_OK(store.save("acme/other", {version_id{9}, {}, {}}));
  auto back = published_store(t / "state/ddf").load("acme/policy");
  BOOST_REQUIRE(back);
  BOOST_TEST(back->version.value == 3u);
  BOOST_TEST((back->identity == v.identity));
  BOOST_TEST((back->digests.root == v.digests.root));
  BOOST_TEST((back->digests.blocks == v.digests.blocks));
  DDF_REQUIRE_OK(store.save("acme/policy", {version_id{4}, {}, {}}));
  back = store.load("acme/policy");
  BOOST_REQUIRE(back);
  BOOST_TEST(back->version.value == 4u);
  BOOST_TEST(back->digests.blocks.empty());
  BOOST_TEST(std::distance(fs::directory_iterator(t / "state/ddf/publish"), fs::directory_iterator()) == 2);

  for (const auto& e : fs::directory_iterator(t / "state/ddf/publish")) put(e.path().string(), "garbage");
  BOOST_TEST(!store.load("acme/policy"));
  DDF_REQUIRE_OK(store.save("acme/policy", v));
  BOOST_TEST(store.load("acme/policy").has_value());
}

BOOST_AUTO_TEST_CASE(without_a_state_folder_no_publication_is_remembered) {
  const published_store store("");
  DDF_REQUIRE_OK(store.save("n", {version_id{3}, {}, {}}));
  BOOST_TEST(!store.load("n"));
}

BOOST_AUTO_TEST_CASE(a_state_folder_that_cannot_be_made_is_named) {
  temporary_folder t;
  put(t / "file", "x");
  const auto ok = published_store(t / "file/state").save("n", {version_id{3}, {}, {}});
  DDF_CHECK_FAILS(ok, errc::io);
  BOOST_TEST(ok.error().os == ENOTDIR);
  BOOST_TEST(ok.error().what.find("file/state") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
