// A version as the subscriber's user sees it, and those that are held in memory as bases of later ones.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#include <ddf/subscriber.hpp>
#include "lib/store/sink.hpp"

namespace ddf {

class received_object final : public object {
 public:
  /// In files; `lease` keeps them, null when nothing could be remembered of it.
  received_object(manifest m, std::string path, std::shared_ptr<const version_lease> lease) : manifest_(std::move(m)), path_(std::move(path)), lease_(std::move(lease)) {}
  /// In memory.
  received_object(manifest m, digest_table digests, std::shared_ptr<memory_sink> memory) : manifest_(std::move(m)), digests_(std::move(digests)), memory_(std::move(memory)) {}

  const std::string& name() const override { return manifest_.name; }
  std::uint64_t version() const override { return manifest_.version.value; }
  std::uint64_t bytes() const override { return manifest_.size(); }
  std::string root() const override;
  std::string path() const override { return lease_ ? lease_->path() : path_; }
  std::vector<std::string> part_names() const override;
  std::span<const std::byte> part(const std::string& name) const override;

  const manifest& description() const { return manifest_; }
  const digest_table& digests() const { return digests_; }
  const std::shared_ptr<memory_sink>& memory() const { return memory_; }

 private:
  manifest manifest_;
  std::string path_;
  std::shared_ptr<const version_lease> lease_;
  digest_table digests_;
  std::shared_ptr<memory_sink> memory_;
};

class memory_versions {   // thread-safe
 public:
  /// Input: how many versions beside the newest stay for get(); the newest always does, as the base of the next.
  explicit memory_versions(unsigned keep) : keep_(keep) {}
  void add(std::shared_ptr<const received_object> v);
  std::vector<held_version> held(const manifest& m) const;   // by its name, newest first
  result<delta_base> base(const std::string& name, const digest& root) const;
  std::shared_ptr<const received_object> find(const std::string& name, std::uint64_t version) const;   // 0: the newest; null: not here
  result<std::shared_ptr<const object>> get(const std::string& name, std::uint64_t version) const;   // the same; unknown_version names those that are here

 private:
  const unsigned keep_;
  mutable std::mutex mutex_;
  std::map<std::string, std::deque<std::shared_ptr<const received_object>>> versions_;   // newest first
};

}  // namespace ddf
