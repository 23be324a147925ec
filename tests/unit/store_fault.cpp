// Whichever call fails, nothing changes under the final name, the errno is told, and nothing leaks.
#include <sys/mount.h>

#include <boost/test/data/test_case.hpp>

#include "tests/unit/store_faults.hpp"

namespace ddf::test {

struct short_writes final : file_system {   // at most three bytes at a time, and a signal before each
  bool signal = true;
  ssize_t pwritev(int file, const iovec* pieces, int count, std::int64_t offset) override {
    if ((signal = !signal)) return errno = EINTR, -1;
    iovec some = pieces[0];
    some.iov_len = std::min<std::size_t>(some.iov_len, 3);
    return file_system::pwritev(file, &some, count > 0 ? 1 : 0, offset);
  }
};

struct fault_case {
  const char* what;
  content before;   // no parts: nothing is there
  content after;
  friend std::ostream& operator<<(std::ostream& out, const fault_case& c) { return out << c.what; }
};

inline const std::vector<fault_case> fault_cases{
    {"a new file", {}, file_content("t/f", pattern(200'000))},
    {"a new empty file", {}, file_content("f", "")},
    {"a file replaced", file_content("t/f", pattern(150'000, 7)), file_content("t/f", pattern(200'000))},
    {"a new folder", {}, folder_content("t/d", {{"a/b", pattern(70'000)}, {"c", "x"}, {"empty", ""}})},
    {"a folder replaced", folder_content("t/d", {{"a/b", "old"}, {"only/old", "old"}}), folder_content("t/d", {{"a/b", pattern(70'000)}, {"c", "x"}})},
};

}  // namespace ddf::test

using namespace ddf;
using namespace ddf::test;
namespace bdata = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(store_fault)

BOOST_DATA_TEST_CASE(every_call_may_fail, bdata::make(fault_cases), c) {
  const std::size_t descriptors = open_descriptors();
  int nth = 1;
  for (bool done = false; !done; ++nth) {
    BOOST_REQUIRE(nth < 1000);
    temporary_folder t;
    if (!c.before.parts.empty()) DDF_REQUIRE_OK(receive(*open_tree(t), c.before));
    auto files = std::make_shared<nth_call_fails>(nth, ENOSPC);
    const auto outcome = [&]() -> result<std::string> {
      auto tree = output_tree::open({t / "out", t / "state"}, files);
      if (!tree) return tl::unexpected(tree.error());
      return receive(**tree, c.after);
    }();
    done = !files->failed();
    BOOST_TEST_INFO(c.what << ", call " << nth << ": " << (outcome ? "ok" : describe(outcome.error())));
    if (outcome) {   // a call whose failure may be overcome
      BOOST_TEST(shows(t, c.after));
    } else {
      BOOST_TEST(outcome.error().os == ENOSPC);
      BOOST_TEST(outcome.error().what.find("the disk is full") != std::string::npos);
      if (fs::exists(t / "out")) BOOST_TEST((c.before.parts.empty() ? visible(t / "out").empty() : shows(t, c.before)));
    }
    if (done) BOOST_TEST(outcome.has_value());
    // And the next try works, whatever was left behind.
    DDF_REQUIRE_OK(receive(*open_tree(t), c.after));
    BOOST_TEST(shows(t, c.after));
    BOOST_TEST(partials(t / "out").empty());
  }
  BOOST_TEST_MESSAGE(c.what << ": " << nth - 1 << " calls");
  BOOST_TEST(open_descriptors() == descriptors);
}

BOOST_DATA_TEST_CASE(every_call_may_fail_on_a_file_system_that_only_renames, bdata::make(fault_cases), c) {
  temporary_folder t;
  auto files = std::make_shared<plain_renames_only>();
  if (!c.before.parts.empty()) DDF_REQUIRE_OK(receive(*open_tree(t, files), c.before));
  DDF_REQUIRE_OK(receive(*open_tree(t, files), c.after));
  BOOST_TEST(shows(t, c.after));
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(keeping_may_fail_at_every_call) {
  const content c = file_content("f", pattern(200'000));
  range_set complete;
  complete.insert(0, 3);
  for (int nth = 1;; ++nth) {
    BOOST_REQUIRE(nth < 1000);
    temporary_folder t;
    auto files = std::make_shared<nth_call_fails>(nth, EIO);
    result<void> kept;
    {
      auto tree = output_tree::open({t / "out", t / "state"}, files);
      if (!tree) continue;
      auto opened = (*tree)->open_object(c.description);
      if (!opened || !write_all_parts(*opened->sink, c)) continue;
      kept = opened->sink->keep(complete);
      if (!kept) BOOST_TEST(kept.error().os == EIO);
    }
    auto opened = open_tree(t)->open_object(c.description);
    DDF_REQUIRE_OK(opened);
    if (kept) BOOST_TEST((opened->resumable.empty() || opened->resumable == complete));
    if (!kept) BOOST_TEST(opened->resumable.empty());
    if (!files->failed()) {
      BOOST_TEST((opened->resumable == complete));
      break;
    }
  }
}

BOOST_AUTO_TEST_CASE(short_writes_and_signals_are_continued) {
  temporary_folder t;
  auto tree = open_tree(t, std::make_shared<short_writes>());
  const std::string bytes = pattern(1000);
  auto opened = tree->open_object(file_manifest("f", 1000));
  DDF_REQUIRE_OK(opened);
  std::vector<iovec> pieces;
  for (std::size_t at = 0, n = 1; at < bytes.size(); at += n, n = n % 7 + 1)
    pieces.push_back({const_cast<char*>(bytes.data()) + at, std::min(n, bytes.size() - at)});
  DDF_REQUIRE_OK(opened->sink->write(0, 0, pieces));
  DDF_REQUIRE_OK(opened->sink->commit({}));
  BOOST_TEST((get(t / "out/f") == bytes));
}

BOOST_AUTO_TEST_CASE(a_full_device_is_told_by_its_errno) {
  const descriptor full(::open("/dev/full", O_WRONLY));
  BOOST_REQUIRE(full);
  file_system files;
  char byte = 0;
  const iovec piece{&byte, 1};
  BOOST_TEST(write_all(files, full.get(), 0, {&piece, 1}) == ENOSPC);
}

BOOST_AUTO_TEST_CASE(a_full_disk_fails_one_object_and_a_smaller_one_still_fits) {
  temporary_folder t;
  fs::create_directory(t / "out");
  if (::geteuid() != 0 || ::mount("ddf", (t / "out").c_str(), "tmpfs", 0, "size=1m") != 0) {
    BOOST_TEST_MESSAGE("skipped: mounting a small tmpfs needs root");
    return;
  }
  {
    auto tree = open_tree(t);
    BOOST_TEST(tree->bytes_free() <= 1u << 20);
    const auto failed = receive(*tree, file_content("large", pattern(2 << 20)));
    DDF_CHECK_FAILS(failed, errc::io);
    BOOST_TEST(failed.error().os == ENOSPC);
    BOOST_TEST(failed.error().what.find("the disk is full") != std::string::npos);
    BOOST_TEST(visible(t / "out").empty());
    BOOST_TEST(partials(t / "out").empty());
    const content small = file_content("small", pattern(100'000));
    DDF_REQUIRE_OK(receive(*tree, small));
    BOOST_TEST((get(t / "out/small") == small.parts[0]));
  }
  ::umount2((t / "out").c_str(), MNT_DETACH);
}

BOOST_AUTO_TEST_SUITE_END()
