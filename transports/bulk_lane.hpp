// What carries DATA packets between a sender and its group; control messages, and what is sent to one receiver, go by sockets.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <ddf/error.hpp>
#include "transports/udp/datagrams.hpp"

namespace ddf {

enum class sent : std::uint8_t { all, would_block, queue_full, failed };

/// Towards one group, by one interface.
class bulk_sender {
 public:
  virtual ~bulk_sender() = default;

  /// Several datagrams, each a header and a payload. Never blocks; what was taken has been copied.
  /// Output: how many were taken, from the first on; `outcome` tells why not all, `error` the system's code.
  virtual std::size_t send_batch(std::span<const iovec> headers, std::span<const iovec> payloads, sent& outcome, int* error) = 0;
  /// The largest that leaves whole, and what stands before and behind each on the wire.
  virtual std::uint32_t datagram_bytes() const = 0;
  virtual std::uint32_t header_bytes() const = 0;
  /// Readable when there is room again after would_block; -1: wait for the rail's socket to become writable.
  virtual int room_fd() const { return -1; }
  /// Looks for what happens to a lane while nothing is sent. Cheap; a few times a second.
  virtual void look() {}
  /// What ended it: it has to be opened again. Null: it works.
  virtual const error* problem() const { return nullptr; }
};

/// From one group, or to one socket.
class bulk_receiver {
 public:
  virtual ~bulk_receiver() = default;

  /// Readable when there may be something, provided that the last receive() found nothing.
  virtual int fd() const = 0;
  /// Takes what is there, up to a bounded batch, without blocking, and hands it to `handler`, what came as one at once. It lives
  /// until the next call.
  /// Output: how many packets there were; 0: none.
  virtual std::size_t receive(const std::function<void(const datagrams&)>& handler) = 0;
};

}  // namespace ddf
