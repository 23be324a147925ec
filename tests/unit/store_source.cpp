// Files, folders and memory as sources of objects.
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "lib/store/descriptor_cache.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

std::string read_source(object_source& source, std::uint32_t part, std::uint64_t offset, std::size_t bytes) {
  std::string out(bytes, '?');
  const auto ok = source.read(part, offset, std::as_writable_bytes(std::span(out)));
  return ok ? out : std::string(name(ok.error().code));
}

std::vector<std::string> names(const manifest& m) {
  std::vector<std::string> out;
  for (const part& p : m.parts) out.push_back(p.name + (p.directory ? "/" : ""));
  return out;
}

std::vector<std::string> list(std::initializer_list<std::string> l) { return l; }

}  // namespace

BOOST_AUTO_TEST_SUITE(store_source)

BOOST_AUTO_TEST_CASE(a_file_is_one_unnamed_part_named_by_its_last_component) {
  temporary_folder t;
  put(t / "model.bin", "0123456789");
  ::chmod((t / "model.bin").c_str(), 0751);
  auto opened = open_path({t / "model.bin", ""});
  DDF_REQUIRE_OK(opened);
  const manifest& m = opened->description;
  BOOST_TEST(m.name == "model.bin");
  BOOST_TEST((m.kind == object_kind::file));
  BOOST_TEST(m.size() == 10u);
  BOOST_TEST(m.parts[0].mode == 0751u);
  BOOST_TEST(m.block_bytes == limits::block_bytes_min);
  BOOST_TEST(read_source(*opened->source, 0, 3, 4) == "3456");
  BOOST_TEST(opened->source->view(0, 0, 10).empty());
  DDF_REQUIRE_OK(opened->source->check_unchanged());
}

BOOST_AUTO_TEST_CASE(names_come_from_the_path_as_written_and_from_the_real_one_for_dots) {
  temporary_folder t;
  put(t / "a/b/f", "x");
  fs::create_directory_symlink(t / "a", t / "link");
  const auto name_of = [&](const std::string& path) {
    auto opened = open_path({path, ""});
    return opened ? opened->description.name : "error: " + describe(opened.error());
  };
  BOOST_TEST(name_of(t / "a/b") == "b");
  BOOST_TEST(name_of(t / "a/b/") == "b");
  BOOST_TEST(name_of(t / "a/b///") == "b");
  BOOST_TEST(name_of(t / "a/b/.") == "b");
  BOOST_TEST(name_of(t / "a/b/..") == "a");
  BOOST_TEST(name_of(t / "link") == "link");
  BOOST_TEST(name_of(t / "link/.") == "a");
  auto named = open_path({t / "a/b/f", "tenant/model"});
  DDF_REQUIRE_OK(named);
  BOOST_TEST(named->description.name == "tenant/model");
  DDF_CHECK_FAILS(open_path({t / "a/b/f", "../x"}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_path({"/", ""}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_path({"", ""}), errc::invalid_argument);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_or_not_readable_is_an_io_error_with_its_errno) {
  temporary_folder t;
  const auto missing = open_path({t / "missing", ""});
  DDF_CHECK_FAILS(missing, errc::io);
  BOOST_TEST(missing.error().os == ENOENT);
  BOOST_TEST(missing.error().what.find("missing") != std::string::npos);
  ::mkfifo((t / "pipe").c_str(), 0600);
  DDF_CHECK_FAILS(open_path({t / "pipe", ""}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_path({"/dev/null", ""}), errc::invalid_argument);
}

BOOST_AUTO_TEST_CASE(names_with_spaces_utf8_255_bytes_and_a_leading_dash_work) {
  temporary_folder t;
  for (const std::string& n : {std::string("with space"), std::string("grüße-模型"), std::string(255, 'x'), std::string("-rf"), std::string("--help")}) {
    put(t / n, n);
    auto opened = open_path({t / n, ""});
    DDF_REQUIRE_OK(opened);
    BOOST_TEST(opened->description.name == n);
    BOOST_TEST(read_source(*opened->source, 0, 0, n.size()) == n);
  }
  put(t / "not\xffutf8", "x");
  DDF_CHECK_FAILS(open_path({t / "not\xffutf8", ""}), errc::invalid_argument);
  DDF_REQUIRE_OK(open_path({t / "not\xffutf8", "another"}));
}

BOOST_AUTO_TEST_CASE(an_empty_file_has_a_part_without_bytes) {
  temporary_folder t;
  put(t / "empty", "");
  auto opened = open_path({t / "empty", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->description.size() == 0u);
  BOOST_TEST(opened->description.blocks() == 0u);
  DDF_REQUIRE_OK(opened->source->check_unchanged());
}

BOOST_AUTO_TEST_CASE(a_folder_keeps_its_tree_sorted_with_empty_folders) {
  temporary_folder t;
  put(t / "in/b/2", "two");
  put(t / "in/a", "one");
  put(t / "in/b.txt", "x");
  put(t / "in/zero", "");
  fs::create_directories(t / "in/empty/inner");
  fs::create_symlink("a", t / "in/link");
  auto opened = open_path({t / "in/", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(names(opened->description) == list({"a", "b.txt", "b/2", "empty/inner/", "link", "zero"}), boost::test_tools::per_element());
  BOOST_TEST(read_source(*opened->source, 2, 0, 3) == "two");
  BOOST_TEST(read_source(*opened->source, 4, 0, 3) == "one");
  BOOST_TEST(opened->warnings.empty());
  DDF_REQUIRE_OK(opened->source->check_unchanged());
  DDF_REQUIRE_OK(check_catalogue({opened->description}));
}

BOOST_AUTO_TEST_CASE(an_empty_folder_is_an_object_without_parts) {
  temporary_folder t;
  fs::create_directory(t / "in");
  auto opened = open_path({t / "in", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->description.kind == object_kind::folder));
  BOOST_TEST(opened->description.parts.empty());
}

BOOST_AUTO_TEST_CASE(sockets_pipes_dangling_links_and_partial_files_are_left_out_with_a_warning) {
  temporary_folder t;
  put(t / "in/file", "x");
  put(t / "in/.m.ddf-0123abcd.partial", "half");
  put(t / "in/.f.ddf-0123abcd.partial/inner/file", "half");
  ::mkfifo((t / "in/only/pipe").c_str(), 0600);
  fs::create_directory(t / "in/only");
  ::mkfifo((t / "in/only/pipe").c_str(), 0600);
  fs::create_symlink("nowhere", t / "in/dangling");
  fs::create_symlink("loop", t / "in/loop");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (t / "in/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  BOOST_REQUIRE(::bind(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(s);
  auto opened = open_path({t / "in", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(names(opened->description) == list({"file", "only/"}), boost::test_tools::per_element());
  BOOST_TEST(opened->warnings.size() == 6u);
}

BOOST_AUTO_TEST_CASE(a_link_to_a_folder_inside_a_folder_is_refused_by_name) {
  temporary_folder t;
  put(t / "other/file", "x");
  fs::create_directory(t / "in");
  fs::create_directory_symlink(t / "other", t / "in/elsewhere");
  const auto opened = open_path({t / "in", ""});
  DDF_CHECK_FAILS(opened, errc::invalid_argument);
  BOOST_TEST(opened.error().what.find("elsewhere") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_grows_or_changes_is_detected_and_named) {
  temporary_folder t;
  const auto fails_after = [&](const std::function<void(const std::string&)>& change) {
    const std::string path = t / "f";
    put(path, "0123456789");
    auto opened = open_path({path, ""});
    BOOST_REQUIRE(opened);
    BOOST_TEST(read_source(*opened->source, 0, 0, 10) == "0123456789");
    change(path);
    const auto ok = opened->source->check_unchanged();
    BOOST_REQUIRE(!ok);
    BOOST_TEST(name(ok.error().code) == name(errc::source_changed));
    BOOST_TEST(ok.error().what.find("/f'") != std::string::npos);
    return std::move(opened->source);
  };
  auto shrunk = fails_after([](const std::string& p) { fs::resize_file(p, 4); });
  BOOST_TEST(read_source(*shrunk, 0, 0, 4) == "0123");
  BOOST_TEST(read_source(*shrunk, 0, 0, 10) == "source_changed");
  fails_after([](const std::string& p) { fs::resize_file(p, 40); });
  fails_after([](const std::string& p) { fs::remove(p); });
  fails_after([](const std::string& p) {   // another file of equal size and time
    const auto time = fs::last_write_time(p);
    put(p + ".new", "9876543210");
    fs::last_write_time(p + ".new", time);
    fs::rename(p + ".new", p);
  });
  fails_after([](const std::string& p) {   // written to, and the time set back: ctime tells
    const auto time = fs::last_write_time(p);
    timespec pause{0, 20'000'000};   // more than a tick of the file system's clock
    ::nanosleep(&pause, nullptr);
    std::ofstream(p, std::ios::in | std::ios::out | std::ios::binary) << "X";
    fs::last_write_time(p, time);
  });
}

BOOST_AUTO_TEST_CASE(a_file_replaced_before_it_is_read_is_not_sent_in_its_place) {
  temporary_folder t;
  put(t / "in/f", "0123456789");
  auto opened = open_path({t / "in", ""});
  DDF_REQUIRE_OK(opened);
  put(t / "in/g", "abcdefghij");
  fs::rename(t / "in/g", t / "in/f");
  BOOST_TEST(read_source(*opened->source, 0, 0, 10) == "source_changed");
  fs::remove(t / "in/f");
  BOOST_TEST(read_source(*opened->source, 0, 0, 10) == "source_changed");
}

BOOST_AUTO_TEST_CASE(identity_is_equal_for_what_is_unchanged_and_differs_after_any_change) {
  temporary_folder t;
  put(t / "in/a", "one");
  put(t / "in/b", "two");
  const auto identity = [&] { return open_path({t / "in", ""})->source->identity(); };
  const digest before = identity();
  BOOST_TEST((before == identity()));
  fs::rename(t / "in/b", t / "in/c");
  const digest renamed = identity();
  BOOST_TEST((before != renamed));
  std::ofstream(t / "in/c", std::ios::app) << "more";
  BOOST_TEST((renamed != identity()));
}

BOOST_AUTO_TEST_CASE(ten_thousand_small_files_need_few_descriptors) {
  temporary_folder t;
  constexpr int folders = 100, each = 100;
  for (int i = 0; i < folders; ++i) {
    fs::create_directories(t / ("in/" + std::to_string(i)));
    for (int j = 0; j < each; ++j) std::ofstream(t / ("in/" + std::to_string(i) + '/' + std::to_string(j))) << i * each + j;
  }
  auto opened = open_path({t / "in", ""});
  DDF_REQUIRE_OK(opened);
  const manifest& m = opened->description;
  BOOST_REQUIRE(m.parts.size() == std::size_t{folders * each});
  BOOST_TEST(std::is_sorted(m.parts.begin(), m.parts.end(), [](const part& a, const part& b) { return a.name < b.name; }));
  const std::size_t before = open_descriptors();
  std::size_t most = 0, wrong = 0;
  for (std::uint32_t i = 0; i < m.parts.size(); ++i) {
    const auto slash = m.parts[i].name.find('/');
    const int number = std::stoi(m.parts[i].name.substr(0, slash)) * each + std::stoi(m.parts[i].name.substr(slash + 1));
    wrong += read_source(*opened->source, i, 0, m.parts[i].size) != std::to_string(number);
    if (i % 500 == 0) most = std::max(most, open_descriptors());
  }
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(most <= before + 130);
  DDF_REQUIRE_OK(opened->source->check_unchanged());
}

BOOST_AUTO_TEST_CASE(many_sources_share_one_bounded_set_of_descriptors) {
  temporary_folder t;
  auto descriptors = std::make_shared<descriptor_cache>(8);
  std::vector<std::unique_ptr<object_source>> sources;
  for (int i = 0; i < 100; ++i) {
    put(t / std::to_string(i), std::to_string(i));
    sources.push_back(std::move(open_path({t / std::to_string(i), ""}, descriptors)->source));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) BOOST_TEST(read_source(*sources[i], 0, 0, std::to_string(i).size()) == std::to_string(i));
  BOOST_TEST(descriptors->size() == 8u);
  sources.clear();
  BOOST_TEST(descriptors->size() == 0u);
}

BOOST_AUTO_TEST_CASE(threads_read_side_by_side) {
  temporary_folder t;
  for (int i = 0; i < 50; ++i) put(t / ("in/" + std::to_string(i)), std::string(1000, static_cast<char>('A' + i % 26)));
  auto opened = open_path({t / "in", ""}, std::make_shared<descriptor_cache>(4));
  DDF_REQUIRE_OK(opened);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (std::uint32_t i = 0; i < 200; ++i) {
        const std::uint32_t p = (i * 7) % 50;
        wrong += read_source(*opened->source, p, 10, 100) != std::string(100, static_cast<char>('A' + std::stoi(opened->description.parts[p].name) % 26));
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(offsets_beyond_4_GiB_are_read) {
  temporary_folder t;
  put(t / "sparse", "");
  constexpr std::uint64_t far = (std::uint64_t{4} << 30) + 12345;
  {
    std::ofstream f(t / "sparse", std::ios::binary);
    f.seekp(far);
    f << "the end";
  }
  auto opened = open_path({t / "sparse", ""});
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->description.size() == far + 7);
  BOOST_TEST(read_source(*opened->source, 0, far, 7) == "the end");
}

BOOST_AUTO_TEST_CASE(memory_is_seen_without_a_copy) {
  const std::string a = "aaaa", b = "bbbbbb";
  const std::vector<part_view> parts{{"x/weight", std::as_bytes(std::span(a)), 2}, {"bias", std::as_bytes(std::span(b)), 2}};
  auto opened = open_memory("acme/policy", parts);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((opened->description.kind == object_kind::memory));
  BOOST_TEST(int{opened->description.element_bytes} == 2);
  BOOST_TEST(static_cast<const void*>(opened->source->view(1, 2, 3).data()) == static_cast<const void*>(b.data() + 2));
  BOOST_TEST(read_source(*opened->source, 0, 0, 4) == "aaaa");
  DDF_REQUIRE_OK(opened->source->check_unchanged());
  BOOST_TEST((opened->source->identity() == digest{}));
}

BOOST_AUTO_TEST_CASE(memory_parts_have_usable_names_or_are_one) {
  const std::string a = "a";
  const auto bytes = std::as_bytes(std::span(a));
  DDF_REQUIRE_OK(open_memory("m", std::vector<part_view>{{"", bytes, 1}}));
  DDF_REQUIRE_OK(open_memory("m", std::vector<part_view>{{"a", bytes, 1}}));
  DDF_REQUIRE_OK(open_memory("m", std::vector<part_view>{}));
  DDF_CHECK_FAILS(open_memory("m", std::vector<part_view>{{"", bytes, 1}, {"b", bytes, 1}}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_memory("m", std::vector<part_view>{{"a", bytes, 1}, {"a", bytes, 1}}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_memory("m", std::vector<part_view>{{"../a", bytes, 1}}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_memory("m", std::vector<part_view>{{"a", bytes, 0}}), errc::invalid_argument);
  DDF_CHECK_FAILS(open_memory("", std::vector<part_view>{{"a", bytes, 1}}), errc::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
