#include "lib/runtime/memory_lender.hpp"

#include <algorithm>

#include "lib/wire/grant_stamp.hpp"

namespace ddf {

void memory_lender::lend(session_id session, const grant_segments& g, const std::string& local_address, fill f, answer a) {
  const std::pair key(session.value, g.id);
  loans_[key] = {};
  lanes_.open(g.lane, local_address, [this, alive = alive_, key, bytes = g.bytes, f = std::move(f), a = std::move(a)](result<lanes::lane*> r) {
    if (!*alive) return;
    const auto found = loans_.find(key);
    if (found == loans_.end()) return a(fail(errc::interrupted, "taken back"));
    const auto give_up = [&](error e) {
      loans_.erase(found);
      a(tl::unexpected(std::move(e)));
    };
    if (!r) return give_up(r.error());
    fabric_arena& arena = *(*r)->arena;
    auto slot = arena.take();
    if (!slot) return give_up({errc::too_large, 0, "all memory for reads is lent"});
    const std::span<std::byte> room = slot->bytes.first(bytes + 2 * sizeof(grant_stamp));
    const auto mark = [&](const grant_stamp& stamp) {
      std::ranges::copy(stamp, room.begin());
      std::ranges::copy(stamp, room.last<sizeof(grant_stamp)>().begin());
    };
    mark({});   // who still reads an earlier grant sees no stamp
    if (auto ok = f(room.subspan(sizeof(grant_stamp), bytes)); !ok) {
      arena.give_back(*slot);
      return give_up(ok.error());
    }
    mark(stamp_of(session_id{key.first}, key.second));
    const auto address = (*r)->endpoint->address();
    sender::granted_memory where{{address.begin(), address.end()}, slot->address, arena.memory().key()};
    found->second = {*r, std::move(slot)};
    a(std::move(where));
  });
}

void memory_lender::take_back(session_id session, std::uint64_t grant) {
  const auto found = loans_.find({session.value, grant});
  if (found == loans_.end()) return;
  if (found->second.slot) found->second.from->arena->give_back(*found->second.slot);
  loans_.erase(found);
}

}  // namespace ddf
