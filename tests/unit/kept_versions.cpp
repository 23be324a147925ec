// Older versions that stay, and the leases on them.
#include <atomic>
#include <thread>

#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

BOOST_AUTO_TEST_SUITE(kept_versions_)

namespace {

content numbered(content c, std::uint64_t v) {
  c.description.version = version_id{v};
  return c;
}
content file(std::uint64_t v, const std::string& name = "w") { return numbered(file_content(name, "version " + std::to_string(v) + std::string(70'000, static_cast<char>('a' + v))), v); }
content folder(std::uint64_t v, const std::string& name = "d") { return numbered(folder_content(name, {{"a/b", "version " + std::to_string(v)}, {"c", std::string(v, 'x')}}), v); }

std::unique_ptr<output_tree> keeping(const temporary_folder& t, unsigned keep) {
  auto tree = output_tree::open({t / "out", t / "state", keep});
  DDF_REQUIRE_OK(tree);
  return std::move(*tree);
}

std::vector<std::uint64_t> held(const output_tree& tree, const content& c) {
  std::vector<std::uint64_t> out;
  for (const held_version& h : tree.held(c.description)) out.push_back(h.version.value);
  return out;
}

using numbers = std::vector<std::uint64_t>;

std::vector<std::string> kept(const temporary_folder& t) {   // every file among the kept ones
  std::vector<std::string> out;
  if (!fs::exists(t / "out/.ddf-versions")) return out;
  for (const auto& e : fs::recursive_directory_iterator(t / "out/.ddf-versions"))
    if (!e.is_directory()) out.push_back(fs::relative(e.path(), t / "out/.ddf-versions"));
  std::sort(out.begin(), out.end());
  return out;
}

using paths = std::vector<std::string>;

std::string base_bytes(const output_tree& tree, const content& c) {
  const auto base = tree.open_base(c.description.name, digests(c).root);
  if (!base) return std::string(name(base.error().code));
  std::vector<std::byte> all(base->bytes->size());
  const auto ok = base->bytes->read(0, all);
  return ok ? std::string(reinterpret_cast<const char*>(all.data()), all.size()) : std::string(name(ok.error().code));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_so_many_files_stay) {
  temporary_folder t;
  auto tree = keeping(t, 2);
  for (std::uint64_t v = 1; v <= 5; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  BOOST_TEST((held(*tree, file(5)) == numbers{5, 4, 3}));
  BOOST_TEST((kept(t) == paths{"w.versions/3", "w.versions/4"}));
  BOOST_TEST((visible(t / "out") == paths{"w"}));
  for (const std::uint64_t v : {3, 4, 5}) BOOST_TEST((base_bytes(*tree, file(v)) == file(v).parts[0]));
  BOOST_TEST(base_bytes(*tree, file(2)) == "stale_base");
}

BOOST_AUTO_TEST_CASE(the_newest_so_many_folders_stay) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, folder(v)));
  BOOST_TEST((held(*tree, folder(3)) == numbers{3, 2}));
  BOOST_TEST((kept(t) == paths{"d.versions/2/a/b", "d.versions/2/c"}));
  BOOST_TEST(base_bytes(*tree, folder(2)) == "version 2xx");
}

BOOST_AUTO_TEST_CASE(names_with_folders_and_one_another_in_them_keep_apart) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  for (std::uint64_t v = 1; v <= 2; ++v)
    for (const char* name : {"acme/policy", "acme/policy.versions/1", "acme/policy.versions/x/y"}) DDF_REQUIRE_OK(receive(*tree, file(v, name)));
  BOOST_TEST((kept(t) == paths{"acme/policy.versions/1", "acme/policy.versions/1.versions/1", "acme/policy.versions/x/y.versions/1"}));
  for (const char* name : {"acme/policy", "acme/policy.versions/1", "acme/policy.versions/x/y"}) BOOST_TEST((held(*tree, file(2, name)) == numbers{2, 1}));
}

BOOST_AUTO_TEST_CASE(a_name_of_the_longest_length_is_kept) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  for (const std::string& name : {std::string(255, 'x'), std::string(246, 'y'), std::string(247, 'z')}) {
    for (std::uint64_t v = 1; v <= 2; ++v) DDF_REQUIRE_OK(receive(*tree, file(v, name)));
    BOOST_TEST((held(*tree, file(2, name)) == numbers{2, 1}));
  }
}

BOOST_AUTO_TEST_CASE(none_stays_where_none_is_kept) {
  temporary_folder t;
  auto tree = keeping(t, 0);
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, file(v, "a/b/w")));
  BOOST_TEST((held(*tree, file(3, "a/b/w")) == numbers{3}));
  BOOST_TEST(!fs::exists(t / "out/.ddf-versions"));
}

BOOST_AUTO_TEST_CASE(fewer_stay_from_the_next_version_on_when_fewer_are_wanted) {
  temporary_folder t;
  {
    auto tree = keeping(t, 3);
    for (std::uint64_t v = 1; v <= 4; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
    BOOST_TEST((held(*tree, file(4)) == numbers{4, 3, 2, 1}));
  }
  auto tree = keeping(t, 1);
  BOOST_TEST((held(*tree, file(4)) == numbers{4, 3, 2, 1}));
  DDF_REQUIRE_OK(receive(*tree, file(5)));
  BOOST_TEST((held(*tree, file(5)) == numbers{5, 4}));
  tree = keeping(t, 0);
  DDF_REQUIRE_OK(receive(*tree, file(6)));
  BOOST_TEST((held(*tree, file(6)) == numbers{6}));
  BOOST_TEST(!fs::exists(t / "out/.ddf-versions"));
}

BOOST_AUTO_TEST_CASE(a_lease_keeps_a_version_beyond_what_is_kept_until_it_ends) {
  for (const unsigned keep : {0u, 1u}) {
    temporary_folder t;
    auto tree = keeping(t, keep);
    DDF_REQUIRE_OK(receive(*tree, file(1)));
    auto lease = tree->lease("w", version_id{0});
    DDF_REQUIRE_OK(lease);
    auto second = tree->lease("w", version_id{1});
    DDF_REQUIRE_OK(second);
    BOOST_TEST((*lease)->path() == tree->directory() + "/w");
    for (std::uint64_t v = 2; v <= 4; ++v) {
      DDF_REQUIRE_OK(receive(*tree, file(v)));
      BOOST_TEST((*lease)->path() == tree->directory() + "/.ddf-versions/w.versions/1");
      BOOST_TEST((get((*lease)->path()) == file(1).parts[0]));
      BOOST_TEST((*lease)->description().version.value == 1u);
    }
    BOOST_TEST((held(*tree, file(4)) == (keep == 0 ? numbers{4, 1} : numbers{4, 3, 1})));
    lease->reset();
    BOOST_TEST((get((*second)->path()) == file(1).parts[0]));
    second->reset();
    BOOST_TEST((held(*tree, file(4)) == (keep == 0 ? numbers{4} : numbers{4, 3})));
    BOOST_TEST(fs::exists(t / "out/.ddf-versions") == (keep != 0));
  }
}

BOOST_AUTO_TEST_CASE(a_lease_on_a_folder_moves_with_it) {
  temporary_folder t;
  auto tree = keeping(t, 0);
  DDF_REQUIRE_OK(receive(*tree, folder(1, "x/d")));
  auto lease = tree->lease("x/d", version_id{0});
  DDF_REQUIRE_OK(lease);
  DDF_REQUIRE_OK(receive(*tree, folder(2, "x/d")));
  BOOST_TEST(get((*lease)->path() + "/a/b") == "version 1");
  BOOST_TEST(get(t / "out/x/d/a/b") == "version 2");
  tree.reset();   // the lease outlives who gave it
  BOOST_TEST(get((*lease)->path() + "/a/b") == "version 1");
  lease->reset();
  BOOST_TEST(!fs::exists(t / "out/.ddf-versions"));
}

BOOST_AUTO_TEST_CASE(a_version_that_is_not_here_is_answered_by_those_that_are) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  const auto nothing = tree->lease("w", version_id{0});
  DDF_CHECK_FAILS(nothing, errc::unknown_version);
  BOOST_TEST(nothing.error().what.find("'w'") != std::string::npos);
  for (std::uint64_t v = 6; v <= 8; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  const auto old = tree->lease("w", version_id{6});
  DDF_CHECK_FAILS(old, errc::unknown_version);
  BOOST_TEST(old.error().what.find("no version 6 here, but 8, 7") != std::string::npos, old.error().what);
}

// Readers ask for the newest while newer ones come: what they hold is what they were given.
BOOST_AUTO_TEST_CASE(a_lease_is_never_on_a_version_that_is_gone) {
  temporary_folder t;
  auto tree = keeping(t, 0);
  const auto dotted = [](std::uint64_t v) { return numbered(file_content("w", "version " + std::to_string(v) + '.'), v); };
  DDF_REQUIRE_OK(receive(*tree, dotted(1)));
  std::atomic<bool> over = false;
  std::atomic<int> wrong{0}, leases{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!over) {
        const auto lease = tree->lease("w", version_id{0});
        if (!lease) {
          ++wrong;
          continue;
        }
        ++leases;
        const std::string expected = "version " + std::to_string((*lease)->description().version.value) + '.';
        bool right = false;
        for (int tries = 0; tries < 20 && !right; ++tries) right = get((*lease)->path()).starts_with(expected);   // it may move once between path and open
        if (!right) ++wrong;
      }
    });
  for (std::uint64_t v = 2; v <= 250; ++v) DDF_REQUIRE_OK(receive(*tree, dotted(v)));
  over = true;
  readers.clear();
  BOOST_TEST(wrong.load() == 0);
  BOOST_TEST(leases.load() > 0);
  BOOST_TEST((held(*tree, dotted(250)) == numbers{250}));
}

BOOST_AUTO_TEST_CASE(a_kept_version_that_the_user_edited_is_no_base) {
  temporary_folder t;
  auto tree = keeping(t, 2);
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  const auto open = tree->open_base("w", digests(file(2)).root);
  DDF_REQUIRE_OK(open);
  ::chmod((t / "out/.ddf-versions/w.versions/2").c_str(), 0644);
  put(t / "out/.ddf-versions/w.versions/2", "mine");
  BOOST_TEST((held(*tree, file(3)) == numbers{3, 1}));
  BOOST_TEST(base_bytes(*tree, file(2)) == "stale_base");
  std::vector<std::byte> some(10);
  DDF_CHECK_FAILS(open->bytes->read(0, some), errc::stale_base);   // also to who opened it before
  DDF_CHECK_FAILS(tree->lease("w", version_id{2}), errc::unknown_version);
  for (std::uint64_t v = 4; v <= 5; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));   // and goes like any other
  BOOST_TEST((kept(t) == paths{"w.versions/3", "w.versions/4"}));
}

BOOST_AUTO_TEST_CASE(a_kept_folder_of_which_a_file_is_gone_is_no_base) {
  temporary_folder t;
  auto tree = keeping(t, 2);
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, folder(v)));
  fs::remove(t / "out/.ddf-versions/d.versions/2/c");
  BOOST_TEST((held(*tree, folder(3)) == numbers{3, 1}));
  BOOST_TEST(base_bytes(*tree, folder(2)) == "stale_base");
}

BOOST_AUTO_TEST_CASE(a_visible_version_that_the_user_edited_is_no_base_and_is_not_kept) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  DDF_REQUIRE_OK(receive(*tree, file(1)));
  put(t / "out/w", "mine");
  BOOST_TEST(held(*tree, file(1)).empty());
  DDF_REQUIRE_OK(receive(*tree, file(2)));
  BOOST_TEST((held(*tree, file(2)) == numbers{2}));
  BOOST_TEST(kept(t).empty());
}

BOOST_AUTO_TEST_CASE(what_a_crash_left_among_the_kept_ones_makes_room) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  DDF_REQUIRE_OK(receive(*tree, file(1)));
  put(t / "out/.ddf-versions/w.versions/1", "left over");
  put(t / "out/.ddf-versions/w.versions/0", "no version");
  DDF_REQUIRE_OK(receive(*tree, file(2)));
  BOOST_TEST((held(*tree, file(2)) == numbers{2, 1}));
  BOOST_TEST((get(t / "out/.ddf-versions/w.versions/1") == file(1).parts[0]));
  fs::remove(t / "out/.ddf-versions/w.versions/1");
  put(t / "out/.ddf-versions/w.versions/2/a", "a folder in the way");
  DDF_REQUIRE_OK(receive(*tree, file(3)));
  BOOST_TEST((held(*tree, file(3)) == numbers{3, 2}));
}

BOOST_AUTO_TEST_CASE(what_was_never_recorded_does_not_count_as_kept) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  for (std::uint64_t v = 1; v <= 2; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  put(t / "out/.ddf-versions/w.versions/9", "killed before its record was written");
  DDF_REQUIRE_OK(receive(*tree, file(3)));
  BOOST_TEST((held(*tree, file(3)) == numbers{3, 2}));
  BOOST_TEST((kept(t) == paths{"w.versions/2"}));
}

BOOST_AUTO_TEST_CASE(the_same_version_again_leaves_one) {
  temporary_folder t;
  auto tree = keeping(t, 2);
  for (const std::uint64_t v : {1, 2, 2, 2}) DDF_REQUIRE_OK(receive(*tree, file(v)));
  const auto all = held(*tree, file(2));
  BOOST_TEST(all.front() == 2u);
  BOOST_TEST((std::ranges::count(all, 1) == 1 && all.size() == 2u), all.size());
}

BOOST_AUTO_TEST_CASE(objects_named_like_what_is_ddfs_own_are_refused) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  for (const char* own : {".ddf-versions", ".ddf-versions/w.versions/1", "a/.ddf-versions/b"}) DDF_CHECK_FAILS(tree->open_object(file(1, own).description), errc::refused);
  DDF_REQUIRE_OK(receive(*tree, file(1, "a/.ddf-versions-of-mine")));
}

BOOST_AUTO_TEST_CASE(parts_named_like_what_is_ddfs_own_are_refused_or_stay_inside) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  (void)receive(*tree, numbered(folder_content("d", {{".ddf-versions/w.versions/1", "x"}}), 1));
  BOOST_TEST(!fs::exists(t / "out/.ddf-versions"));
}

BOOST_AUTO_TEST_CASE(an_object_whose_name_looks_like_a_record_keeps_its_own) {
  temporary_folder t;
  auto tree = keeping(t, 1);
  DDF_REQUIRE_OK(receive(*tree, folder(1, "w\n1")));
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  BOOST_TEST((held(*tree, folder(1, "w\n1")) == numbers{1}));
  DDF_REQUIRE_OK(receive(*tree, folder(2, "w\n1")));
}

BOOST_AUTO_TEST_CASE(publishing_an_output_folder_leaves_the_kept_versions_out) {
  temporary_folder t;
  auto tree = keeping(t, 2);
  for (std::uint64_t v = 1; v <= 3; ++v) DDF_REQUIRE_OK(receive(*tree, file(v)));
  auto opened = open_path({t / "out", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_REQUIRE(opened->description.parts.size() == 1u);
  BOOST_TEST(opened->description.parts[0].name == "w");
  BOOST_REQUIRE(opened->warnings.size() == 1u);
  BOOST_TEST(opened->warnings[0].find(".ddf-versions") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_object_that_becomes_a_folder_and_a_file_again_keeps_what_it_was) {
  temporary_folder t;
  auto tree = keeping(t, 3);
  DDF_REQUIRE_OK(receive(*tree, file(1, "w")));
  const auto refused = receive(*tree, folder(2, "w"));
  DDF_CHECK_FAILS(refused, errc::refused);
  BOOST_TEST((held(*tree, file(1)) == numbers{1}));
}

BOOST_AUTO_TEST_SUITE_END()
