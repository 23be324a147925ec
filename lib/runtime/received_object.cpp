#include "lib/runtime/received_object.hpp"

#include "lib/model/object_name.hpp"
#include "lib/store/record.hpp"

namespace ddf {

std::vector<std::string> received_object::part_names() const {
  std::vector<std::string> out;
  for (const ddf::part& p : manifest_.parts) out.push_back(p.name);
  return out;
}

std::string received_object::root() const {
  const digest& d = lease_ ? lease_->root() : digests_.root;
  return d == digest{} ? std::string() : hexadecimal(d.bytes);
}

std::span<const std::byte> received_object::part(const std::string& name) const {
  if (!memory_) return {};
  for (std::uint32_t i = 0; i < manifest_.parts.size(); ++i)
    if (manifest_.parts[i].name == name || (name.empty() && manifest_.parts.size() == 1)) return memory_->view(i);
  return {};
}

void memory_versions::add(std::shared_ptr<const received_object> v) {
  const std::lock_guard lock(mutex_);
  auto& all = versions_[v->name()];
  std::erase_if(all, [&](const auto& o) { return o->version() == v->version(); });
  all.push_front(std::move(v));
  while (all.size() > keep_ + 1) all.pop_back();
}

std::vector<held_version> memory_versions::held(const manifest& m) const {
  const std::lock_guard lock(mutex_);
  std::vector<held_version> out;
  if (const auto it = versions_.find(m.name); it != versions_.end())
    for (const auto& v : it->second) out.push_back({0, version_id{v->version()}, v->digests().root, out.empty() && description_digest(v->description()) == description_digest(m)});
  return out;
}

result<delta_base> memory_versions::base(const std::string& name, const digest& root) const {
  const std::lock_guard lock(mutex_);
  if (const auto it = versions_.find(name); it != versions_.end())
    for (const auto& v : it->second) {
      if (v->digests().root != root) continue;
      const auto view = [v](std::uint32_t part, std::uint64_t offset, std::uint64_t bytes) { return v->memory()->view(part).subspan(offset, bytes); };
      const auto read = [view](std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) -> result<void> {
        const auto bytes = view(part, offset, out.size());
        std::copy(bytes.begin(), bytes.end(), out.begin());
        return {};
      };
      return delta_base{version_id{v->version()}, v->description(), v->digests(), std::make_shared<const object_bytes>(v->description(), read, view)};
    }
  return fail(errc::stale_base, "the version of '" + printable(name) + "' that the delta starts from is not held any more");
}

std::shared_ptr<const received_object> memory_versions::find(const std::string& name, std::uint64_t version) const {
  const std::lock_guard lock(mutex_);
  if (const auto it = versions_.find(name); it != versions_.end())
    for (const auto& v : it->second)
      if (version == 0 || v->version() == version) return v;
  return nullptr;
}

result<std::shared_ptr<const object>> memory_versions::get(const std::string& name, std::uint64_t version) const {
  if (auto found = find(name, version)) return std::shared_ptr<const object>(std::move(found));
  const std::lock_guard lock(mutex_);
  std::string here;
  if (const auto it = versions_.find(name); it != versions_.end())
    for (const auto& v : it->second) here += (here.empty() ? "" : ", ") + std::to_string(v->version());
  return fail(errc::unknown_version, "of '" + printable(name) + "' there is " + (version == 0 ? "no version" : "no version " + std::to_string(version)) + " here" + (here.empty() ? "" : ", but " + here) +
                                         " (subscriber_options::keep says how many older ones stay)");
}

}  // namespace ddf
