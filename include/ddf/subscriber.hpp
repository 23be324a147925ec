// Receives objects: as files below a folder, or as verified memory.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <ddf/options.hpp>

namespace ddf {

/// A version that is complete and verified. Immutable; the memory or file stays while a copy of this handle exists.
class object {
 public:
  virtual ~object() = default;
  virtual const std::string& name() const = 0;
  virtual std::uint64_t version() const = 0;
  virtual std::uint64_t bytes() const = 0;
  /// The root digest in hexadecimal: of two versions of an object equal when their bytes are. Empty when it is not known.
  virtual std::string root() const = 0;
  virtual std::string path() const = 0;   // empty when it lives in memory only
  virtual std::vector<std::string> part_names() const = 0;
  /// The bytes of a part; of the only part when `name` is empty. Empty span for an unknown name or an object kept as files.
  virtual std::span<const std::byte> part(const std::string& name = {}) const = 0;
};

struct subscriber_options : network_options {
  std::string output_directory;   // files appear below it; empty: objects stay in memory
  std::string state_directory;    // block maps of interrupted transfers; empty: $XDG_STATE_HOME/ddf or ~/.local/state/ddf
  bool follow = false;            // keep receiving sessions; otherwise one session
  std::chrono::nanoseconds timeout{std::chrono::seconds(60)};          // to wait for a sender
  std::chrono::nanoseconds sender_silence{std::chrono::seconds(10)};   // then the session has failed
  unsigned keep = 0;              // how many older versions of each object stay readable: files in OUTPUT/.ddf-versions/NAME.versions/NUMBER, or memory
  std::uint64_t bytes_max = 0;    // refuse more than this per session; 0: what is free in the output folder, or half of memory
};

class subscriber {
 public:
  using callback = std::function<void(std::shared_ptr<const object>)>;

  /// Checks options and opens sockets. Errors: invalid_argument (names the field), network, io.
  static result<std::unique_ptr<subscriber>> open(const subscriber_options& options = {});
  virtual ~subscriber() = default;   // leaves; partial files stay for a later resume

  /// Receive objects whose name matches: '*' any run without '/', '**' any run, '?' one character. Before start().
  /// The callback is called exactly once for each complete, verified version, from the library's thread.
  virtual result<void> subscribe(const std::string& pattern, callback on_object = {}) = 0;
  /// A version that is here, whole; 0: the newest. It stays, also when newer ones come, as long as the handle does.
  /// Errors: unknown_version, which names those that are here. Thread-safe.
  virtual result<std::shared_ptr<const object>> get(const std::string& name, std::uint64_t version = 0) = 0;
  /// Begins to listen.
  virtual result<void> start() = 0;
  /// Waits for the end: of one session, or with `follow` for stop(). Every wait inside has its own deadline.
  virtual report wait() = 0;
  virtual bool wait_for(std::chrono::nanoseconds limit) = 0;
  virtual progress snapshot() const = 0;
  /// Ends early; wait() then reports `interrupted` unless complete. Partial state is kept.
  virtual void stop() = 0;
};

}  // namespace ddf
