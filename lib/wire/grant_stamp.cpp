#include "lib/wire/grant_stamp.hpp"

#include "lib/wire/cursor.hpp"

namespace ddf {

grant_stamp stamp_of(session_id session, std::uint64_t grant) {
  std::vector<std::byte> bytes;
  writer w(bytes);
  w.u64(session.value);
  w.u64(grant);
  grant_stamp stamp;
  std::ranges::copy(bytes, stamp.begin());
  return stamp;
}

}  // namespace ddf
