#include "transports/sim/pcap_writer.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "lib/model/assert.hpp"
#include "lib/wire/cursor.hpp"

namespace ddf::sim {

pcap_writer::pcap_writer(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) throw std::runtime_error("cannot write " + path);
  std::vector<std::byte> head;
  writer w(head);
  w.u32(0xa1b23c4d);   // nanoseconds, and the byte order of what follows
  w.u16(2), w.u16(4);
  w.u32(0), w.u32(0);
  w.u32(65535);        // longest record
  w.u32(1);            // Ethernet
  std::fwrite(head.data(), 1, head.size(), file_.get());
}

static void write_mac(writer& w, const endpoint& e) {   // RFC 1112 §6.4 for groups, locally administered for hosts
  const bool group = is_multicast(e);
  w.u8(group ? 0x01 : 0x02), w.u8(0x00), w.u8(group ? 0x5e : 0x00);
  w.u8(static_cast<std::uint8_t>(group ? e.address[1] & 0x7f : e.address[1])), w.u8(e.address[2]), w.u8(e.address[3]);
}

void pcap_writer::write(time_point when, const endpoint& from, const endpoint& to, std::span<const std::byte> datagram) {
  DDF_ASSERT(!from.v6 && !to.v6);
  const std::size_t ip_bytes = 28 + datagram.size();
  std::vector<std::byte> ip;
  writer h(ip);
  h.u8(0x45), h.u8(0), h.u16(static_cast<std::uint16_t>(ip_bytes)), h.u32(0x4000), h.u8(1), h.u8(17), h.u16(0);
  for (const endpoint* e : {&from, &to}) h.bytes(std::as_bytes(std::span(e->address).first(4)));
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += std::to_integer<std::uint32_t>(ip[i]) << 8 | std::to_integer<std::uint32_t>(ip[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  ip[10] = std::byte(~sum >> 8 & 0xff), ip[11] = std::byte(~sum & 0xff);

  const auto total = static_cast<std::uint32_t>(14 + ip_bytes);
  const auto ns = static_cast<std::uint64_t>(when.time_since_epoch().count());
  std::vector<std::byte> record;
  writer w(record);
  w.u32(static_cast<std::uint32_t>(ns / 1'000'000'000)), w.u32(static_cast<std::uint32_t>(ns % 1'000'000'000)), w.u32(total), w.u32(total);
  write_mac(w, to), write_mac(w, from), w.u16(0x0800);
  w.bytes(ip);
  w.u16(from.port), w.u16(to.port), w.u16(static_cast<std::uint16_t>(8 + datagram.size())), w.u16(0);   // no UDP checksum: allowed, RFC 768
  w.bytes(datagram);
  std::fwrite(record.data(), 1, record.size(), file_.get());
}

}  // namespace ddf::sim
