// Nothing leads out of the folder, whichever way a path is resolved.
#include <functional>

#include <boost/test/data/test_case.hpp>

#include "lib/store/confined.hpp"
#include "lib/model/object_name.hpp"
#include "tests/unit/store_fixture.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

struct no_openat2 : file_system {   // an old kernel
  int openat2(int, const char*, int, mode_t, std::uint64_t) override { return errno = ENOSYS, -1; }
};
struct filtered_openat2 : file_system {   // an old container engine
  int openat2(int, const char*, int, mode_t, std::uint64_t) override { return errno = EPERM, -1; }
};

std::shared_ptr<file_system> way(int i) {
  if (i == 0) return std::make_shared<file_system>();
  if (i == 1) return std::make_shared<no_openat2>();
  return std::make_shared<filtered_openat2>();
}

}  // namespace

namespace ddf::test {

struct links_and_folders {
  temporary_folder t;
  descriptor root;
  links_and_folders() {
    put(t / "root/a/b/file", "inside");
    put(t / "outside/secret", "outside");
    fs::create_symlink("../outside", t / "root/up");
    fs::create_symlink(t / "outside", t / "root/absolute");
    fs::create_symlink("a", t / "root/within");
    fs::create_symlink("b/file", t / "root/a/link");
    root = descriptor(::open((t / "root").c_str(), O_RDONLY | O_DIRECTORY));
  }
};

}  // namespace ddf::test

BOOST_AUTO_TEST_SUITE(store_confined)

BOOST_DATA_TEST_CASE(a_path_that_could_leave_is_refused_and_others_open, boost::unit_test::data::xrange(3), i) {
  links_and_folders t;
  const auto files = way(i);
  const auto errno_of = [&](const std::string& path, int flags = O_RDONLY) {
    const auto opened = open_beneath(*files, t.root.get(), path, flags, 0600);
    return opened ? 0 : opened.error();
  };
  BOOST_TEST(errno_of("a/b/file") == 0);
  BOOST_TEST(errno_of("a/b", O_RDONLY | O_DIRECTORY) == 0);
  BOOST_TEST(errno_of("", O_RDONLY | O_DIRECTORY) == 0);
  BOOST_TEST(errno_of("a/missing") == ENOENT);
  BOOST_TEST(errno_of("missing/file") == ENOENT);
  BOOST_TEST(errno_of("a/b/file/below") == ENOTDIR);
  BOOST_TEST(errno_of("a/b/file", O_RDONLY | O_DIRECTORY) == ENOTDIR);
  BOOST_TEST(errno_of("../outside/secret") == EXDEV);
  BOOST_TEST(errno_of("a/../../outside/secret") == EXDEV);
  BOOST_TEST(errno_of("a/..") == EXDEV);
  BOOST_TEST(errno_of("..") == EXDEV);
  BOOST_TEST(errno_of("a//b") == EXDEV);
  BOOST_TEST(errno_of("./a") == EXDEV);
  BOOST_TEST(errno_of("/etc/passwd") == EXDEV);
  BOOST_TEST(errno_of("a/b/") == EXDEV);
  BOOST_TEST(errno_of(std::string("a/b\0/file", 9)) == EXDEV);
  BOOST_TEST(errno_of("up/secret") == ELOOP);
  BOOST_TEST(errno_of("absolute/secret") == ELOOP);
  BOOST_TEST(errno_of("within/b/file") == ELOOP);
  BOOST_TEST(errno_of("a/link") == ELOOP);
  BOOST_TEST(errno_of("up", O_RDONLY | O_DIRECTORY) == ELOOP);
  BOOST_TEST(errno_of("up", O_PATH) == ELOOP);
  BOOST_TEST(errno_of("up/new", O_RDWR | O_CREAT) == ELOOP);
  BOOST_TEST(errno_of("a/link", O_RDWR | O_CREAT | O_TRUNC) == ELOOP);
  BOOST_TEST(errno_of("a/new", O_RDWR | O_CREAT | O_EXCL) == 0);
  BOOST_TEST(errno_of("a/new", O_RDWR | O_CREAT | O_EXCL) == EEXIST);
  BOOST_TEST(get(t.t / "outside/secret") == "outside");
  BOOST_TEST(!fs::exists(t.t / "outside/new"));
}

BOOST_DATA_TEST_CASE(folders_are_made_beneath_only, boost::unit_test::data::xrange(3), i) {
  links_and_folders t;
  const auto files = way(i);
  const auto make = [&](const std::string& path, int* made = nullptr) {
    const auto opened = make_folders_beneath(*files, t.root.get(), path, true, made);
    return opened ? 0 : opened.error();
  };
  int made = -1;
  BOOST_TEST(make("a/b/c/d", &made) == 0);
  BOOST_TEST(made == 2);
  BOOST_TEST(make("a/b/c/d", &made) == 0);
  BOOST_TEST(made == 0);
  BOOST_TEST(make("") == 0);
  BOOST_TEST(make("../x") == EXDEV);
  BOOST_TEST(make("up/x") == ELOOP);
  BOOST_TEST(make("new/../../x") == EXDEV);
  BOOST_TEST(make("a/b/file/x") == ENOTDIR);
  BOOST_TEST(!fs::exists(t.t / "outside/x"));
  BOOST_TEST(!fs::exists(t.t / "x"));
}

BOOST_DATA_TEST_CASE(removing_a_folder_removes_links_and_not_what_they_lead_to, boost::unit_test::data::xrange(3), i) {
  links_and_folders t;
  const auto files = way(i);
  fs::create_symlink(t.t / "outside", t.t / "root/a/out");
  BOOST_TEST(remove_beneath(*files, t.root.get(), "a") == 0);
  BOOST_TEST(!fs::exists(t.t / "root/a"));
  BOOST_TEST(remove_beneath(*files, t.root.get(), "up") == 0);
  BOOST_TEST(remove_beneath(*files, t.root.get(), "nothing") == ENOENT);
  BOOST_TEST(get(t.t / "outside/secret") == "outside");
}

BOOST_AUTO_TEST_CASE(a_deep_tree_is_removed_with_few_descriptors) {
  temporary_folder t;
  file_system files;
  const descriptor root(::open(t.path().c_str(), O_RDONLY | O_DIRECTORY));
  std::string path = "top";
  for (int i = 0; i < 1000; ++i) path += "/d";
  BOOST_TEST(make_folders_beneath(files, root.get(), path, false).has_value());
  const std::size_t before = open_descriptors();
  BOOST_TEST(remove_beneath(files, root.get(), "top") == 0);
  BOOST_TEST(open_descriptors() == before);
  BOOST_TEST(!fs::exists(t / "top"));
}

BOOST_AUTO_TEST_CASE(hidden_names_fit_a_component_and_are_recognised) {
  const std::string hidden = partial_name("model.bin", "0a1b2c3d");
  BOOST_TEST(hidden == ".model.bin.ddf-0a1b2c3d.partial");
  BOOST_TEST(is_partial_name(hidden));
  for (std::size_t n : {1, 200, 232, 233, 234, 250, 255}) {
    const std::string name = partial_name(std::string(n, 'x'), "0a1b2c3d");
    BOOST_TEST(name.size() <= 255u);
    BOOST_TEST(is_partial_name(name));
  }
  BOOST_TEST(partial_name(std::string(254, 'x') + "a", "0a1b2c3d") != partial_name(std::string(254, 'x') + "b", "0a1b2c3d"));
  std::string wide;
  while (wide.size() + 3 <= 255) wide += "模";
  BOOST_TEST(is_utf8(partial_name(wide, "0a1b2c3d")));
  for (const char* other : {"", ".", "model.bin", ".model.partial", ".m.ddf-0a1b2c3d.partial.txt", ".m.ddf-0a1b2c3.partial", "m.ddf-0a1b2c3d.partial", ".m.ddf-0A1B2C3D.partial"})
    BOOST_TEST(!is_partial_name(other));
}

BOOST_AUTO_TEST_SUITE_END()
