// A new version by a delta, with a call that fails or the process killed at any call: the old version or the new one, whole.
#include <boost/test/data/test_case.hpp>

#include "tests/unit/delta_fixture.hpp"
#include "tests/unit/store_faults.hpp"

namespace ddf::test {

struct update_case {
  const char* what;
  content first, second, third;   // the third is received while calls fail
  friend std::ostream& operator<<(std::ostream& out, const update_case& c) { return out << c.what; }
};

inline content version(content c, std::uint64_t v) {
  c.description.version = version_id{v};
  return c;
}

inline const std::vector<update_case>& updates() {
  static const auto files = [] {
    const std::string w = bf16(120'000, 1);
    const auto file = [](const std::string& bytes, std::uint64_t v) { return version(file_content("t/f", bytes), v); };
    const auto folder = [](const std::vector<std::pair<std::string, std::string>>& parts, std::uint64_t v) { return version(folder_content("t/d", parts), v); };
    const std::string s = stepped(w, 2), u = stepped(s, 3);
    return std::vector<update_case>{
        {"a file of the same size", file(w, 1), file(s, 2), file(u, 3)},
        {"a file that grows", file(w, 1), file(s, 2), file(u + pattern(1000), 3)},
        {"a folder of the same sizes", folder({{"a/1", w}, {"b", "one"}}, 1), folder({{"a/1", s}, {"b", "two"}}, 2), folder({{"a/1", u}, {"b", "six"}}, 3)},
        {"a folder with other files", folder({{"a/1", w}, {"b", "one"}}, 1), folder({{"a/1", s}, {"b", "two"}}, 2), folder({{"a/2", u}, {"c/d", s}, {"empty", ""}}, 3)},
    };
  }();
  return files;
}

// What a session does with an object that it gets as a delta: what the delta does not make is fetched.
inline result<std::string> receive_by_delta(output_tree& tree, const content& from, const content& to, const byte_vector& stream) {
  auto opened = tree.open_object(to.description);
  if (!opened) return tl::unexpected(opened.error());
  const std::shared_ptr<object_sink> sink = std::move(opened->sink);
  range_set rows;
  {
    application a(to, stream.size(), [&] { return tree.open_base(to.description.name, digests(from).root); }, sink, 1);
    a.arrives_whole(stream);
    const auto p = a.end();
    if (p) rows = p->rows;
    else if (p.error().code != errc::stale_base) return tl::unexpected(p.error());
  }
  if (auto ok = sink->checkpoint(rows); !ok) return tl::unexpected(ok.error());
  const auto places = block_places(to.description);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!rows.contains(i))
      if (auto ok = write(*sink, places[i].part, places[i].offset, to.parts[places[i].part].substr(places[i].offset, places[i].bytes)); !ok) return tl::unexpected(ok.error());
  return sink->commit(digests(to));
}

inline result<std::unique_ptr<output_tree>> keeping_tree(const temporary_folder& t, std::shared_ptr<file_system> files = {}, unsigned keep = 1) {
  return output_tree::open({t / "out", t / "state", keep}, std::move(files));
}

// What is said to be held can be opened and is one of the versions, bit for bit. Output: their numbers.
inline std::vector<std::uint64_t> check_held(const output_tree& tree, const update_case& c) {
  std::vector<std::uint64_t> out;
  for (const held_version& h : tree.held(c.third.description)) {
    bool known = false;
    for (const content* v : {&c.first, &c.second, &c.third}) {
      if (v->description.version != h.version) continue;
      known = true;
      BOOST_TEST((digests(*v).root == h.root));
      const auto base = tree.open_base(v->description.name, h.root);
      if (!base) continue;   // its digests are not here: it is fetched whole
      byte_vector all(base->bytes->size());
      DDF_REQUIRE_OK(base->bytes->read(0, all));
      std::string expected;
      for (const std::string& p : v->parts) expected += p;
      BOOST_TEST((std::string(reinterpret_cast<const char*>(all.data()), all.size()) == expected));
    }
    BOOST_TEST(known);
    out.push_back(h.version.value);
  }
  return out;
}

}  // namespace ddf::test

using namespace ddf;
using namespace ddf::test;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(delta_fault)

BOOST_DATA_TEST_CASE(the_old_version_or_the_new_one_is_visible_and_whole, bdata::make(updates()) * bdata::make({false, true}), c, killed) {
  const byte_vector stream = make(c.second, c.third).stream;
  const std::size_t descriptors = open_descriptors();
  int nth = 1;
  for (bool done = false; !done; ++nth) {
    BOOST_REQUIRE(nth < 1000);
    temporary_folder t;
    {
      auto tree = keeping_tree(t);
      DDF_REQUIRE_OK(tree);
      DDF_REQUIRE_OK(receive(**tree, c.first));
      DDF_REQUIRE_OK(receive(**tree, c.second));
    }
    auto files = std::make_shared<nth_call_fails>(nth, ENOSPC, killed);
    const auto outcome = [&]() -> result<std::string> {
      auto tree = keeping_tree(t, files);
      if (!tree) return tl::unexpected(tree.error());
      return receive_by_delta(**tree, c.second, c.third, stream);
    }();
    done = !files->failed();
    BOOST_TEST_INFO(c.what << ", call " << nth << ": " << (outcome ? "ok" : describe(outcome.error())));
    if (outcome) BOOST_TEST(shows(t, c.third));
    else if (killed) BOOST_TEST((shows(t, c.second) || shows(t, c.third)));
    else BOOST_TEST(shows(t, c.second));
    if (done) BOOST_TEST(outcome.has_value());

    auto tree = keeping_tree(t);
    DDF_REQUIRE_OK(tree);
    const auto held = check_held(**tree, c);
    if (done) BOOST_TEST((held == std::vector<std::uint64_t>{3, 2}));
    BOOST_TEST_INFO(c.what << ", call " << nth << ": " << (outcome ? "ok" : describe(outcome.error())));
    BOOST_TEST(!held.empty());   // the visible version is known as what it is
    if (killed) {   // then it is known as well as one whose commit came to its end
      const content& here = shows(t, c.third) ? c.third : c.second;
      const auto lease = (*tree)->lease(here.description.name, version_id{0});
      DDF_REQUIRE_OK(lease);
      BOOST_TEST((*lease)->description().version.value == here.description.version.value);
      DDF_REQUIRE_OK((*tree)->open_base(here.description.name, digests(here).root));
    }
    // And a later run completes, whatever was left behind.
    DDF_REQUIRE_OK(receive_by_delta(**tree, c.second, c.third, stream));
    BOOST_TEST(shows(t, c.third));
    const auto after = check_held(**tree, c);
    BOOST_TEST((!after.empty() && after.front() == 3));
    BOOST_TEST(after.size() <= 2u);
    auto left = partials(t / "out");
    std::erase_if(left, [](const std::string& p) { return p.find(".ddf-versions") != std::string::npos; });
    BOOST_TEST(left.empty());
  }
  BOOST_TEST_MESSAGE(c.what << ": " << nth - 1 << " calls");
  BOOST_TEST(open_descriptors() == descriptors);
}

// Without keep, the way back is the old version until the very rename.
BOOST_DATA_TEST_CASE(nothing_stays_of_the_old_version_where_none_is_kept, bdata::make(updates()), c) {
  temporary_folder t;
  auto tree = keeping_tree(t, {}, 0);
  DDF_REQUIRE_OK(tree);
  DDF_REQUIRE_OK(receive(**tree, c.second));
  DDF_REQUIRE_OK(receive_by_delta(**tree, c.second, c.third, make(c.second, c.third).stream));
  BOOST_TEST(shows(t, c.third));
  BOOST_TEST(partials(t / "out").empty());
  BOOST_TEST(!fs::exists(t / "out/.ddf-versions"));
}

// A file replaces a file in one step there, too; a folder has a moment without its name.
BOOST_AUTO_TEST_CASE(a_file_is_never_a_mix_on_a_file_system_that_only_renames) {
  for (const bool killed : {false, true})
    for (const update_case& c : {updates()[0], updates()[1]}) {
      const byte_vector stream = make(c.second, c.third).stream;
      int nth = 1;
      for (bool done = false; !done; ++nth) {
        BOOST_REQUIRE(nth < 1000);
        temporary_folder t;
        DDF_REQUIRE_OK(receive(**keeping_tree(t), c.second));
        auto files = std::make_shared<nth_call_fails>(nth, EIO, killed);
        files->renames_only = true;
        const auto outcome = [&]() -> result<std::string> {
          auto tree = keeping_tree(t, files);
          if (!tree) return tl::unexpected(tree.error());
          return receive_by_delta(**tree, c.second, c.third, stream);
        }();
        done = !files->failed();
        BOOST_TEST_INFO(c.what << ", call " << nth << ": " << (outcome ? "ok" : describe(outcome.error())));
        BOOST_TEST((outcome ? shows(t, c.third) : shows(t, c.second) || (killed && shows(t, c.third))));
        auto tree = keeping_tree(t);
        DDF_REQUIRE_OK(tree);
        BOOST_TEST(!check_held(**tree, c).empty());
        DDF_REQUIRE_OK(receive_by_delta(**tree, c.second, c.third, stream));
        BOOST_TEST(shows(t, c.third));
      }
    }
}

BOOST_DATA_TEST_CASE(versions_are_kept_on_a_file_system_that_only_renames, bdata::make(updates()), c) {
  temporary_folder t;
  auto tree = keeping_tree(t, std::make_shared<plain_renames_only>());
  DDF_REQUIRE_OK(tree);
  DDF_REQUIRE_OK(receive(**tree, c.first));
  DDF_REQUIRE_OK(receive(**tree, c.second));
  DDF_REQUIRE_OK(receive_by_delta(**tree, c.second, c.third, make(c.second, c.third).stream));
  BOOST_TEST(shows(t, c.third));
  BOOST_TEST((check_held(**tree, c) == std::vector<std::uint64_t>{3, 2}));
}

BOOST_DATA_TEST_CASE(a_killed_receiver_resumes_with_the_blocks_it_wrote_down, bdata::make(updates()), c) {
  temporary_folder t;
  auto tree = keeping_tree(t);
  DDF_REQUIRE_OK(tree);
  DDF_REQUIRE_OK(receive(**tree, c.second));
  const byte_vector stream = make(c.second, c.third).stream;
  range_set rows;
  {
    auto opened = (*tree)->open_object(c.third.description);
    DDF_REQUIRE_OK(opened);
    const std::shared_ptr<object_sink> sink = std::move(opened->sink);
    application a(c.third, stream.size(), [&] { return (*tree)->open_base(c.third.description.name, digests(c.second).root); }, sink, 1);
    a.arrives_whole(stream);
    const auto p = a.end();
    DDF_REQUIRE_OK(p);
    rows = p->rows;
    DDF_REQUIRE_OK(sink->keep(rows));
  }
  BOOST_TEST(shows(t, c.second));
  auto opened = (*tree)->open_object(c.third.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == rows));
  for (std::uint32_t i = 0; i < c.third.parts.size(); ++i) BOOST_TEST((read(*opened->sink, i, 0, c.third.parts[i].size()) == c.third.parts[i]));
  DDF_REQUIRE_OK(opened->sink->commit(digests(c.third)));
  BOOST_TEST(shows(t, c.third));
}

BOOST_AUTO_TEST_SUITE_END()
