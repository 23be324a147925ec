// File systems that fail.
#pragma once
#include <atomic>

#include "tests/unit/store_fixture.hpp"

namespace ddf::test {

class nth_call_fails final : public file_system {
 public:
  /// `and_all_after`: as if the process had been killed at the nth call.
  nth_call_fails(int nth, int os, bool and_all_after = false) : left_(nth), os_(os), and_all_after_(and_all_after) {}
  bool renames_only = false;   // as NFS: RENAME_EXCHANGE and RENAME_NOREPLACE are not there
  bool failed() const { return left_ <= 0; }

  int openat(int folder, const char* path, int flags, mode_t mode) override { return fails() ? -1 : file_system::openat(folder, path, flags, mode); }
  int openat2(int folder, const char* path, int flags, mode_t mode, std::uint64_t resolve) override {
    return fails() ? -1 : file_system::openat2(folder, path, flags, mode, resolve);
  }
  ssize_t pwritev(int file, const iovec* pieces, int count, std::int64_t offset) override {
    return fails() ? -1 : file_system::pwritev(file, pieces, count, offset);
  }
  int ftruncate(int file, std::int64_t bytes) override { return fails() ? -1 : file_system::ftruncate(file, bytes); }
  int fchmod(int file, mode_t mode) override { return fails() ? -1 : file_system::fchmod(file, mode); }
  int fsync(int file) override { return fails() ? -1 : file_system::fsync(file); }
  int syncfs(int file) override { return fails() ? -1 : file_system::syncfs(file); }
  int mkdirat(int folder, const char* path, mode_t mode) override { return fails() ? -1 : file_system::mkdirat(folder, path, mode); }
  int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) override {
    if (renames_only && flags != 0) return errno = EINVAL, -1;
    return fails() ? -1 : file_system::renameat2(from_folder, from, to_folder, to, flags);
  }
  int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) override {
    return fails() ? -1 : file_system::linkat(from_folder, from, to_folder, to, flags);
  }
  int unlinkat(int folder, const char* path, int flags) override { return fails() ? -1 : file_system::unlinkat(folder, path, flags); }

 private:
  bool fails() {
    const int left = --left_;
    if (left > 0 || (left < 0 && !and_all_after_)) return false;
    errno = os_;
    return true;
  }
  std::atomic<int> left_;
  const int os_;
  const bool and_all_after_;
};

struct plain_renames_only final : file_system {   // NFS
  int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) override {
    if (flags != 0) return errno = EINVAL, -1;
    return file_system::renameat2(from_folder, from, to_folder, to, flags);
  }
};

// What is visible is one of the two, whole.
inline bool shows(const temporary_folder& t, const content& c) {
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < c.parts.size(); ++i) {
    const std::string path = c.description.parts[i].name.empty() ? c.description.name : c.description.name + '/' + c.description.parts[i].name;
    if (get(t / ("out/" + path)) != c.parts[i]) return false;
    expected.push_back(path);
  }
  std::sort(expected.begin(), expected.end());
  return visible(t / "out") == expected;
}

}  // namespace ddf::test
