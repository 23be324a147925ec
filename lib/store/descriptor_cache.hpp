// Keeps the descriptors of the files used last open, so that many thousand files need only a few.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "lib/store/descriptor.hpp"
#include "lib/store/file_system.hpp"

namespace ddf {

/// Thread-safe. A descriptor handed out stays open while its handle is held, even when it has left the cache.
class descriptor_cache {
 public:
  using handle = std::shared_ptr<const descriptor>;
  struct key {
    std::uint64_t owner = 0;
    std::uint64_t index = 0;
    bool operator==(const key&) const = default;
  };

  explicit descriptor_cache(std::size_t open_max) : open_max_(open_max) {}
  /// `wanted`, or a quarter of what this process may have open when that is less.
  static std::size_t sensible_size(std::size_t wanted);
  std::uint64_t new_owner();

  /// The descriptor under `k`, by `open()` (an os_result<descriptor>) when it is not in the cache.
  /// Cost: a lock; O(1), without allocation when it is there. When the process has no descriptor left, the cache lets go of its own.
  template <class Open>
  os_result<handle> get(key k, Open&& open) {
    if (handle found = find(k)) return found;
    os_result<descriptor> opened = open();
    if (!opened && opened.error() == EMFILE) {
      clear();
      opened = open();
    }
    if (!opened) return tl::unexpected(opened.error());
    return insert(k, std::move(*opened));
  }

  void forget(std::uint64_t owner);
  void clear();
  std::size_t size() const;

 private:
  struct entry {
    key at;
    handle file;
  };
  struct hash {
    std::size_t operator()(const key& k) const { return static_cast<std::size_t>((k.owner * 0x9e3779b97f4a7c15u) ^ (k.index * 0xc2b2ae3d27d4eb4fu)); }
  };

  handle find(const key& k);
  handle insert(const key& k, descriptor file);

  const std::size_t open_max_;
  mutable std::mutex mutex_;
  std::uint64_t owners_ = 0;
  std::list<entry> recent_;   // the one used last is first
  std::unordered_map<key, std::list<entry>::iterator, hash> entries_;
};

}  // namespace ddf
