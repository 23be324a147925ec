// When mcsend --watch publishes: what was seen of the files, and when, goes in.
#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "tools/mcsend/settling.hpp"

using namespace ddf::tools;
using namespace std::chrono_literals;

namespace {

using verdict = settling::verdict;
const settling::time_point begin{};

sighting with(std::vector<seen_file> files) { return {true, std::move(files), {}}; }
sighting nothing() { return {false, {}, "'model.bin': No such file or directory"}; }
seen_file file(std::uint64_t size, std::uint64_t inode = 1, std::int64_t mtime_ns = 1) {
  return {"model.bin", size, inode, 1, mtime_ns};
}

bool is(verdict given, verdict wanted) { return given == wanted; }

}  // namespace

BOOST_AUTO_TEST_SUITE(tool_settling)

BOOST_AUTO_TEST_CASE(a_file_is_ready_once_it_has_not_changed_for_the_settle_time) {
  settling s(1s);
  BOOST_TEST(is(s.look(begin, with({file(10)})), verdict::changing));
  BOOST_TEST(is(s.look(begin + 999ms, with({file(10)})), verdict::changing));
  BOOST_TEST(is(s.look(begin + 1s, with({file(10)})), verdict::ready));
}

BOOST_AUTO_TEST_CASE(every_change_starts_the_settle_time_anew) {
  settling s(1s);
  auto now = begin;
  for (const auto& f : {file(10), file(20), file(20, 2), file(20, 2, 7)}) {
    BOOST_TEST(is(s.look(now, with({f})), verdict::changing));
    BOOST_TEST(is(s.look(now += 900ms, with({f})), verdict::changing));
  }
  BOOST_TEST(is(s.look(now + 100ms, with({file(20, 2, 7)})), verdict::ready));
}

BOOST_AUTO_TEST_CASE(a_state_is_never_ready_twice) {
  settling s(1s);
  s.look(begin, with({file(10)}));
  BOOST_TEST(is(s.look(begin + 1s, with({file(10)})), verdict::ready));
  BOOST_TEST(is(s.look(begin + 2s, with({file(10)})), verdict::ready));  // not taken yet
  s.take();
  BOOST_TEST(is(s.look(begin + 3s, with({file(10)})), verdict::known));
  BOOST_TEST(is(s.look(begin + 1h, with({file(10)})), verdict::known));
  // Something else for a moment, and then that state again: nothing new.
  BOOST_TEST(is(s.look(begin + 2h, with({file(11)})), verdict::changing));
  BOOST_TEST(is(s.look(begin + 3h, with({file(10)})), verdict::known));
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_waited_for_and_may_go_and_come_back) {
  settling s(1s);
  BOOST_TEST(is(s.look(begin, nothing()), verdict::absent));
  BOOST_TEST(s.missing() == "'model.bin': No such file or directory");
  BOOST_TEST(is(s.look(begin + 1h, nothing()), verdict::absent));
  BOOST_TEST(is(s.look(begin + 2h, with({file(10)})), verdict::changing));
  BOOST_TEST(s.missing() == "");
  BOOST_TEST(is(s.look(begin + 2h + 1s, with({file(10)})), verdict::ready));
  s.take();
  BOOST_TEST(is(s.look(begin + 3h, nothing()), verdict::absent));
  BOOST_TEST(is(s.look(begin + 4h, with({file(10)})), verdict::known));
  BOOST_TEST(is(s.look(begin + 5h, with({file(10, 2)})), verdict::changing));
}

BOOST_AUTO_TEST_CASE(what_could_not_be_published_is_tried_again_after_it_has_settled_anew) {
  settling s(1s);
  s.look(begin, with({file(10)}));
  s.look(begin + 1s, with({file(10)}));
  s.take();
  s.give_back(begin + 5s);
  BOOST_TEST(is(s.look(begin + 5s, with({file(10)})), verdict::changing));
  BOOST_TEST(is(s.look(begin + 6s, with({file(10)})), verdict::ready));
}

BOOST_AUTO_TEST_CASE(files_of_a_folder_that_come_go_or_change_are_a_new_state) {
  const seen_file folder{"f", 0, 1, 1, 0}, a{"f/a", 10, 2, 1, 5}, b{"f/b", 10, 3, 1, 5};
  settling s(1s);
  s.look(begin, with({folder, a}));
  s.look(begin + 1s, with({folder, a}));
  s.take();
  auto now = begin + 2s;
  for (const auto& seen : {with({folder, a, b}), with({folder, b}), with({folder}), with({{"f", 0, 9, 1, 0}, a})}) {
    BOOST_TEST(is(s.look(now, seen), verdict::changing));
    BOOST_TEST(is(s.look(now += 1s, seen), verdict::ready));
    s.take();
  }
}

BOOST_AUTO_TEST_CASE(only_what_is_written_to_where_it_is_is_gone) {
  const auto before = with({file(10, 1, 1)});
  BOOST_TEST(!overwritten(before, before));
  BOOST_TEST(!overwritten(before, with({file(10, 2, 1)})));  // replaced
  BOOST_TEST(!overwritten(before, nothing()));               // removed
  BOOST_TEST(overwritten(before, with({file(10, 1, 2)})));
  BOOST_TEST(overwritten(before, with({file(11, 1, 1)})));
  settling s(1s);
  s.look(begin, before);
  s.take();
  BOOST_TEST(!s.taken_is_gone());
  s.look(begin + 1s, with({file(10, 1, 2)}));
  BOOST_TEST(s.taken_is_gone());
}

BOOST_AUTO_TEST_CASE(the_next_version_waits_for_those_who_are_receiving_and_for_nobody_else) {
  ddf::progress now;
  BOOST_TEST(may_replace(now));
  now.receivers_joined = 3;
  now.receivers_complete = 1;
  now.receivers_active = 2;
  BOOST_TEST(!may_replace(now));
  now.receivers_active = 0;  // one was lost, one has failed
  BOOST_TEST(may_replace(now));
}

BOOST_AUTO_TEST_SUITE_END()
