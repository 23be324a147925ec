// How a host is looked at: the one place where doctor reads files and asks the kernel, behind a seam for tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <ddf/doctor.hpp>
#include "lib/runtime/rails.hpp"

namespace ddf {

/// What a network card's driver says of it; zero and empty where it says nothing.
struct card_facts {
  std::string driver;
  std::uint64_t bits_per_s = 0;
  std::uint32_t receive_ring = 0, receive_ring_max = 0;
};

struct socket_facts {
  std::uint64_t receive_buffer = 0, send_buffer = 0;   // bytes granted; 0: no socket
  bool gso = false, gro = false;
};

class host_access {
 public:
  /// `root`: the folder that stands for "/" in the paths below; empty: "/".
  explicit host_access(std::string root = {}) : root_(std::move(root)) {}
  virtual ~host_access() = default;
  host_access(const host_access&) = delete;
  host_access& operator=(const host_access&) = delete;

  // Files, any of which may be missing, huge, or something else than a file. Never blocks on a pipe; follows links.
  /// The first `bytes_max` bytes without blanks at the end; empty when there is no such file.
  std::string text(const std::string& path, std::size_t bytes_max = 4096) const;
  /// The whole text as a number in digits. Output: none for anything else, also beyond 64 bits.
  std::optional<std::uint64_t> number(const std::string& path) const;
  /// The names in a folder, sorted, of the first `names_max` that the system lists; without those that begin with a dot.
  std::vector<std::string> names(const std::string& path, std::size_t names_max) const;
  /// Where a link leads, as it is written; empty when it is none.
  std::string link(const std::string& path) const;
  bool exists(const std::string& path) const;
  bool readable(const std::string& path) const;
  /// Whether this user may open it to read and write.
  bool usable(const std::string& path) const;

  // The kernel. A test answers in its place.
  virtual result<std::vector<network_interface>> interfaces();
  virtual card_facts card(const std::string& interface);
  virtual socket_facts sockets(bool v6, std::uint32_t buffer_bytes);
  /// Whether a socket of the group can be opened. Joins nothing.
  virtual result<void> open_group(const endpoint& group);
  /// The address that the system's routes would send from to `group`; none when there is no route. Sends nothing.
  virtual std::optional<endpoint> route(const endpoint& group);
  virtual std::uint64_t memlock_bytes();
  /// Whether the kernel has an nftables ruleset that it shows to us.
  virtual firewall_facts firewall();
  virtual result<std::string> lane(repair_lane lane, const std::string& local_address);

 private:
  std::string root_;
};

/// The value behind `key` in text of lines as "MemTotal:  16 kB" or "CapEff: 00ff"; empty when there is none.
std::string field(const std::string& text, std::string_view key);

}  // namespace ddf
