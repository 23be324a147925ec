// A temporary folder and short words for what the tests of the store do all the time.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "codecs/block_digest.hpp"
#include "lib/store/file_system.hpp"
#include "lib/store/partial_name.hpp"
#include "lib/store/sink.hpp"
#include "lib/store/source.hpp"

namespace ddf::test {

namespace fs = std::filesystem;

class temporary_folder {
 public:
  temporary_folder() {   // in memory, where fsync waits for no disk; TMPDIR chooses another place
    const char* chosen = std::getenv("TMPDIR");
    std::string pattern = std::string(chosen ? chosen : ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/ddf-store-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void put(const std::string& path, const std::string& content) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string pattern(std::size_t bytes, std::uint32_t seed = 1) {
  std::string out(bytes, '\0');
  for (char& c : out) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return out;
}

// Every file below a folder that does not carry a hidden partial's name, or lies in one: what a user sees.
inline std::vector<std::string> visible(const std::string& folder) {
  std::vector<std::string> out;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    if (is_partial_name(it->path().filename().string())) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_directory() || it->is_symlink()) out.push_back(fs::relative(it->path(), folder).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<std::string> partials(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& e : fs::recursive_directory_iterator(folder))
    if (is_partial_name(e.path().filename().string())) out.push_back(e.path().string());
  return out;
}

inline manifest file_manifest(const std::string& name, std::uint64_t bytes) {
  manifest m;
  m.name = name;
  m.block_bytes = block_bytes_for(bytes);
  m.parts.push_back(part{{}, bytes, 0644, false});
  return m;
}

struct content {   // an object in memory: what the sender has
  manifest description;
  std::vector<std::string> parts;
};

inline content file_content(const std::string& name, const std::string& bytes) { return {file_manifest(name, bytes.size()), {bytes}}; }

inline content folder_content(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) {
  content c;
  c.description.name = name;
  c.description.kind = object_kind::folder;
  for (const auto& f : files) {
    c.description.parts.push_back(part{f.first, f.second.size(), 0644, false});
    c.parts.push_back(f.second);
  }
  c.description.block_bytes = block_bytes_for(c.description.size());
  return c;
}

inline digest_table digests(const content& c) {
  digest_table t;
  for (const std::string& p : c.parts)
    for (std::size_t at = 0; at < p.size(); at += c.description.block_bytes)
      t.blocks.push_back(block_digest(std::as_bytes(std::span(p).subspan(at, std::min<std::size_t>(c.description.block_bytes, p.size() - at)))));
  t.root = root_digest(c.description.name, c.description.size(), t.blocks);
  return t;
}

inline result<void> write(object_sink& sink, std::uint32_t part, std::uint64_t offset, std::string bytes) {
  const iovec piece{bytes.data(), bytes.size()};
  return sink.write(part, offset, {&piece, 1});
}

inline std::string read(object_sink& sink, std::uint32_t part, std::uint64_t offset, std::size_t bytes) {
  std::string out(bytes, '?');
  const auto ok = sink.read(part, offset, std::as_writable_bytes(std::span(out)));
  return ok ? out : "error: " + describe(ok.error());
}

inline result<void> write_all_parts(object_sink& sink, const content& c) {
  for (std::uint32_t i = 0; i < c.parts.size(); ++i)
    if (!c.parts[i].empty())
      if (auto ok = write(sink, i, 0, c.parts[i]); !ok) return ok;
  return {};
}

// Everything from opening to the final name. Output: the path.
inline result<std::string> receive(output_tree& tree, const content& c) {
  auto opened = tree.open_object(c.description);
  if (!opened) return tl::unexpected(opened.error());
  if (auto ok = write_all_parts(*opened->sink, c); !ok) return tl::unexpected(ok.error());
  return opened->sink->commit(digests(c));
}

inline std::unique_ptr<output_tree> open_tree(const temporary_folder& folder, std::shared_ptr<file_system> files = {}) {
  auto tree = output_tree::open({folder / "out", folder / "state"}, std::move(files));
  BOOST_REQUIRE_MESSAGE(tree, (tree ? "" : describe(tree.error())));
  return std::move(*tree);
}

inline std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

#define DDF_REQUIRE_OK(r)                                                                                       \
  do {                                                                                                          \
    const auto& outcome_ = (r);                                                                                 \
    BOOST_REQUIRE_MESSAGE(outcome_.has_value(), (outcome_.has_value() ? std::string() : describe(outcome_.error()))); \
  } while (false)
#define DDF_CHECK_FAILS(r, expected)                                                                            \
  do {                                                                                                          \
    const auto& failed_ = (r);                                                                                  \
    BOOST_REQUIRE(!failed_.has_value());                                                                        \
    BOOST_TEST_INFO(describe(failed_.error()));                                                                 \
    BOOST_TEST(name(failed_.error().code) == name(expected));                                                   \
  } while (false)

/// Of the version that is visible and described by `m`.
inline std::optional<digest> current_root(const output_tree& tree, const manifest& m) {
  for (const held_version& h : tree.held(m))
    if (h.current) return h.root;
  return std::nullopt;
}

}  // namespace ddf::test
