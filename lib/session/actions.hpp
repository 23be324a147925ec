// What the engines ask their shell to do. Small values; payload never travels in them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>
#include <ddf/options.hpp>
#include "codecs/block_digest.hpp"
#include "lib/model/endpoint.hpp"
#include "lib/model/ids.hpp"
#include "lib/model/range_set.hpp"
#include "lib/model/time.hpp"
#include "lib/wire/data_run.hpp"

namespace ddf {

struct destination {
  bool group = false;
  std::uint32_t rails = 0;   // group: bit i = send on interface i
  path peer;                 // not group: whom, and by which interface
  bool operator==(const destination&) const = default;
};

struct send_message {   // a control datagram
  destination to;
  std::vector<std::byte> datagram;
};

struct note {   // something a person should know; never one per packet
  log_level level = log_level::info;
  std::string text;
};

// --- sender ---------------------------------------------------------------------------------------------------

inline constexpr std::size_t batch_segments_max = 64;

struct send_segments {   // DATA packets, one after the other, with consecutive sequence numbers
  destination to;
  std::uint8_t flags = 0;          // of every packet
  bool confirm_last = false;       // the last packet also carries the confirm flag
  bool drained_last = false;       // … and the drained flag
  std::uint64_t sequence = 0;      // of the first packet: of the group, or of what was sent to this receiver alone
  std::uint32_t count = 0;
  std::array<std::uint64_t, batch_segments_max> segments;   // the first `count` are set
};

/// The header of packet `i` of a batch.
inline data_header header_of(const send_segments& batch, std::uint32_t i, session_id session) {
  const bool last = i + 1 == batch.count;
  data_header h;
  h.flags = static_cast<std::uint8_t>(batch.flags | (last && batch.confirm_last ? data_header::confirm : 0) | (last && batch.drained_last ? data_header::drained : 0));
  h.segment = batch.segments[i];
  h.session_tag = static_cast<std::uint32_t>(session.value);
  h.sequence = static_cast<std::uint32_t>(batch.sequence + i);
  return h;
}

struct prepare_digests {   // the digest table of an object is asked for before its data was sent: make it
  std::uint32_t object = 0;
};

struct grant_segments {   // lay them out in memory that a receiver can read by this lane, and answer with handle_granted()
  std::uint64_t id = 0;
  repair_lane lane = repair_lane::tcp;
  std::uint32_t rail = 0;    // by which the receiver is reached
  std::vector<range> segments;
  std::uint64_t bytes = 0;   // of them
};

struct release_grant {   // nobody may count on that memory any more
  std::uint64_t id = 0;
};

struct plan_session {};   // everyone who will be waited for has said what it holds: decide what is sent beside the whole, and answer with handle_plan()

struct sender_finished {
  error outcome;
};

using sender_action = std::variant<send_message, send_segments, prepare_digests, note, sender_finished, plan_session, grant_segments, release_grant>;

// --- receiver -------------------------------------------------------------------------------------------------

struct open_object {   // make room for it; answer with handle_opened()
  std::uint32_t object = 0;
};

struct place_segments {   // write these payloads, one after the other, to where they belong; they live as long as the datagrams
  std::uint32_t object = 0, part = 0;
  std::uint64_t offset = 0;   // of the first
  data_run run;
};

struct read_segments {   // from another host's memory, and answer with handle_read()
  std::uint64_t id = 0;
  repair_lane lane = repair_lane::tcp;
  std::uint32_t rail = 0;                // by which the sender was heard
  std::vector<std::byte> fabric;         // as in GRANT
  std::uint64_t address = 0, key = 0;
  std::uint64_t bytes = 0;               // of the segments, without the stamps around them
};

struct digest_block {   // read what is missing of its leaves back, and answer with handle_block_digest()
  std::uint64_t block = 0;
  leaf_digests leaves;
};

struct commit_object {   // complete and verified: make it visible, answer with handle_committed()
  std::uint32_t object = 0;
};

struct delta_arrived {   // these bytes of a delta are here, not proven yet: what is made of them will be
  std::uint32_t delta = 0;
  std::uint64_t offset = 0, bytes = 0;
};

struct apply_delta {   // the delta is complete and verified: make what it makes of its object, answer with handle_patched()
  std::uint32_t delta = 0, object = 0;
};

struct discard_object {   // will not be completed here, or is there already: forget what was kept of it
  std::uint32_t object = 0;
};

struct rejoin_group {};   // leave and join: the network may have forgotten the membership

struct receiver_finished {
  error outcome;
};

using receiver_action = std::variant<send_message, open_object, place_segments, digest_block, commit_object, discard_object,
                                     rejoin_group, note, receiver_finished, apply_delta, delta_arrived, read_segments>;

}  // namespace ddf
