#include "lib/runtime/lanes.hpp"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "codecs/digest.hpp"
#include "lib/runtime/host.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf {

using namespace std::chrono_literals;

static constexpr duration try_again = 10s;

// Two processes share memory when the kernel, the namespaces that tell it apart, and the user are the same. Processes of two network
// namespaces are taken for two hosts: whoever keeps them apart wants what goes between them to be seen there.
static std::uint64_t memory_domain() {
  std::string all = std::to_string(::geteuid());
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!(boot >> id)) return 0;
  all += id;
  for (const char* name : {"pid", "ipc", "mnt", "net", "user"}) {
    std::array<char, 64> link{};
    const auto n = ::readlink((std::string("/proc/self/ns/") + name).c_str(), link.data(), link.size());
    if (n <= 0) return 0;
    all.append(link.data(), static_cast<std::size_t>(n));
  }
  const digest whole = digest_of(std::as_bytes(std::span(all)));
  return reader(whole.bytes).u64();
}

static bool has_rdma_device() {
  std::error_code e;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", e);
  return !e && devices != std::filesystem::directory_iterator();
}

bool lane_required(repair_lane wanted) { return wanted != repair_lane::automatic && wanted != repair_lane::udp; }

lane_offer offered_lanes(repair_lane wanted) {
  lane_offer o;
  if (wanted == repair_lane::udp) return o;
  if (lane_required(wanted)) {
    o.lanes.add(wanted);
  } else {
    o.lanes.add(repair_lane::tcp);
    o.lanes.add(repair_lane::shm);
    if (has_rdma_device()) o.lanes.add(repair_lane::verbs);
  }
  if (o.lanes.has(repair_lane::shm)) o.host_key = memory_domain();
  return o;
}

result<void> check_lane(const network_options& o, const network_plan& plan) {
  if (!lane_required(o.repair)) return {};
  const endpoint* local = plan.interfaces.rails.empty() ? nullptr : plan.interfaces.rails.front().address_for(plan.group);
  if (auto found = find_fabric(o.repair, local == nullptr ? std::string() : address_text(*local)); !found)
    return fail(found.error().code, "repair " + std::string(name_of(o.repair)) + ": " + found.error().what + "; --repair auto takes what there is", found.error().os);
  return {};
}

lanes::~lanes() {
  for (auto& [what, e] : entries_)
    if (e.opening.joinable()) e.opening.join();
}

void lanes::open(repair_lane which, const std::string& local_address, std::function<void(result<lane*>)> then) {
  entry& e = entries_[{which, which == repair_lane::shm ? std::string() : local_address}];
  if (e.open.endpoint) return then(&e.open);
  if (e.failed && now() < e.again) return then(tl::unexpected(*e.failed));
  e.waiting.push_back(std::move(then));
  if (e.waiting.size() != 1) return;
  e.failed.reset();
  if (e.opening.joinable()) e.opening.join();
  e.opening = std::thread([this, &e, which, local_address] {
    auto made = [&]() -> result<lane> {
      fabric_options o;
      o.lane = which;
      o.local_address = local_address;
      lane l;
      auto endpoint = fabric_endpoint::open(o);
      if (!endpoint) return tl::unexpected(endpoint.error());
      l.endpoint = std::move(*endpoint);
      auto arena = fabric_arena::make(*l.endpoint, slot_bytes, slots);
      if (!arena) return tl::unexpected(arena.error());
      l.arena = std::move(*arena);
      return l;
    }();
    // A function object of asio must be copyable.
    asio::post(io_, [this, &e, r = std::make_shared<result<lane>>(std::move(made))] { opened(e, std::move(*r)); });
  });
}

void lanes::opened(entry& e, result<lane> r) {
  if (r) e.open = std::move(*r);
  else e.failed = r.error(), e.again = now() + try_again;
  const auto waiting = std::move(e.waiting);
  e.waiting.clear();
  for (const auto& then : waiting) then(r ? result<lane*>(&e.open) : tl::unexpected(*e.failed));
}

}  // namespace ddf
