#include "lib/runtime/memory_lender.hpp"

#include <cstring>

namespace ddf {

void write_stamp(std::span<std::byte, grant_stamp_bytes> out, session_id session, std::uint64_t grant) {
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<std::byte>(session.value >> (56 - 8 * i) & 0xff);
    out[8 + i] = static_cast<std::byte>(grant >> (56 - 8 * i) & 0xff);
  }
}

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
    const std::span<std::byte> room = slot->bytes.first(bytes + 2 * grant_stamp_bytes);
    const auto front = room.first<grant_stamp_bytes>(), back = room.last<grant_stamp_bytes>();
    std::memset(front.data(), 0, front.size());   // who still reads an earlier grant sees no stamp
    std::memset(back.data(), 0, back.size());
    if (auto ok = f(room.subspan(grant_stamp_bytes, bytes)); !ok) {
      arena.give_back(*slot);
      return give_up(ok.error());
    }
    write_stamp(front, session_id{key.first}, key.second);
    write_stamp(back, session_id{key.first}, key.second);
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
