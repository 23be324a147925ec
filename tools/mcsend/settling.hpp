// When what is watched holds a new version that nobody writes to any more. Pure: what was seen, and when, goes in.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ddf/options.hpp>

namespace ddf::tools {

/// What tells one state of a file or folder from another, without reading it.
struct seen_file {
  std::string path;
  std::uint64_t size = 0, inode = 0, device = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const seen_file&) const = default;
};

/// All that is watched, as it was at one moment.
struct sighting {
  bool whole = false;            // every path is there, and could be looked at
  std::vector<seen_file> files;  // in an order that depends on nothing but their names
  std::string missing;           // when not whole: why, for a person
  bool operator==(const sighting& other) const { return whole == other.whole && files == other.files; }
};

/// Whether a file of `before` was written to where it is, so that what it held is gone. One that was replaced by another
/// is not: who has it open still reads what it was.
inline bool overwritten(const sighting& before, const sighting& now) {
  std::map<std::string_view, const seen_file*> at;
  for (const auto& f : now.files) at.emplace(f.path, &f);
  return std::any_of(before.files.begin(), before.files.end(), [&](const seen_file& was) {
    const auto is = at.find(was.path);
    if (is == at.end()) return false;
    return is->second->inode == was.inode && is->second->device == was.device && !(*is->second == was);
  });
}

/// Whether the next version may take the place of the one that is being served: nobody is in the middle of receiving it.
/// Who has failed or was lost is not waited for; who is late gets the next version.
inline bool may_replace(const progress& now) { return now.receivers_active == 0; }

class settling {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict {
    absent,    // something is not there yet, or in the middle of being replaced
    changing,  // written to, or not long enough ago
    known,     // this state was taken already
    ready      // a new state, and nobody has touched it for the settle time: publish it
  };

  /// Input: how long nothing may change before a state counts as whole.
  explicit settling(std::chrono::nanoseconds settle) : settle_(settle) {}

  /// Input: `now`, not before that of the call before.
  verdict look(time_point now, sighting seen) {
    if (!last_ || !(seen == *last_)) {
      since_ = now;
      last_ = std::move(seen);
    }
    if (!last_->whole) return verdict::absent;
    if (taken_ && *taken_ == *last_) return verdict::known;
    return now - since_ >= settle_ ? verdict::ready : verdict::changing;
  }

  /// What was seen last is being published: it is not ready a second time.
  void take() { taken_ = last_; }

  /// What was taken could not be published as it was: it is ready again once it has settled anew.
  void give_back(time_point now) {
    taken_.reset();
    since_ = now;
  }

  /// Whether what was taken cannot be read any more.
  bool taken_is_gone() const { return taken_ && last_ && overwritten(*taken_, *last_); }

  /// Why the last sighting was not whole; empty otherwise.
  std::string missing() const { return last_ && !last_->whole ? last_->missing : std::string(); }

 private:
  const std::chrono::nanoseconds settle_;
  std::optional<sighting> last_, taken_;
  time_point since_{};  // when `last_` was seen first
};

}  // namespace ddf::tools
