// An interrupted transfer goes on where it was, in another run too, and never in two at once.
#include <sys/wait.h>

#include <csignal>

#include "lib/store/receive_state.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

range_set blocks(std::uint64_t first, std::uint64_t last) {
  range_set s;
  s.insert(first, last);
  return s;
}

const content big = file_content("tenant/big", pattern(300'000));   // five blocks of 64 KiB

}  // namespace

BOOST_AUTO_TEST_SUITE(store_resume)

BOOST_AUTO_TEST_CASE(what_was_kept_is_taken_up_by_a_later_run) {
  temporary_folder t;
  {
    auto opened = open_tree(t)->open_object(big.description);   // the sink outlives its tree
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0].substr(0, 200'000)));
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 3)));
  }
  BOOST_TEST(visible(t / "out").empty());
  BOOST_REQUIRE(partials(t / "out").size() == 1u);
  auto tree = open_tree(t);
  manifest again = big.description;
  again.version = version_id{2};   // a new sender publishes it as another version
  auto opened = tree->open_object(again);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == blocks(0, 3)));
  BOOST_TEST((read(*opened->sink, 0, 0, 200'000) == big.parts[0].substr(0, 200'000)));
  DDF_REQUIRE_OK(write(*opened->sink, 0, 200'000, big.parts[0].substr(200'000)));
  DDF_REQUIRE_OK(opened->sink->commit(digests(big)));
  BOOST_TEST((get(t / "out/tenant/big") == big.parts[0]));
  BOOST_TEST(partials(t / "out").empty());
  opened = tree->open_object(big.description);   // nothing is left to resume
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
}

BOOST_AUTO_TEST_CASE(a_partial_folder_is_taken_up_too) {
  temporary_folder t;
  const content c = folder_content("set", {{"a/b", pattern(100'000)}, {"c", pattern(100'000, 2)}});
  {
    auto opened = open_tree(t)->open_object(c.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, c.parts[0]));
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 2)));
  }
  auto tree = open_tree(t);
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == blocks(0, 2)));
  BOOST_TEST((read(*opened->sink, 0, 0, 100'000) == c.parts[0]));
  DDF_REQUIRE_OK(write(*opened->sink, 1, 0, c.parts[1]));
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST((get(t / "out/set/a/b") == c.parts[0]));
  BOOST_TEST((get(t / "out/set/c") == c.parts[1]));
}

BOOST_AUTO_TEST_CASE(a_killed_receiver_leaves_what_its_last_checkpoint_says) {
  temporary_folder t;
  const pid_t child = ::fork();
  if (child == 0) {
    auto tree = output_tree::open({t / "out", t / "state"});
    auto opened = (*tree)->open_object(big.description);
    if (!write(*opened->sink, 0, 0, big.parts[0].substr(0, 200'000)) || !opened->sink->checkpoint(blocks(0, 2)) || !opened->sink->checkpoint(blocks(0, 3))) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFSIGNALED(status));
  BOOST_TEST(visible(t / "out").empty());
  auto opened = open_tree(t)->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == blocks(0, 3)));
  BOOST_TEST((read(*opened->sink, 0, 0, 200'000) == big.parts[0].substr(0, 200'000)));
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_before_any_checkpoint_leaves_nothing_that_stays) {
  temporary_folder t;
  const pid_t child = ::fork();
  if (child == 0) {
    auto tree = output_tree::open({t / "out", t / "state"});
    auto opened = (*tree)->open_object(big.description);
    if (!write(*opened->sink, 0, 0, big.parts[0])) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  BOOST_TEST(partials(t / "out").size() == 1u);
  auto tree = open_tree(t);
  auto opened = tree->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
  BOOST_TEST((read(*opened->sink, 0, 0, 10) == std::string(10, '\0')));   // old bytes are gone
  BOOST_TEST(partials(t / "out").size() == 1u);
}

BOOST_AUTO_TEST_CASE(another_description_starts_afresh_and_removes_the_old_partial) {
  temporary_folder t;
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0]));
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 5)));
  }
  auto tree = open_tree(t);
  for (const content& other : {file_content("tenant/big", pattern(300'001)), folder_content("tenant/big", {{"a", "1"}})}) {
    auto opened = tree->open_object(other.description);
    DDF_REQUIRE_OK(opened);
    BOOST_TEST(opened->resumable.empty());
    BOOST_TEST(partials(t / "out").size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(two_at_once_do_not_share_a_partial) {
  temporary_folder t;
  auto one = open_tree(t), two = open_tree(t);
  {
    auto opened = one->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0]));
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 5)));
  }
  auto first = one->open_object(big.description);
  DDF_REQUIRE_OK(first);
  BOOST_TEST((first->resumable == blocks(0, 5)));
  for (auto* tree : {one.get(), two.get()}) {   // within a process, and as another would
    auto second = tree->open_object(big.description);
    DDF_REQUIRE_OK(second);
    BOOST_TEST(second->resumable.empty());
    BOOST_TEST(partials(t / "out").size() == 2u);
    DDF_REQUIRE_OK(write(*second->sink, 0, 0, std::string(300'000, 'x')));
    DDF_REQUIRE_OK(second->sink->checkpoint(blocks(0, 1)));   // must not overwrite the first one's record
    DDF_REQUIRE_OK(second->sink->keep(blocks(0, 1)));
    BOOST_TEST(partials(t / "out").size() == 1u);
  }
  BOOST_TEST((read(*first->sink, 0, 0, 300'000) == big.parts[0]));
  DDF_REQUIRE_OK(first->sink->keep(blocks(0, 5)));
  auto third = two->open_object(big.description);
  DDF_REQUIRE_OK(third);
  BOOST_TEST((third->resumable == blocks(0, 5)));
}

BOOST_AUTO_TEST_CASE(two_at_once_both_commit) {
  temporary_folder t;
  auto one = open_tree(t), two = open_tree(t);
  for (const content& c : {big, folder_content("set", {{"a", "1"}, {"b", "2"}})}) {
    auto first = one->open_object(c.description), second = two->open_object(c.description);
    DDF_REQUIRE_OK(first);
    DDF_REQUIRE_OK(second);
    DDF_REQUIRE_OK(write_all_parts(*first->sink, c));
    DDF_REQUIRE_OK(write_all_parts(*second->sink, c));
    DDF_REQUIRE_OK(first->sink->commit(digests(c)));
    DDF_REQUIRE_OK(second->sink->commit(digests(c)));
    BOOST_TEST((current_root(*one, c.description) == digests(c).root));
  }
  BOOST_TEST(visible(t / "out").size() == 3u);
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(another_process_holds_its_partial_until_it_dies) {
  temporary_folder t;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto tree = output_tree::open({t / "out", t / "state"});
    auto opened = (*tree)->open_object(big.description);
    const bool ok = write(*opened->sink, 0, 0, big.parts[0]) && opened->sink->checkpoint(blocks(0, 5)) && ::write(ready[1], "x", 1) == 1;
    for (;;) {
      if (!ok) ::_exit(1);
      ::pause();
    }
  }
  char x = 0;
  BOOST_REQUIRE(::read(ready[0], &x, 1) == 1);
  auto tree = open_tree(t);
  auto opened = tree->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
  opened->sink.reset();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  opened = tree->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == blocks(0, 5)));
  ::close(ready[0]);
  ::close(ready[1]);
}

BOOST_AUTO_TEST_CASE(read_only_files_resume_after_a_failed_commit_without_root) {
  temporary_folder t;
  BOOST_REQUIRE(::chmod(t.path().c_str(), 0777) == 0);
  content file = big, folder = folder_content("set", {{"a", pattern(100'000)}, {"b/c", pattern(100'000, 2)}});
  for (content* c : {&file, &folder})
    for (part& p : c->description.parts) p.mode = 0444;
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(1);
    for (content* c : {&file, &folder}) {
      auto tree = output_tree::open({t / "out", t / "state"});
      if (!tree) ::_exit(2);
      auto opened = (*tree)->open_object(c->description);
      if (!opened || !write_all_parts(*opened->sink, *c)) ::_exit(3);
      put((*tree)->final_path(c->description) + "/in/the/way", "x");
      if (opened->sink->commit(digests(*c)) || !opened->sink->keep(blocks(0, 2))) ::_exit(4);
      fs::remove_all((*tree)->final_path(c->description));
      opened = (*tree)->open_object(c->description);
      if (!opened || !(opened->resumable == blocks(0, 2)) || !write_all_parts(*opened->sink, *c)) ::_exit(5);
      if (!opened->sink->commit(digests(*c))) ::_exit(6);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST(WEXITSTATUS(status) == 0);
  BOOST_TEST((get(t / "out/tenant/big") == big.parts[0]));
  BOOST_TEST(visible(t / "out").size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_record_without_its_file_is_ignored_and_removed) {
  temporary_folder t;
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 5)));
  }
  fs::remove(partials(t / "out")[0]);
  const auto records = [&] {
    int n = 0;
    for (const auto& e : fs::directory_iterator(t / "state/receive")) n += e.path().extension() == ".partial";
    return n;
  };
  BOOST_TEST(records() == 1);
  auto opened = open_tree(t)->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
  BOOST_TEST(records() == 0);
}

BOOST_AUTO_TEST_CASE(a_damaged_record_or_a_link_in_the_partials_place_starts_afresh) {
  temporary_folder t;
  const auto kept = [&] {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0]));
    DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 5)));
  };
  kept();
  for (const auto& e : fs::directory_iterator(t / "state/receive"))
    if (e.path().extension() == ".partial") put(e.path().string(), "garbage");
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    BOOST_TEST(opened->resumable.empty());
  }
  kept();
  put(t / "outside", "precious");
  const std::string hidden = partials(t / "out")[0];
  fs::remove(hidden);
  fs::create_symlink(t / "outside", hidden);
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    BOOST_TEST(opened->resumable.empty());
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0]));
  }
  kept();
  const std::string again = partials(t / "out")[0];
  fs::remove(again);
  fs::create_hard_link(t / "outside", again);
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, big.parts[0]));
  }
  BOOST_TEST(get(t / "outside") == "precious");
}

BOOST_AUTO_TEST_CASE(blocks_that_the_object_does_not_have_are_not_resumed) {
  temporary_folder t;
  {
    auto opened = open_tree(t)->open_object(big.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(opened->sink->keep(blocks(3, 100)));
  }
  auto opened = open_tree(t)->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->resumable == blocks(3, 5)));
}

BOOST_AUTO_TEST_CASE(output_folders_do_not_mix_their_partials) {
  temporary_folder t;
  auto one = output_tree::open({t / "one", t / "state"}), two = output_tree::open({t / "two", t / "state"});
  DDF_REQUIRE_OK(one);
  DDF_REQUIRE_OK(two);
  auto opened = (*one)->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK(opened->sink->keep(blocks(0, 5)));
  opened = (*two)->open_object(big.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
  auto again = (*one)->open_object(big.description);
  DDF_REQUIRE_OK(again);
  BOOST_TEST((again->resumable == blocks(0, 5)));
}

BOOST_AUTO_TEST_CASE(ten_thousand_claims_take_little_time_and_few_descriptors) {
  temporary_folder t;
  auto state = receive_state::open(real_file_system(), t / "state", "/out");
  DDF_REQUIRE_OK(state);
  const std::size_t before = open_descriptors();
  std::vector<receive_state::claim> claims;
  for (int i = 0; i < 10'000; ++i) {
    auto claim = (*state)->try_claim("o" + std::to_string(i));
    BOOST_REQUIRE(claim);
    claims.push_back(std::move(*claim));
  }
  BOOST_TEST(open_descriptors() <= before + 32);
  BOOST_TEST(!(*state)->try_claim("o77"));
  claims.clear();
  BOOST_TEST((*state)->try_claim("o77").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
