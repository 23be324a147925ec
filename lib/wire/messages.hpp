// Every message but DATA: a common header, then fields. Each has one parser and one writer, in messages.cpp.
//
// Common header:
//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |version| type  |     flags     |            length             |   length: bytes of header and body;
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+   what follows it in the datagram is padding (zeros)
// |                            check                              |   low 32 bits of XXH3-64 over `length` bytes, with check = 0
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                           session                             |
// +                                                               +
// |                                                               |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>
#include "lib/model/digest.hpp"
#include "lib/model/ids.hpp"
#include "lib/model/lane_set.hpp"
#include "lib/model/manifest.hpp"
#include "lib/model/range_set.hpp"
#include "lib/model/session_plan.hpp"
#include "lib/wire/data_header.hpp"

namespace ddf {

inline constexpr std::size_t control_header_bytes = 16;
inline constexpr std::size_t control_bytes_max = 1200;      // a control message passes every path that IPv6 allows
inline constexpr std::size_t catalogue_chunk_bytes = 1100;  // payload of one CATALOGUE chunk, of the catalogue or the plan
inline constexpr std::size_t announce_inline_bytes_max = 1070;   // of catalogue and plan together inside an announcement
inline constexpr std::size_t held_versions_max = 36;   // in one JOIN
inline constexpr std::size_t nack_ranges_max = 115;   // the most that control_bytes_max holds
inline constexpr std::size_t host_bytes_max = 64, reason_bytes_max = 200;
inline constexpr std::size_t grant_ranges_max = 64, released_max = 64;
inline constexpr std::uint32_t grant_bytes_max = 1 << 20;   // of segments

enum class session_state : std::uint8_t { gathering = 0, streaming = 1, flushing = 2, lingering = 3 };

struct announce {   // sender -> group, or -> one receiver that asked
  session_id session;
  session_state state = session_state::gathering;
  bool unicast = false;               // this copy answers a QUERY: it proves nothing about multicast
  bool no_multicast = false;          // the sender will send no data to the group
  bool group_commit = false;          // what is complete becomes visible when COMMIT says so
  bool plans = false;                 // it decides by what receivers hold: state it in JOIN
  std::uint8_t rail = 0;              // which of the sender's interfaces
  std::uint16_t segment_bytes = 0;    // 0 while gathering: not decided yet
  std::uint32_t counter = 0;          // grows by one with each announcement to the group; 1, 5, 9 … fill a whole packet while gathering
  std::uint32_t clock_us = 0;         // sender's clock, echoed by JOIN: a round trip
  std::uint64_t sequence = 0;         // packets sent to the group so far
  std::uint64_t bulk_segment = 0;     // segments below this have been sent once, or will not be sent unasked
  std::uint64_t segments = 0;         // of the session; 0 while gathering
  std::uint64_t bytes = 0;            // of all objects
  std::uint32_t objects = 0;
  std::uint32_t group_size = 0;       // receivers known
  std::uint32_t grtt_us = 0;          // group round-trip time
  std::uint32_t catalogue_bytes = 0;
  digest catalogue_digest;
  std::uint32_t plan_bytes = 0;       // 0: there is none, or gathering
  digest plan_digest;
  std::vector<std::byte> catalogue;   // the whole of it when it fits, else empty
  std::vector<std::byte> plan;        // likewise
  lane_offer reads;                   // by which segments can be read from the sender's memory
  bool operator==(const announce&) const = default;
};

struct catalogue_chunk {   // sender -> group or receiver
  session_id session;
  bool plan = false;                     // of the plan, not of the catalogue
  std::uint32_t total = 0, offset = 0;   // offset is a multiple of catalogue_chunk_bytes
  std::vector<std::byte> bytes;
  bool operator==(const catalogue_chunk&) const = default;
};

struct query {   // receiver -> group or sender: is anybody sending? Padded to control_bytes_max, so that no answer is larger
  receiver_id receiver;
  bool operator==(const query&) const = default;
};

struct join {   // receiver -> sender. Padded to 256 bytes at least
  session_id session;
  receiver_id receiver;
  bool ready = false;          // has the catalogue and a place for what it wants
  bool asks_only = false;      // needs only what it will ask for (resumes, or came late)
  bool deaf = false;           // hears no multicast
  std::uint32_t rails = 0;     // bit i: heard on the sender's interface i
  std::uint32_t echo_us = 0;   // clock_us of the last announcement, and how long it was held here
  std::uint32_t held_us = 0;
  std::uint32_t buffer_bytes = 0;      // receive buffer granted
  std::uint16_t datagram_bytes = 0;    // the largest announcement that arrived: the path carries as much; 0: not known yet
  std::string host;
  std::vector<held_version> held;      // at most held_versions_max, what matters most first
  lane_offer reads;                    // by which it can read from the sender's memory
  bool operator==(const join&) const = default;
};

enum class refusal : std::uint8_t { none = 0, full = 1, path_mtu = 2, not_multicast = 3, no_lane = 4 };

struct welcome {   // sender -> receiver, in answer to JOIN and when its role changes
  session_id session;
  receiver_id receiver;
  join_token token;
  bool in_rate_loop = false;   // answer DATA packets with the confirm flag
  bool left_rate_loop = false; // too slow for the group: finish by asking
  refusal refused = refusal::none;
  std::uint32_t rtt_us = 0;
  bool operator==(const welcome&) const = default;
};

struct status {   // receiver -> sender
  session_id session;
  join_token token;
  std::uint64_t sequence = 0;    // everything sent to the group before this has arrived or is lost
  std::uint64_t received = 0;    // of those, how many arrived
  std::uint64_t segments = 0;    // held, verified or not
  bool deaf = false;
  bool at_once = false;          // answers a DATA packet with the confirm flag, without a wait: its round trip is the path's
  bool operator==(const status&) const = default;
};

enum class nack_space : std::uint8_t { segments = 0, catalogue_chunks = 1, plan_chunks = 2 };

struct nack {   // receiver -> sender: send these
  session_id session;
  join_token token;
  nack_space space = nack_space::segments;
  bool unicast = false;         // answer to me alone: deaf, or far behind the group
  std::uint64_t sequence = 0;   // as in STATUS
  std::uint64_t received = 0;
  std::uint64_t unicast_sequence = 0;   // DATA packets sent to this receiver alone: all before this have arrived or are lost
  std::vector<range> ranges;    // ascending, disjoint, not empty; at most nack_ranges_max, each at most 2^32 numbers
  bool operator==(const nack&) const = default;
};

enum class done_state : std::uint8_t { complete = 0, failed = 1, leaving = 2, prepared = 3 };   // prepared: everything is here and proven, and waits for COMMIT

struct done {   // receiver -> sender, until FAREWELL, or COMMIT
  session_id session;
  join_token token;
  done_state state = done_state::complete;
  std::uint8_t code = 0;   // errc of the first failure
  std::uint32_t objects_complete = 0, objects_failed = 0;
  std::uint64_t bytes = 0, repaired_bytes = 0, nacks = 0;
  std::string reason;
  bool operator==(const done&) const = default;
};

struct farewell {   // sender -> receiver: DONE has arrived
  session_id session;
  receiver_id receiver;
  bool operator==(const farewell&) const = default;
};

struct repair_notice {   // sender -> group: these will be sent to the group again; do not ask
  session_id session;
  std::vector<range> ranges;
  bool operator==(const repair_notice&) const = default;
};

struct grant {   // sender -> receiver, instead of the segments: they lie in memory, read them
  session_id session;
  receiver_id receiver;
  std::uint64_t id = 0;                  // of the session, from 1 on; the same id is the same grant
  repair_lane lane = repair_lane::tcp;
  std::vector<std::byte> fabric;         // whom to read from, as its provider calls it
  std::uint64_t address = 0, key = 0;    // remote memory: a stamp, the segments one behind the other, the stamp again
  std::vector<range> segments;           // as in NACK; at most grant_ranges_max
  bool operator==(const grant&) const = default;
};

struct release {   // receiver -> sender: these grants are read, or will not be
  session_id session;
  join_token token;
  bool failed = false;                   // not read: another lane is wanted
  std::vector<std::uint64_t> ids;        // 1 to released_max
  std::string reason;                    // of a failure
  bool operator==(const release&) const = default;
};

struct commit_group {   // sender -> group and receivers that are prepared: make it visible now
  session_id session;
  bool operator==(const commit_group&) const = default;
};

struct close_session {   // sender -> group and receivers: it is over
  session_id session;
  std::uint8_t code = 0;   // errc; 0 when all went well
  std::string reason;
  bool operator==(const close_session&) const = default;
};

using message = std::variant<announce, catalogue_chunk, query, join, welcome, status, nack, done, farewell, repair_notice, close_session, commit_group, grant, release>;

/// The message in a datagram; nothing when it is malformed, of another protocol version, or fails its check.
/// Bounded: never takes more memory than a small multiple of the datagram. What parses writes back to the same bytes.
std::optional<message> parse_message(std::span<const std::byte> datagram);

/// The session a control datagram belongs to, without parsing the rest.
std::optional<session_id> peek_session(std::span<const std::byte> datagram);

/// Appends nothing, returns the datagram; `pad_to` adds zeros up to that size.
std::vector<std::byte> write_message(const message& m, std::size_t pad_to = 0);

}  // namespace ddf
