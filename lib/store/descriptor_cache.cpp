#include "lib/store/descriptor_cache.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace ddf {

std::size_t descriptor_cache::sensible_size(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  return std::max<std::size_t>(1, std::min<std::uint64_t>(wanted, limit.rlim_cur / 4));
}

std::uint64_t descriptor_cache::new_owner() {
  const std::lock_guard lock(mutex_);
  return ++owners_;
}

descriptor_cache::handle descriptor_cache::find(const key& k) {
  const std::lock_guard lock(mutex_);
  if (!recent_.empty() && recent_.front().at == k) return recent_.front().file;
  const auto it = entries_.find(k);
  if (it == entries_.end()) return {};
  recent_.splice(recent_.begin(), recent_, it->second);
  return recent_.front().file;
}

descriptor_cache::handle descriptor_cache::insert(const key& k, descriptor file) {
  auto made = std::make_shared<const descriptor>(std::move(file));
  handle leaves;   // closed after the lock is gone
  const std::lock_guard lock(mutex_);
  if (const auto it = entries_.find(k); it != entries_.end()) return it->second->file;   // another thread was first
  recent_.push_front(entry{k, made});
  entries_.emplace(k, recent_.begin());
  if (entries_.size() > open_max_) {
    leaves = std::move(recent_.back().file);
    entries_.erase(recent_.back().at);
    recent_.pop_back();
  }
  return made;
}

void descriptor_cache::forget(std::uint64_t owner) {
  std::list<entry> leave;
  const std::lock_guard lock(mutex_);
  for (auto it = recent_.begin(); it != recent_.end();) {
    const auto next = std::next(it);
    if (it->at.owner == owner) {
      entries_.erase(it->at);
      leave.splice(leave.begin(), recent_, it);
    }
    it = next;
  }
}

void descriptor_cache::clear() {
  std::list<entry> leave;
  const std::lock_guard lock(mutex_);
  entries_.clear();
  leave.swap(recent_);
}

std::size_t descriptor_cache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace ddf
