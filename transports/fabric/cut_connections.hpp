// Ends TCP connections of this process that a library below owns.
#pragma once
#include <cstddef>
#include <span>

namespace ddf {

/// Shuts down, both ways, the connections to a peer. Whoever owns them sees the peer's end, and what the peer still sends is dropped.
///
/// Why: libfabric 1.17 has no way to take a read back. Removing the peer's address closes the connection, but if an answer has
/// arrived in part, its buffer is freed twice (prov/tcp, tcpx_ep_flush_all_queues), and the process crashes. The end of a connection
/// seen from the socket takes the path that a peer's death takes, which is sound.
///
/// All connections of the process to that address end, those of other endpoints too, which then connect anew.
///
/// Input:  the socket addresses of our endpoint and of the peer's. Those we opened to just that address; when there are none,
///         those that came to our endpoint from the peer's host.
/// Output: how many. Cost: a few system calls per open file.
std::size_t cut_connections(std::span<const std::byte> local, std::span<const std::byte> peer);

}  // namespace ddf
