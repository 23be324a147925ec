// Publishes objects to every receiver of a group.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <ddf/options.hpp>

namespace ddf {

struct publisher_options : network_options {
  std::string state_directory;   // remembers published versions and digests; empty: $XDG_STATE_HOME/ddf or ~/.local/state/ddf; "none": nothing is kept
  std::uint64_t rate_bytes_per_s = 0;   // 0: automatic
  unsigned keep = 0;   // of how many published versions a copy of the bytes stays in the state directory, for deltas after the file was overwritten
};

enum class consistency : std::uint8_t {
  versioned = 0,     // each publication is a version of its own
  immutable = 1,     // the first version is the last: other bytes under the name are refused, here and by receivers
  append_only = 2,   // versions only grow: what was there before is taken as unchanged, and not read
};

struct byte_range {
  std::uint64_t offset = 0, bytes = 0;   // in the object: its parts one after the other
};

struct part_view {   // a piece of memory to publish; must stay valid and unchanged until the ticket is done
  std::string name;
  std::span<const std::byte> bytes;
  std::uint8_t element_bytes = 1;
};

struct publish_options {
  std::uint64_t version = 0;               // 0: one more than the last one published from here, the same one when unchanged
  std::uint32_t expect = 0;                // start when this many receivers have joined; 0: whoever joins within `wait`
  std::chrono::nanoseconds wait{0};        // 0: 2 s, or 60 s with `expect`
  std::chrono::nanoseconds deadline{0};    // give up on receivers that are not complete by then; 0: never while they make progress
  std::uint32_t quorum = 0;                // how many complete receivers are a success; 0: all that joined, and all expected
  std::chrono::nanoseconds linger{0};      // stay that long after the last receiver for late ones
  bool serve = false;                      // stay until cancelled
  std::string base = "auto";               // what holders of it get a delta from: "auto", earlier versions, and for a new name the object published from here that resembles it; "none"; "NAME@VERSION", also of another object
  consistency consistent = consistency::versioned;
  bool commit_together = false;            // receivers switch at once, when all (or `quorum`) have everything; otherwise none does
  bool fast = false;                       // deltas that are quick to encode and apply rather than small
  bool has_changed = false;                // `changed` is given: only there may the object differ from the version published last
  std::vector<byte_range> changed;
  /// Of an object in memory: the parts as they were published last under this name, of equal names and sizes. With them holders of that
  /// version get a delta; without, blocks that are equal are kept and the others sent whole. To stay valid like the parts.
  std::vector<part_view> previous;
  std::function<void(const plan_report&)> on_plan;   // before the first byte; from the library's thread
  bool dry_run = false;                    // stop there: nothing is sent
};

struct path_source {   // a file or a folder to publish as one object
  std::string path;
  std::string name;   // empty: the last component of the path
};

class ticket {   // one publication under way
 public:
  virtual ~ticket() = default;
  /// Waits until the publication ended, successfully or not; every wait inside has its own deadline.
  virtual report wait() = 0;
  /// The same, for at most `limit`. Output: false when it has not ended.
  virtual bool wait_for(std::chrono::nanoseconds limit) = 0;
  virtual progress snapshot() const = 0;
  /// Ends the publication early; receivers are told. wait() then returns with `interrupted` (or success when serving).
  virtual void cancel() = 0;
};

class publisher {
 public:
  /// Opens sockets on the group. Errors: invalid_argument (names the field), network (names the interface and the cure).
  static result<std::unique_ptr<publisher>> open(const publisher_options& options = {});
  virtual ~publisher() = default;   // cancels what is still under way

  /// Publishes parts in memory as one object. Cost: one object's worth of traffic, however many receive it.
  virtual result<std::shared_ptr<ticket>> publish(const std::string& name, std::span<const part_view> parts, const publish_options& options = {}) = 0;
  /// Publishes files and folders, each as one object, in one session. A folder keeps its tree.
  virtual result<std::shared_ptr<ticket>> publish_paths(std::span<const path_source> paths, const publish_options& options = {}) = 0;
};

}  // namespace ddf
