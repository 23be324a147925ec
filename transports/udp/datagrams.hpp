// Datagrams as a socket hands them over.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include "lib/model/endpoint.hpp"

namespace ddf {

struct datagrams {   // one datagram or several from one sender, one behind the other; the bytes live until the next receive()
  endpoint from;
  unsigned interface = 0;          // index of the interface they came in by; 0 unknown
  std::span<const std::byte> bytes;
  std::size_t datagram_bytes = 0;  // of each, the last perhaps fewer

  template <class Handler>
  void each(Handler handle) const {
    for (std::size_t at = 0; at < bytes.size(); at += datagram_bytes) handle(bytes.subspan(at, std::min(datagram_bytes, bytes.size() - at)));
  }
};

}  // namespace ddf
