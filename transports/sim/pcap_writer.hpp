// Packets as a file for tcpdump and Wireshark.
#pragma once
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include "lib/model/endpoint.hpp"
#include "lib/model/time.hpp"

namespace ddf::sim {

class pcap_writer {   // nanosecond pcap, link type Ethernet; the headers in front of each datagram are made up
 public:
  /// Throws std::runtime_error when the file cannot be made.
  explicit pcap_writer(const std::string& path);
  void write(time_point when, const endpoint& from, const endpoint& to, std::span<const std::byte> datagram);

 private:
  struct closer {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, closer> file_;
};

}  // namespace ddf::sim
