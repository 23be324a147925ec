#include "lib/wire/messages.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/wire/cursor.hpp"

namespace ddf {

static std::uint32_t check_of(std::span<const std::byte> datagram) {   // of a message whose check field is zero
  return static_cast<std::uint32_t>(XXH3_64bits(datagram.data(), datagram.size()));
}

// --- ranges -------------------------------------------------------------------------------------------------------
// count(16), then per range: first(48), size - 1 (32).

static void write_ranges(writer& w, const std::vector<range>& ranges) {
  w.u16(static_cast<std::uint16_t>(ranges.size()));
  for (const range& r : ranges) {
    w.u48(r.first);
    w.u32(static_cast<std::uint32_t>(r.size() - 1));
  }
}

static std::vector<range> read_ranges(reader& r, std::size_t most = nack_ranges_max) {
  std::vector<range> out;
  const std::size_t n = r.u16();
  if (n == 0 || n > most || r.left() < n * 10) return r.fail(), out;
  out.reserve(n);
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t first = r.u48();
    const std::uint64_t size = std::uint64_t(r.u32()) + 1;
    if (first < least) return r.fail(), out;   // not ascending, or overlapping
    out.push_back({first, first + size});
    least = first + size;
  }
  return out;
}

static void write_digest(writer& w, const digest& d) { w.bytes(d.bytes); }
static void write_text(writer& w, std::string_view t, std::size_t max) {
  t = t.substr(0, max);
  w.u8(static_cast<std::uint8_t>(t.size()));
  w.text(t);
}
static std::string read_text(reader& r, std::size_t max) {
  const std::size_t n = r.u8();
  if (n > max) return r.fail(), std::string();
  return r.text(n);
}

static void write_offer(writer& w, const lane_offer& o) {
  w.u8(o.lanes.bits);
  w.u64(o.host_key);
}
static lane_offer read_offer(reader& r) {
  lane_offer o;
  o.lanes.bits = r.u8();
  o.host_key = r.u64();
  if ((o.lanes.bits & ~lane_set::all) != 0) r.fail();
  return o;
}

// --- one writer and one parser each: the body, after the common header; flags are returned or given --------------------

static std::uint8_t write_body(writer& w, const announce& m) {
  w.u8(static_cast<std::uint8_t>(m.state));
  w.u8(m.rail);
  w.u16(m.segment_bytes);
  w.u32(m.counter);
  w.u32(m.clock_us);
  w.u32(m.group_size);
  w.u64(m.sequence);
  w.u64(m.bulk_segment);
  w.u64(m.segments);
  w.u64(m.bytes);
  w.u32(m.objects);
  w.u32(m.grtt_us);
  w.u32(m.catalogue_bytes);
  write_digest(w, m.catalogue_digest);
  w.u32(m.plan_bytes);
  write_digest(w, m.plan_digest);
  write_offer(w, m.reads);
  w.bytes(m.catalogue);
  w.bytes(m.plan);
  return static_cast<std::uint8_t>((m.unicast ? 1 : 0) | (m.no_multicast ? 2 : 0) | (m.plans ? 4 : 0) | (m.plan.empty() ? 0 : 8) | (m.group_commit ? 16 : 0));
}

static announce read_announce(reader& r, session_id session, std::uint8_t flags) {
  announce m;
  m.session = session;
  m.unicast = flags & 1;
  m.no_multicast = flags & 2;
  m.plans = flags & 4;
  const bool plan_inside = flags & 8;
  m.group_commit = flags & 16;
  if (flags & ~31) r.fail();
  const auto state = r.u8();
  if (state > static_cast<std::uint8_t>(session_state::lingering)) r.fail();
  m.state = static_cast<session_state>(state);
  m.rail = r.u8();
  m.segment_bytes = r.u16();
  m.counter = r.u32();
  m.clock_us = r.u32();
  m.group_size = r.u32();
  m.sequence = r.u64();
  m.bulk_segment = r.u64();
  m.segments = r.u64();
  m.bytes = r.u64();
  m.objects = r.u32();
  m.grtt_us = r.u32();
  m.catalogue_bytes = r.u32();
  m.catalogue_digest = r.digest();
  m.plan_bytes = r.u32();
  m.plan_digest = r.digest();
  m.reads = read_offer(r);
  if (m.segment_bytes != 0 && (m.segment_bytes < limits::segment_bytes_min || m.segment_bytes > limits::segment_bytes_max)) r.fail();
  if (m.state != session_state::gathering && m.segment_bytes == 0) r.fail();
  if (m.rail > 31 || m.objects == 0 || m.objects > limits::objects) r.fail();
  if (m.catalogue_bytes == 0 || m.catalogue_bytes > limits::catalogue_bytes) r.fail();
  if (m.bulk_segment > m.segments || m.segments >> 48 != 0) r.fail();
  if (m.plan_bytes > limits::plan_bytes || (plan_inside && (m.plan_bytes == 0 || m.plan_bytes > r.left()))) r.fail();
  if (!r.ok()) return m;
  const std::size_t inline_bytes = r.left() - (plan_inside ? m.plan_bytes : 0);
  if (inline_bytes != 0 && inline_bytes != m.catalogue_bytes) r.fail();
  const auto c = r.bytes(inline_bytes);
  m.catalogue.assign(c.begin(), c.end());
  const auto p = r.bytes(r.left());
  m.plan.assign(p.begin(), p.end());
  return m;
}

static std::uint8_t write_body(writer& w, const catalogue_chunk& m) {
  w.u32(m.total);
  w.u32(m.offset);
  w.bytes(m.bytes);
  return m.plan ? 1 : 0;
}
static catalogue_chunk read_catalogue_chunk(reader& r, session_id session, std::uint8_t flags) {
  catalogue_chunk m;
  m.session = session;
  m.plan = flags & 1;
  m.total = r.u32();
  m.offset = r.u32();
  if (flags & ~1 || m.total == 0 || m.total > (m.plan ? limits::plan_bytes : limits::catalogue_bytes) || m.offset >= m.total || m.offset % catalogue_chunk_bytes != 0) return r.fail(), m;
  if (r.left() != std::min<std::size_t>(catalogue_chunk_bytes, m.total - m.offset)) return r.fail(), m;
  const auto b = r.bytes(r.left());
  m.bytes.assign(b.begin(), b.end());
  return m;
}

static std::uint8_t write_body(writer& w, const query& m) {
  w.u64(m.receiver.value);
  return 0;
}
static query read_query(reader& r, std::uint8_t flags) {
  if (flags != 0) r.fail();
  return query{receiver_id{r.u64()}};
}

static std::uint8_t write_body(writer& w, const join& m) {
  w.u64(m.receiver.value);
  w.u32(m.rails);
  w.u32(m.echo_us);
  w.u32(m.held_us);
  w.u32(m.buffer_bytes);
  w.u16(m.datagram_bytes);
  write_text(w, m.host, host_bytes_max);
  w.u8(static_cast<std::uint8_t>(m.held.size()));
  for (const held_version& h : m.held) {
    w.u32(h.object);
    w.u64(h.version.value);
    write_digest(w, h.root);
    w.u8(h.current ? 1 : 0);
  }
  write_offer(w, m.reads);
  return static_cast<std::uint8_t>((m.ready ? 1 : 0) | (m.asks_only ? 2 : 0) | (m.deaf ? 4 : 0));
}
static join read_join(reader& r, session_id session, std::uint8_t flags) {
  join m;
  m.session = session;
  m.ready = flags & 1;
  m.asks_only = flags & 2;
  m.deaf = flags & 4;
  if (flags & ~7) r.fail();
  m.receiver = receiver_id{r.u64()};
  m.rails = r.u32();
  m.echo_us = r.u32();
  m.held_us = r.u32();
  m.buffer_bytes = r.u32();
  m.datagram_bytes = r.u16();
  m.host = read_text(r, host_bytes_max);
  const std::size_t held = r.u8();
  if (held > held_versions_max) r.fail();
  for (std::size_t i = 0; i < held && r.ok(); ++i) {
    held_version h;
    h.object = r.u32();
    h.version.value = r.u64();
    h.root = r.digest();
    const auto current = r.u8();
    h.current = current == 1;
    if (h.object >= limits::objects || current > 1) r.fail();
    m.held.push_back(h);
  }
  m.reads = read_offer(r);
  return m;
}

static std::uint8_t write_body(writer& w, const welcome& m) {
  w.u64(m.receiver.value);
  w.u64(m.token.value);
  w.u8(static_cast<std::uint8_t>(m.refused));
  w.u32(m.rtt_us);
  return static_cast<std::uint8_t>((m.in_rate_loop ? 1 : 0) | (m.left_rate_loop ? 2 : 0));
}
static welcome read_welcome(reader& r, session_id session, std::uint8_t flags) {
  welcome m;
  m.session = session;
  m.in_rate_loop = flags & 1;
  m.left_rate_loop = flags & 2;
  if (flags & ~3) r.fail();
  m.receiver = receiver_id{r.u64()};
  m.token = join_token{r.u64()};
  const auto refused = r.u8();
  if (refused > static_cast<std::uint8_t>(refusal::no_lane)) r.fail();
  m.refused = static_cast<refusal>(refused);
  m.rtt_us = r.u32();
  return m;
}

static std::uint8_t write_body(writer& w, const status& m) {
  w.u64(m.token.value);
  w.u64(m.sequence);
  w.u64(m.received);
  w.u64(m.segments);
  return static_cast<std::uint8_t>((m.deaf ? 1 : 0) | (m.at_once ? 2 : 0));
}
static status read_status(reader& r, session_id session, std::uint8_t flags) {
  status m;
  m.session = session;
  m.deaf = flags & 1;
  m.at_once = flags & 2;
  if (flags & ~3) r.fail();
  m.token = join_token{r.u64()};
  m.sequence = r.u64();
  m.received = r.u64();
  m.segments = r.u64();
  return m;
}

static std::uint8_t write_body(writer& w, const nack& m) {
  w.u64(m.token.value);
  w.u64(m.sequence);
  w.u64(m.received);
  w.u64(m.unicast_sequence);
  write_ranges(w, m.ranges);
  return static_cast<std::uint8_t>((m.space == nack_space::catalogue_chunks ? 1 : 0) | (m.unicast ? 2 : 0) | (m.space == nack_space::plan_chunks ? 4 : 0));
}
static nack read_nack(reader& r, session_id session, std::uint8_t flags) {
  nack m;
  m.session = session;
  m.space = flags & 1 ? nack_space::catalogue_chunks : flags & 4 ? nack_space::plan_chunks : nack_space::segments;
  m.unicast = flags & 2;
  if (flags & ~7 || (flags & 5) == 5) r.fail();
  m.token = join_token{r.u64()};
  m.sequence = r.u64();
  m.received = r.u64();
  m.unicast_sequence = r.u64();
  m.ranges = read_ranges(r);
  return m;
}

static std::uint8_t write_body(writer& w, const done& m) {
  w.u64(m.token.value);
  w.u8(static_cast<std::uint8_t>(m.state));
  w.u8(m.code);
  w.u32(m.objects_complete);
  w.u32(m.objects_failed);
  w.u64(m.bytes);
  w.u64(m.repaired_bytes);
  w.u64(m.nacks);
  write_text(w, m.reason, reason_bytes_max);
  return 0;
}
static done read_done(reader& r, session_id session, std::uint8_t flags) {
  done m;
  m.session = session;
  if (flags != 0) r.fail();
  m.token = join_token{r.u64()};
  const auto state = r.u8();
  if (state > static_cast<std::uint8_t>(done_state::prepared)) r.fail();
  m.state = static_cast<done_state>(state);
  m.code = r.u8();
  m.objects_complete = r.u32();
  m.objects_failed = r.u32();
  m.bytes = r.u64();
  m.repaired_bytes = r.u64();
  m.nacks = r.u64();
  m.reason = read_text(r, reason_bytes_max);
  return m;
}

static std::uint8_t write_body(writer& w, const farewell& m) {
  w.u64(m.receiver.value);
  return 0;
}
static farewell read_farewell(reader& r, session_id session, std::uint8_t flags) {
  if (flags != 0) r.fail();
  return farewell{session, receiver_id{r.u64()}};
}

static std::uint8_t write_body(writer& w, const repair_notice& m) {
  write_ranges(w, m.ranges);
  return 0;
}
static repair_notice read_repair_notice(reader& r, session_id session, std::uint8_t flags) {
  if (flags != 0) r.fail();
  return repair_notice{session, read_ranges(r)};
}

static std::uint8_t write_body(writer& w, const close_session& m) {
  w.u8(m.code);
  write_text(w, m.reason, reason_bytes_max);
  return 0;
}
static close_session read_close(reader& r, session_id session, std::uint8_t flags) {
  close_session m;
  m.session = session;
  if (flags != 0) r.fail();
  m.code = r.u8();
  m.reason = read_text(r, reason_bytes_max);
  return m;
}

static std::uint8_t write_body(writer&, const commit_group&) { return 0; }
static commit_group read_commit(reader& r, session_id session, std::uint8_t flags) {
  if (flags != 0) r.fail();
  return commit_group{session};
}

static std::uint8_t write_body(writer& w, const grant& m) {
  w.u64(m.receiver.value);
  w.u64(m.id);
  w.u8(static_cast<std::uint8_t>(m.lane));
  w.u8(static_cast<std::uint8_t>(m.fabric.size()));
  w.bytes(m.fabric);
  w.u64(m.address);
  w.u64(m.key);
  write_ranges(w, m.segments);
  return 0;
}
static grant read_grant(reader& r, session_id session, std::uint8_t flags) {
  grant m;
  m.session = session;
  if (flags != 0) r.fail();
  m.receiver = receiver_id{r.u64()};
  m.id = r.u64();
  const auto lane = r.u8();
  const std::size_t n = r.u8();
  if (m.id == 0 || lane < static_cast<std::uint8_t>(repair_lane::tcp) || lane > static_cast<std::uint8_t>(repair_lane::verbs) || n == 0 || n > fabric_address_bytes_max) return r.fail(), m;
  m.lane = static_cast<repair_lane>(lane);
  const auto fabric = r.bytes(n);
  m.fabric.assign(fabric.begin(), fabric.end());
  m.address = r.u64();
  m.key = r.u64();
  m.segments = read_ranges(r, grant_ranges_max);
  return m;
}

static std::uint8_t write_body(writer& w, const release& m) {
  w.u64(m.token.value);
  w.u8(static_cast<std::uint8_t>(m.ids.size()));
  for (const std::uint64_t id : m.ids) w.u64(id);
  write_text(w, m.reason, reason_bytes_max);
  return m.failed ? 1 : 0;
}
static release read_release(reader& r, session_id session, std::uint8_t flags) {
  release m;
  m.session = session;
  m.failed = flags & 1;
  if (flags & ~1) r.fail();
  m.token = join_token{r.u64()};
  const std::size_t n = r.u8();
  if (n == 0 || n > released_max) return r.fail(), m;
  for (std::size_t i = 0; i < n && r.ok(); ++i) m.ids.push_back(r.u64());
  m.reason = read_text(r, reason_bytes_max);
  return m;
}

// --- dispatch -----------------------------------------------------------------------------------------------------------

static constexpr packet_type type_for(const announce&) { return packet_type::announce; }
static constexpr packet_type type_for(const catalogue_chunk&) { return packet_type::catalogue_chunk; }
static constexpr packet_type type_for(const query&) { return packet_type::query; }
static constexpr packet_type type_for(const join&) { return packet_type::join; }
static constexpr packet_type type_for(const welcome&) { return packet_type::welcome; }
static constexpr packet_type type_for(const status&) { return packet_type::status; }
static constexpr packet_type type_for(const nack&) { return packet_type::nack; }
static constexpr packet_type type_for(const done&) { return packet_type::done; }
static constexpr packet_type type_for(const farewell&) { return packet_type::farewell; }
static constexpr packet_type type_for(const repair_notice&) { return packet_type::repair_notice; }
static constexpr packet_type type_for(const close_session&) { return packet_type::close; }
static constexpr packet_type type_for(const commit_group&) { return packet_type::commit; }
static constexpr packet_type type_for(const grant&) { return packet_type::grant; }
static constexpr packet_type type_for(const release&) { return packet_type::release; }

static session_id session_for(const query&) { return session_id{0}; }
template <class M>
static session_id session_for(const M& m) { return m.session; }

std::vector<std::byte> write_message(const message& m, std::size_t pad_to) {
  std::vector<std::byte> out;
  out.reserve(std::max<std::size_t>(pad_to, 256));
  out.resize(control_header_bytes);
  writer w(out);
  std::vector<std::byte> head;
  writer h(head);
  std::visit([&](const auto& body) {
    const std::uint8_t flags = write_body(w, body);
    h.u8(static_cast<std::uint8_t>(protocol_version << 4 | static_cast<unsigned>(type_for(body))));
    h.u8(flags);
    h.u16(static_cast<std::uint16_t>(out.size()));
    h.u32(0);
    h.u64(session_for(body).value);
  }, m);
  std::copy(head.begin(), head.end(), out.begin());
  const std::uint32_t check = check_of(out);
  for (std::size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<std::byte>(check >> (24 - 8 * i) & 0xff);
  if (out.size() < pad_to) out.resize(pad_to);
  return out;
}

std::optional<session_id> peek_session(std::span<const std::byte> datagram) {
  if (datagram.size() < control_header_bytes) return std::nullopt;
  reader r(datagram.subspan(8));
  return session_id{r.u64()};
}

std::optional<message> parse_message(std::span<const std::byte> datagram) {
  const auto type = type_of(datagram);
  if (!type || *type == packet_type::data || datagram.size() < control_header_bytes) return std::nullopt;
  reader head(datagram);
  head.u8();
  const std::uint8_t flags = head.u8();
  const std::size_t length = head.u16();
  const std::uint32_t check = head.u32();
  const session_id session{head.u64()};
  if (length < control_header_bytes || length > datagram.size()) return std::nullopt;
  const auto padding = datagram.subspan(length);
  if (!std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; })) return std::nullopt;

  XXH3_state_t state;   // the check without its own field, as if it were zero
  XXH3_64bits_reset(&state);
  static constexpr std::byte zero[4]{};
  XXH3_64bits_update(&state, datagram.data(), 4);
  XXH3_64bits_update(&state, zero, 4);
  XXH3_64bits_update(&state, datagram.data() + 8, length - 8);
  if (static_cast<std::uint32_t>(XXH3_64bits_digest(&state)) != check) return std::nullopt;

  if (*type == packet_type::query && session.value != 0) return std::nullopt;
  reader r(datagram.subspan(control_header_bytes, length - control_header_bytes));
  message m;
  switch (*type) {
    case packet_type::announce: m = read_announce(r, session, flags); break;
    case packet_type::catalogue_chunk: m = read_catalogue_chunk(r, session, flags); break;
    case packet_type::query: m = read_query(r, flags); break;
    case packet_type::join: m = read_join(r, session, flags); break;
    case packet_type::welcome: m = read_welcome(r, session, flags); break;
    case packet_type::status: m = read_status(r, session, flags); break;
    case packet_type::nack: m = read_nack(r, session, flags); break;
    case packet_type::done: m = read_done(r, session, flags); break;
    case packet_type::farewell: m = read_farewell(r, session, flags); break;
    case packet_type::repair_notice: m = read_repair_notice(r, session, flags); break;
    case packet_type::close: m = read_close(r, session, flags); break;
    case packet_type::commit: m = read_commit(r, session, flags); break;
    case packet_type::grant: m = read_grant(r, session, flags); break;
    case packet_type::release: m = read_release(r, session, flags); break;
    case packet_type::data: return std::nullopt;
  }
  if (!r.done()) return std::nullopt;
  return m;
}

}  // namespace ddf
