#include "lib/runtime/memory_reader.hpp"

#include <algorithm>

#include "lib/wire/grant_stamp.hpp"

namespace ddf {

void memory_reader::read(session_id session, const read_segments& r, const std::string& local_address, answer a) {
  lanes_.open(r.lane, local_address, [this, alive = alive_, session, r, a = std::move(a)](result<lanes::lane*> open) {
    if (!*alive) return;
    if (!open) return a(tl::unexpected(open.error()));
    lanes::lane& lane = **open;
    auto taken = lane.arena->take();
    if (!taken) return a(fail(errc::too_large, "too many reads are under way"));
    const fabric_arena::slot slot = *taken;
    remote_read what;
    what.peer = r.fabric;
    what.address = r.address;
    what.key = r.key;
    what.into = &lane.arena->memory();
    what.offset = slot.offset;
    what.bytes = r.bytes + 2 * sizeof(grant_stamp);
    what.deadline = deadline;
    lane.endpoint->read(std::move(what), [this, alive, &lane, slot, session, id = r.id, bytes = r.bytes, a](result<void> outcome) {
      asio::post(io_, [alive, &lane, slot, session, id, bytes, a, outcome] {
        if (!*alive) return;   // lane and slot are gone, or go in a moment
        if (!outcome) {
          a(tl::unexpected(outcome.error()));
        } else {
          const grant_stamp stamp = stamp_of(session, id);
          const auto room = slot.bytes.first(bytes + 2 * sizeof(grant_stamp));
          if (std::ranges::equal(room.first(sizeof(grant_stamp)), stamp) && std::ranges::equal(room.last(sizeof(grant_stamp)), stamp)) a(room.subspan(sizeof(grant_stamp), bytes));
          else a(fail(errc::network, "what was granted is not there any more"));
        }
        lane.arena->give_back(slot);
      });
    });
  });
}

}  // namespace ddf
