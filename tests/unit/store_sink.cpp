// What a receiver writes appears whole under its name, or not at all, and nowhere else.
#include <sys/resource.h>
#include <sys/un.h>

#include "lib/store/tree_core.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

std::vector<std::string> list(std::initializer_list<std::string> l) { return l; }
mode_t mode_of(const std::string& path) {
  struct stat st {};
  BOOST_REQUIRE(::lstat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

class umask_of {   // for the time of a test
 public:
  explicit umask_of(mode_t mask) : before_(::umask(mask)) {}
  ~umask_of() { ::umask(before_); }
  umask_of(const umask_of&) = delete;
  umask_of& operator=(const umask_of&) = delete;

 private:
  mode_t before_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(store_sink)

BOOST_AUTO_TEST_CASE(a_file_is_visible_at_commit_and_not_before) {
  temporary_folder t;
  auto tree = open_tree(t);
  const content c = file_content("model.bin", pattern(200'000));
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(opened->resumable.empty());
  DDF_REQUIRE_OK(write(*opened->sink, 0, 100'000, c.parts[0].substr(100'000)));   // out of order
  DDF_REQUIRE_OK(write(*opened->sink, 0, 0, c.parts[0].substr(0, 100'000)));
  BOOST_TEST(visible(t / "out").empty());
  BOOST_REQUIRE(partials(t / "out").size() == 1u);
  BOOST_TEST(fs::path(partials(t / "out")[0]).parent_path().string() == fs::canonical(t / "out").string());
  BOOST_TEST(read(*opened->sink, 0, 99'990, 20) == c.parts[0].substr(99'990, 20));
  const auto path = opened->sink->commit(digests(c));
  DDF_REQUIRE_OK(path);
  BOOST_TEST(*path == tree->final_path(c.description));
  BOOST_TEST((get(t / "out/model.bin") == c.parts[0]));
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(sizes_are_exact_around_the_block) {
  temporary_folder t;
  auto tree = open_tree(t);
  const std::size_t block = limits::block_bytes_min;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 3 * block - 1, 3 * block, 3 * block + 1}) {
    const content c = file_content("f" + std::to_string(n), pattern(n));
    DDF_REQUIRE_OK(receive(*tree, c));
    BOOST_TEST((get(t / ("out/" + c.description.name)) == c.parts[0]));
  }
}

BOOST_AUTO_TEST_CASE(a_partial_that_is_longer_or_shorter_than_the_object_gets_its_size_at_commit) {
  temporary_folder t;
  auto tree = open_tree(t);
  const content c = file_content("f", std::string(100'000, '\0'));
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  fs::resize_file(partials(t / "out")[0], 150'000);
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST(fs::file_size(t / "out/f") == 100'000u);
  const content d = file_content("g", std::string(100'000, '\0'));
  opened = tree->open_object(d.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST((read(*opened->sink, 0, 50'000, 100) == std::string(100, '\0')));   // nothing was written yet
  DDF_REQUIRE_OK(opened->sink->commit(digests(d)));
  BOOST_TEST(fs::file_size(t / "out/g") == 100'000u);
}

BOOST_AUTO_TEST_CASE(offsets_beyond_4_GiB_are_written_and_read) {
  temporary_folder t;
  auto tree = open_tree(t);
  constexpr std::uint64_t far = (std::uint64_t{4} << 30) + 12345;
  const manifest m = file_manifest("sparse", far + 7);
  auto opened = tree->open_object(m);
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK(write(*opened->sink, 0, far, "the end"));
  BOOST_TEST(read(*opened->sink, 0, far, 7) == "the end");
  DDF_REQUIRE_OK(opened->sink->commit({}));
  BOOST_TEST(fs::file_size(t / "out/sparse") == far + 7);
  std::ifstream in(t / "out/sparse", std::ios::binary);
  in.seekg(far);
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(in), {}) == "the end");
}

BOOST_AUTO_TEST_CASE(many_pieces_go_in_one_write) {
  temporary_folder t;
  auto tree = open_tree(t);
  const std::string bytes = pattern(5000);
  auto opened = tree->open_object(file_manifest("f", 5000));
  DDF_REQUIRE_OK(opened);
  std::vector<iovec> pieces;   // more than one pwritev takes, some of them empty
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    pieces.push_back({const_cast<char*>(bytes.data()) + at, 2});
    pieces.push_back({nullptr, 0});
  }
  DDF_REQUIRE_OK(opened->sink->write(0, 0, pieces));
  DDF_REQUIRE_OK(opened->sink->commit({}));
  BOOST_TEST((get(t / "out/f") == bytes));
}

BOOST_AUTO_TEST_CASE(a_name_with_slashes_makes_folders) {
  temporary_folder t;
  auto tree = open_tree(t);
  const content c = file_content("tenant/model/weights.bin", "x");
  DDF_REQUIRE_OK(receive(*tree, c));
  BOOST_TEST(get(t / "out/tenant/model/weights.bin") == "x");
}

BOOST_AUTO_TEST_CASE(names_with_spaces_utf8_255_bytes_and_a_leading_dash_work) {
  temporary_folder t;
  auto tree = open_tree(t);
  std::string wide = "x";
  while (wide.size() + 3 <= 255) wide += "模";
  for (const std::string& n : {std::string("with space"), std::string("grüße"), std::string(255, 'x'), wide, std::string("-rf"), std::string("..."), std::string("new\nline")}) {
    DDF_REQUIRE_OK(receive(*tree, file_content(n, n)));
    BOOST_TEST(get(t / ("out/" + n)) == n);
    const std::string folder = 'F' + n.substr(1);
    DDF_REQUIRE_OK(receive(*tree, folder_content(folder, {{n, n}})));
    BOOST_TEST(get(t / ("out/" + folder + '/' + n)) == n);
  }
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(names_that_could_lead_out_are_refused) {
  temporary_folder t;
  auto tree = open_tree(t);
  for (const std::string& n : {std::string("../x"), std::string("a/../../x"), std::string("/etc/x"), std::string("a\0b", 3), std::string(".."), std::string("."), std::string(""), std::string("a//b"), std::string("a/"), std::string(256, 'x')}) {
    DDF_CHECK_FAILS(tree->open_object(file_manifest(n, 1)), errc::invalid_argument);
    DDF_CHECK_FAILS(tree->open_object(folder_content("folder", {{n, "x"}}).description), errc::invalid_argument);
    content memory = folder_content("folder", {{n, "x"}, {"other", "x"}});
    memory.description.kind = object_kind::memory;
    DDF_CHECK_FAILS(tree->open_object(memory.description), errc::invalid_argument);
    BOOST_TEST(!current_root(*tree, file_manifest(n, 1)));
  }
  DDF_CHECK_FAILS(tree->open_object(file_manifest(".m.ddf-0a1b2c3d.partial", 1)), errc::refused);
  DDF_CHECK_FAILS(tree->open_object(file_manifest(".m.ddf-0a1b2c3d.partial/inside", 1)), errc::refused);
  BOOST_TEST(visible(t.path()).size() == 1u);   // the secret in the state folder
}

BOOST_AUTO_TEST_CASE(a_link_on_the_way_is_not_followed) {
  temporary_folder t;
  fs::create_directories(t / "outside");
  fs::create_directories(t / "out/real");
  fs::create_directory_symlink(t / "outside", t / "out/link");
  fs::create_directory_symlink("real", t / "out/inner");
  put(t / "out/file", "x");
  auto tree = open_tree(t);
  DDF_CHECK_FAILS(receive(*tree, file_content("link/f", "x")), errc::refused);
  DDF_CHECK_FAILS(receive(*tree, file_content("link/deep/f", "x")), errc::refused);
  DDF_CHECK_FAILS(receive(*tree, file_content("inner/f", "x")), errc::refused);
  DDF_CHECK_FAILS(receive(*tree, file_content("file/f", "x")), errc::refused);
  BOOST_TEST(fs::is_empty(t / "outside"));
  DDF_REQUIRE_OK(receive(*tree, file_content("real/f", "x")));   // only those objects were affected
}

BOOST_AUTO_TEST_CASE(a_link_put_into_a_partial_folder_is_not_followed) {
  temporary_folder t;
  put(t / "outside/f", "secret");
  auto tree = open_tree(t);
  auto opened = tree->open_object(folder_content("m", {{"d/f", "12345"}, {"g", "67890"}}).description);
  DDF_REQUIRE_OK(opened);
  const std::string hidden = partials(t / "out")[0];
  fs::create_directory_symlink(t / "outside", hidden + "/d");
  fs::create_symlink(t / "outside/f", hidden + "/g");
  DDF_CHECK_FAILS(write(*opened->sink, 0, 0, "12345"), errc::io);
  DDF_CHECK_FAILS(write(*opened->sink, 1, 0, "67890"), errc::io);
  opened->sink.reset();
  BOOST_TEST(get(t / "outside/f") == "secret");
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(a_link_under_the_final_name_is_replaced_and_its_target_stays) {
  temporary_folder t;
  put(t / "outside/f", "precious");
  fs::create_directories(t / "out");
  fs::create_symlink(t / "outside/f", t / "out/f");
  fs::create_directory_symlink(t / "outside", t / "out/d");
  auto tree = open_tree(t);
  DDF_REQUIRE_OK(receive(*tree, file_content("f", "new")));
  BOOST_TEST(!fs::is_symlink(t / "out/f"));
  BOOST_TEST(get(t / "out/f") == "new");
  DDF_REQUIRE_OK(receive(*tree, file_content("d", "new")));
  BOOST_TEST(get(t / "out/d") == "new");
  BOOST_TEST(get(t / "outside/f") == "precious");
}

BOOST_AUTO_TEST_CASE(a_name_that_is_a_folder_a_pipe_or_a_device_is_refused_for_that_object_only) {
  temporary_folder t;
  fs::create_directories(t / "out/taken");
  ::mkfifo((t / "out/pipe").c_str(), 0600);
  auto tree = open_tree(t);
  const auto refused = tree->open_object(file_manifest("taken", 1));
  DDF_CHECK_FAILS(refused, errc::refused);
  BOOST_TEST(refused.error().what.find("taken") != std::string::npos);
  BOOST_TEST(refused.error().what.find("move it away") != std::string::npos);
  DDF_CHECK_FAILS(tree->open_object(file_manifest("pipe", 1)), errc::refused);
  DDF_REQUIRE_OK(receive(*tree, file_content("free", "x")));
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(a_name_taken_by_a_folder_during_the_transfer_is_refused_at_commit) {
  temporary_folder t;
  auto tree = open_tree(t);
  const content c = file_content("f", "x");
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  put(t / "out/f/inside", "precious");
  DDF_CHECK_FAILS(opened->sink->commit(digests(c)), errc::refused);
  BOOST_TEST(get(t / "out/f/inside") == "precious");
  opened->sink->discard();
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(an_existing_file_is_replaced_whole) {
  temporary_folder t;
  auto tree = open_tree(t);
  put(t / "out/f", "the old version, longer than the new one");
  std::ifstream reader(t / "out/f", std::ios::binary);   // keeps what it opened
  const content c = file_content("f", "new");
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, c));
  BOOST_TEST(get(t / "out/f") == "the old version, longer than the new one");
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST(get(t / "out/f") == "new");
  BOOST_TEST(std::string(std::istreambuf_iterator<char>(reader), {}) == "the old version, longer than the new one");
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(permissions_are_the_senders_within_the_umask_and_never_setuid) {
  const umask_of mask(027);
  temporary_folder t;
  auto tree = open_tree(t);
  content c = file_content("f", "x");
  c.description.parts[0].mode = 06755;
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(mode_of(partials(t / "out")[0]) == 0600u);   // nobody else reads what is not verified
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, c));
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST(mode_of(t / "out/f") == 0750u);
  content d = folder_content("d", {{"read-only", "x"}, {"sub/run", "y"}});
  d.description.parts[0].mode = 0444;
  d.description.parts[1].mode = 0777;
  d.description.parts.push_back(part{"empty", 0, 0700, true});
  d.parts.emplace_back();
  opened = tree->open_object(d.description);
  DDF_REQUIRE_OK(opened);
  BOOST_TEST(mode_of(partials(t / "out")[0]) == 0700u);
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, d));
  DDF_REQUIRE_OK(opened->sink->commit(digests(d)));
  BOOST_TEST(mode_of(t / "out/d") == 0750u);
  BOOST_TEST(mode_of(t / "out/d/read-only") == 0440u);
  BOOST_TEST(mode_of(t / "out/d/sub/run") == 0750u);
  BOOST_TEST(mode_of(t / "out/d/empty") == 0700u);
}

BOOST_AUTO_TEST_CASE(a_folder_appears_whole_with_empty_files_and_folders) {
  temporary_folder t;
  auto tree = open_tree(t);
  content c = folder_content("tenant/set", {{"a/b/c", pattern(100'000)}, {"a/zero", ""}, {"top", "x"}});
  c.description.parts.push_back(part{"empty/inner", 0, 0755, true});
  c.parts.emplace_back();
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, c));
  BOOST_TEST(visible(t / "out").empty());
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST(visible(t / "out") == list({"tenant/set/a/b/c", "tenant/set/a/zero", "tenant/set/top"}), boost::test_tools::per_element());
  BOOST_TEST((get(t / "out/tenant/set/a/b/c") == c.parts[0]));
  BOOST_TEST(fs::is_directory(t / "out/tenant/set/empty/inner"));
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(an_object_without_parts_is_an_empty_folder) {
  temporary_folder t;
  auto tree = open_tree(t);
  DDF_REQUIRE_OK(receive(*tree, folder_content("none", {})));
  BOOST_TEST(fs::is_directory(t / "out/none"));
  BOOST_TEST(fs::is_empty(t / "out/none"));
}

BOOST_AUTO_TEST_CASE(memory_lands_as_a_file_when_it_is_one_unnamed_part_and_as_a_folder_otherwise) {
  temporary_folder t;
  auto tree = open_tree(t);
  content one = file_content("one", "1234");
  one.description.kind = object_kind::memory;
  DDF_REQUIRE_OK(receive(*tree, one));
  BOOST_TEST(get(t / "out/one") == "1234");
  content two = folder_content("two", {{"wte.weight", "1234"}, {"h/0/bias", "5"}});
  two.description.kind = object_kind::memory;
  DDF_REQUIRE_OK(receive(*tree, two));
  BOOST_TEST(get(t / "out/two/wte.weight") == "1234");
  BOOST_TEST(get(t / "out/two/h/0/bias") == "5");
}

BOOST_AUTO_TEST_CASE(a_folder_that_ddf_made_is_replaced_whole) {
  temporary_folder t;
  DDF_REQUIRE_OK(receive(*open_tree(t), folder_content("set", {{"a", "1"}, {"gone", "2"}})));
  auto tree = open_tree(t);   // another run
  DDF_REQUIRE_OK(receive(*tree, folder_content("set", {{"a", "new"}, {"b/c", "3"}})));
  BOOST_TEST(visible(t / "out") == list({"set/a", "set/b/c"}), boost::test_tools::per_element());
  BOOST_TEST(get(t / "out/set/a") == "new");
  BOOST_TEST(partials(t / "out").empty());
  DDF_REQUIRE_OK(receive(*tree, folder_content("set", {{"z", ""}})));
  BOOST_TEST(visible(t / "out") == list({"set/z"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_folder_stays_ours_when_the_run_ended_before_its_record_was_settled) {
  temporary_folder t;
  DDF_REQUIRE_OK(receive(*open_tree(t), folder_content("set", {{"a", "1"}})));
  struct stat st {};
  BOOST_REQUIRE(::stat((t / "out/set").c_str(), &st) == 0);
  std::string record;
  for (const auto& e : fs::directory_iterator(t / "state/receive"))
    if (e.path().extension() == ".version") record = e.path().string();
  BOOST_REQUIRE(!record.empty());
  fs::rename(record, record + '-' + std::to_string(st.st_ino));
  DDF_REQUIRE_OK(receive(*open_tree(t), folder_content("set", {{"b", "2"}})));
  BOOST_TEST(visible(t / "out") == list({"set/b"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_foreign_folder_or_file_is_not_replaced_by_a_folder) {
  temporary_folder t;
  put(t / "out/set/mine", "precious");
  put(t / "out/file", "precious");
  fs::create_directory(t / "out/empty");
  fs::create_directory_symlink("set", t / "out/link");
  auto tree = open_tree(t);
  const auto refused = tree->open_object(folder_content("set", {{"a", "1"}}).description);
  DDF_CHECK_FAILS(refused, errc::refused);
  BOOST_TEST(refused.error().what.find("move it away") != std::string::npos);
  DDF_CHECK_FAILS(tree->open_object(folder_content("file", {{"a", "1"}}).description), errc::refused);
  DDF_CHECK_FAILS(tree->open_object(folder_content("link", {{"a", "1"}}).description), errc::refused);
  DDF_REQUIRE_OK(receive(*tree, folder_content("empty", {{"a", "1"}})));
  BOOST_TEST(get(t / "out/set/mine") == "precious");
  BOOST_TEST(get(t / "out/empty/a") == "1");
}

BOOST_AUTO_TEST_CASE(a_file_that_the_user_put_into_our_folder_is_not_lost) {
  temporary_folder t;
  auto tree = open_tree(t);
  DDF_REQUIRE_OK(receive(*tree, folder_content("set", {{"a", "1"}})));
  const content next = folder_content("set", {{"a", "2"}});
  auto opened = tree->open_object(next.description);
  DDF_REQUIRE_OK(opened);
  put(t / "out/set/notes.txt", "precious");
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, next));
  const auto refused = opened->sink->commit(digests(next));
  DDF_CHECK_FAILS(refused, errc::refused);
  BOOST_TEST(refused.error().what.find("notes.txt") != std::string::npos);
  BOOST_TEST(get(t / "out/set/notes.txt") == "precious");
  BOOST_TEST(get(t / "out/set/a") == "1");
  DDF_CHECK_FAILS(tree->open_object(next.description), errc::refused);
}

BOOST_AUTO_TEST_CASE(without_a_state_folder_objects_are_received_but_nothing_is_remembered) {
  temporary_folder t;
  auto opened = output_tree::open({t / "out", ""});
  DDF_REQUIRE_OK(opened);
  const content c = file_content("f", pattern(200'000));
  DDF_REQUIRE_OK(receive(**opened, c));
  DDF_REQUIRE_OK(receive(**opened, c));
  BOOST_TEST(!current_root(**opened, c.description));
  BOOST_TEST((get(t / "out/f") == c.parts[0]));
  auto sink = (*opened)->open_object(c.description);
  DDF_REQUIRE_OK(sink);
  range_set complete;
  complete.insert(0, 1);
  DDF_REQUIRE_OK(sink->sink->checkpoint(complete));
  DDF_REQUIRE_OK(sink->sink->keep(complete));
  BOOST_TEST(partials(t / "out").empty());
}

BOOST_AUTO_TEST_CASE(what_is_under_the_name_is_current_until_somebody_touches_it) {
  temporary_folder t;
  const content f = file_content("f", pattern(200'000)), d = folder_content("d", {{"a/b", "1"}, {"a/c", "2"}, {"e", ""}});
  {
    auto tree = open_tree(t);
    BOOST_TEST(!current_root(*tree, f.description));
    DDF_REQUIRE_OK(receive(*tree, f));
    DDF_REQUIRE_OK(receive(*tree, d));
  }
  auto tree = open_tree(t);
  for (const content* c : {&f, &d}) {
    manifest m = c->description;
    m.version = version_id{17};   // the same content, published again
    BOOST_REQUIRE(current_root(*tree, m).has_value());
    BOOST_TEST((*current_root(*tree, m) == digests(*c).root));
  }
  const auto base = tree->open_base(f.description.name, digests(f).root);
  DDF_REQUIRE_OK(base);
  BOOST_TEST((base->digests.blocks == digests(f).blocks));
  manifest other = f.description;
  other.parts[0].size += 1;
  BOOST_TEST(!current_root(*tree, other));

  ::chmod((t / "out/f").c_str(), 0600);   // harmless
  BOOST_TEST(current_root(*tree, f.description).has_value());
  const auto time = fs::last_write_time(t / "out/f");
  fs::last_write_time(t / "out/f", time + std::chrono::nanoseconds(1));
  BOOST_TEST(!current_root(*tree, f.description));
  fs::last_write_time(t / "out/f", time);
  BOOST_TEST(current_root(*tree, f.description).has_value());
  fs::copy_file(t / "out/f", t / "out/copy");
  fs::last_write_time(t / "out/copy", time);
  fs::rename(t / "out/copy", t / "out/f");
  BOOST_TEST(!current_root(*tree, f.description));

  fs::resize_file(t / "out/d/a/c", 2);
  BOOST_TEST(!current_root(*tree, d.description));
  DDF_REQUIRE_OK(receive(*tree, d));
  BOOST_TEST(current_root(*tree, d.description).has_value());
  fs::remove(t / "out/d/e");
  BOOST_TEST(!current_root(*tree, d.description));
}

BOOST_AUTO_TEST_CASE(discarding_leaves_no_trace) {
  temporary_folder t;
  auto tree = open_tree(t);
  fs::create_directories(t / "out/there");
  for (const auto& c : {file_content("there/new/deep/f", "x"), folder_content("there/other/d", {{"a/b", "x"}})}) {
    auto opened = tree->open_object(c.description);
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write_all_parts(*opened->sink, c));
    opened->sink->discard();
    BOOST_TEST(fs::is_empty(t / "out/there"));
    opened = tree->open_object(c.description);
    DDF_REQUIRE_OK(opened);
    opened->sink.reset();
    BOOST_TEST(fs::is_empty(t / "out/there"));
  }
}

BOOST_AUTO_TEST_CASE(an_output_folder_that_cannot_be_used_is_named_with_the_cure) {
  temporary_folder t;
  put(t / "file", "x");
  const auto opened = output_tree::open({t / "file/out", t / "state"});
  DDF_CHECK_FAILS(opened, errc::io);
  BOOST_TEST(opened.error().os == ENOTDIR);
  BOOST_TEST(opened.error().what.find("file/out") != std::string::npos);
  DDF_CHECK_FAILS(output_tree::open({t / "out", t / "file/state"}), errc::io);
  DDF_CHECK_FAILS(output_tree::open({"", ""}), errc::io);
  DDF_CHECK_FAILS(output_tree::open({"/proc/self", ""}), errc::io);   // not writable, not even for root
}

BOOST_AUTO_TEST_CASE(free_space_is_what_the_file_system_says) {
  temporary_folder t;
  const auto free = open_tree(t)->bytes_free();
  BOOST_TEST(free > 0u);
  BOOST_TEST(free <= fs::space(t.path()).capacity);
}

BOOST_AUTO_TEST_CASE(ten_thousand_small_files_of_a_folder_need_few_descriptors) {
  temporary_folder t;
  auto tree = open_tree(t);
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 10'000; ++i) files.emplace_back(std::to_string(i / 100) + '/' + std::to_string(i), std::to_string(i));
  const content c = folder_content("many", files);
  const std::size_t before = open_descriptors();
  auto opened = tree->open_object(c.description);
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK(write_all_parts(*opened->sink, c));
  BOOST_TEST(open_descriptors() <= before + tree_core::files_open_max + 2);
  for (std::uint32_t i = 0; i < 10'000; i += 999) BOOST_TEST(read(*opened->sink, i, 0, files[i].second.size()) == files[i].second);
  DDF_REQUIRE_OK(opened->sink->commit(digests(c)));
  BOOST_TEST(visible(t / "out").size() == 10'000u);
  BOOST_TEST(get(t / "out/many/99/9999") == "9999");
  BOOST_TEST(open_descriptors() <= before + 2);
  BOOST_TEST((current_root(*tree, c.description) == digests(c).root));
}

BOOST_AUTO_TEST_CASE(two_thousand_objects_at_once_need_few_descriptors) {
  temporary_folder t;
  auto tree = open_tree(t);
  std::vector<opened_sink> sinks;
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 2000; ++i) {
    auto opened = tree->open_object(file_manifest("o" + std::to_string(i), 5));
    DDF_REQUIRE_OK(opened);
    DDF_REQUIRE_OK(write(*opened->sink, 0, 0, "12345"));
    sinks.push_back(std::move(*opened));
  }
  BOOST_TEST(open_descriptors() <= before + tree_core::files_open_max + 40);
  for (auto& s : sinks) DDF_REQUIRE_OK(s.sink->commit({}));
  BOOST_TEST(visible(t / "out").size() == 2000u);
}

BOOST_AUTO_TEST_CASE(a_process_that_may_open_few_files_receives_many) {
  temporary_folder t;
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = open_descriptors() + 80;   // 32 of them are for locks
  BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  auto tree = open_tree(t);
  std::vector<opened_sink> sinks;
  std::size_t failed = 0;
  for (int i = 0; i < 300; ++i) {
    auto opened = tree->open_object(file_manifest("o" + std::to_string(i), 5));
    failed += !opened || !write(*opened->sink, 0, 0, "12345");
    if (opened) sinks.push_back(std::move(*opened));
  }
  for (auto& s : sinks) failed += !s.sink->commit({});
  ::setrlimit(RLIMIT_NOFILE, &before);
  BOOST_TEST(failed == 0u);
}

BOOST_AUTO_TEST_CASE(memory_is_immutable_after_commit) {
  content c = folder_content("m", {{"a", "12345"}, {"zero", ""}, {"b", pattern(100'000)}});
  auto opened = memory_sink::open(c.description);
  DDF_REQUIRE_OK(opened);
  memory_sink& sink = **opened;
  DDF_REQUIRE_OK(write_all_parts(sink, c));
  BOOST_TEST(sink.view(0).empty());
  BOOST_TEST((read(sink, 2, 50'000, 100) == c.parts[2].substr(50'000, 100)));
  const auto path = sink.commit(digests(c));
  DDF_REQUIRE_OK(path);
  BOOST_TEST(path->empty());
  for (std::uint32_t i = 0; i < c.parts.size(); ++i) {
    const auto bytes = sink.view(i);
    BOOST_TEST((std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == c.parts[i]));
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0u);
  }
  BOOST_TEST(sink.view(3).empty());
  const auto late = write(sink, 0, 0, "x");
  DDF_CHECK_FAILS(late, errc::io);
  BOOST_TEST(late.error().os == EPERM);
}

BOOST_AUTO_TEST_CASE(memory_of_no_bytes_works) {
  auto opened = memory_sink::open(file_manifest("m", 0));
  DDF_REQUIRE_OK(opened);
  DDF_REQUIRE_OK((*opened)->commit({}));
  BOOST_TEST((*opened)->view(0).empty());
}

BOOST_AUTO_TEST_SUITE_END()
