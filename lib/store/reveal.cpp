#include "lib/store/reveal.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "lib/model/object_name.hpp"
#include "lib/store/partial_name.hpp"
#include "lib/store/receive_state.hpp"

namespace ddf {

namespace {

class revealing {
 public:
  revealing(file_system& files, int folder, const std::string& hidden, const std::string& name)
      : files_(files), folder_(folder), hidden_(hidden), name_(name) {}

  result<bool> run(const may_replace& allowed) {
    constexpr int tries = 16;   // somebody may make or remove the name at the same moment
    for (int i = 0; i < tries; ++i) {
      if (rename(hidden_, name_, RENAME_NOREPLACE)) return synced(false);
      if (errno == EINVAL || errno == ENOSYS) return without_flags(allowed);   // NFS and others
      if (errno != EEXIST) return fault();
      if (auto ok = allowed(folder_, name_); !ok) return tl::unexpected(ok.error());
      if (rename(hidden_, name_, RENAME_EXCHANGE)) {
        if (auto ok = allowed(folder_, hidden_); !ok) {   // not the one that was asked about
          rename(hidden_, name_, RENAME_EXCHANGE);
          return tl::unexpected(ok.error());
        }
        return synced(true);
      }
      if (errno == EINVAL || errno == ENOSYS) return without_flags(allowed);
      if (errno != ENOENT) return fault();
    }
    return fail(errc::io, "'" + printable(name_) + "' was made and removed by others all the time: it stays as they left it");
  }

 private:
  bool rename(const std::string& from, const std::string& to, unsigned flags) {
    return files_.renameat2(folder_, from.c_str(), folder_, to.c_str(), flags) == 0;
  }
  tl::unexpected<error> fault() const { return io_fault("cannot give '" + printable(name_) + "' its name", errno); }

  result<bool> synced(bool exchanged) {
    if (files_.fsync(folder_) == 0) return exchanged;
    const int os = errno;
    if (exchanged) {
      rename(hidden_, name_, RENAME_EXCHANGE);
    } else {
      rename(name_, hidden_, RENAME_NOREPLACE);
    }
    return io_fault("fsync of the folder of '" + printable(name_) + "' failed", os);
  }

  // On a file system that can only rename. A file replaces a file in one step still, and the old one stays by another name where
  // there are hard links; a folder has to step aside first.
  result<bool> without_flags(const may_replace& allowed) {
    if (auto ok = allowed(folder_, name_); !ok) return tl::unexpected(ok.error());
    struct stat st {};
    const bool there = ::fstatat(folder_, name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    const bool aside = there && S_ISDIR(st.st_mode);
    const std::string old = partial_name(name_, receive_state::random_tag());
    if (aside && !rename(name_, old, 0)) return fault();
    const bool linked = there && !aside && files_.linkat(folder_, name_.c_str(), folder_, old.c_str(), 0) == 0;
    if (!rename(hidden_, name_, 0)) {
      const auto e = fault();
      if (aside) rename(old, name_, 0);
      if (linked) files_.unlinkat(folder_, old.c_str(), 0);
      return e;
    }
    if (files_.fsync(folder_) != 0) {
      const auto e = io_fault("fsync of the folder of '" + printable(name_) + "' failed", errno);
      if (linked) {
        files_.linkat(folder_, name_.c_str(), folder_, hidden_.c_str(), 0);
        rename(old, name_, 0);
      } else if (aside || !there) {   // a file that was replaced is gone
        rename(name_, hidden_, 0);
        if (aside) rename(old, name_, 0);
      }
      return e;
    }
    if (aside || linked) rename(old, hidden_, 0);
    return aside || linked;
  }

  file_system& files_;
  const int folder_;
  const std::string& hidden_;
  const std::string& name_;
};

}  // namespace

result<bool> reveal(file_system& files, int folder, const std::string& hidden, const std::string& name, const may_replace& allowed) {
  return revealing(files, folder, hidden, name).run(allowed);
}

}  // namespace ddf
