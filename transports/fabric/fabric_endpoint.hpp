// One-sided reads through libfabric: a receiver that lacks bytes reads them out of the memory of whoever has them.
//
// An endpoint both reads and is read from, over one provider: tcp (sockets), verbs (RDMA) or shm (processes of this host, which is
// not libfabric's: process_memory.hpp says why). It has one thread, which gives reads to the provider, takes in what ended and
// answers remote readers: these stall when nobody looks.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <ddf/options.hpp>
#include "lib/model/lane_set.hpp"
#include "transports/fabric/fabric_calls.hpp"

namespace ddf {

inline constexpr std::size_t fabric_piece_bytes = 1 << 20;   // what a read is cut into; less where the provider takes less

struct fabric_options {
  repair_lane lane = repair_lane::tcp;      // tcp, shm or verbs
  std::string local_address;                // numeric, of the interface to use; empty: the provider's choice; ignored for shm
  std::uint16_t local_port = 0;             // to be reached at; 0: any; ignored for shm
  std::uint32_t outstanding_max = 64;       // operations given to the provider at once; no peer gets more than a quarter
  std::uint32_t peers_max = 1024;           // connections, opened on demand; above it the least recently used idle one is dropped
  std::size_t waiting_max = 4096;           // reads that are not answered yet; more are refused
};

class fabric_endpoint;
class fabric_handles;
struct process_card;

/// Memory that is read into, or that others read from. May outlive its endpoint.
/// Once it is gone new readers are refused. Who was being served may still be sent bytes, even after a read was answered over there: the
/// bytes stay mapped as long as the endpoint.
class fabric_memory {
 public:
  ~fabric_memory();
  fabric_memory(const fabric_memory&) = delete;
  fabric_memory& operator=(const fabric_memory&) = delete;

  std::uint64_t key() const { return key_; }            // 8 bytes on the wire; unpredictable unless the provider makes it
  std::uint64_t address() const { return address_; }    // what a remote reader asks for to get the first byte: a pointer, or 0
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class fabric_endpoint;
  friend class fabric_progress;
  fabric_memory(std::shared_ptr<fabric_handles> handles, std::span<std::byte> bytes);
  const std::shared_ptr<fabric_handles> handles_;   // what it is registered with stays as long
  const std::span<std::byte> bytes_;
  fid_mr* region_ = nullptr;
  std::unique_ptr<process_card> card_;   // instead, between processes
  void* descriptor_ = nullptr;   // for the provider; null when it does not ask for one
  std::uint64_t key_ = 0, address_ = 0;
};

struct remote_read {
  std::vector<std::byte> peer;               // fabric_endpoint::address() of who has the bytes
  std::uint64_t address = 0, key = 0;        // there: fabric_memory::address() plus an offset, fabric_memory::key()
  fabric_memory* into = nullptr;             // here, of the same endpoint; stays until the read is answered
  std::size_t offset = 0, bytes = 0;
  std::chrono::nanoseconds deadline{};       // from now
};

class fabric_endpoint {
 public:
  using answer = std::function<void(result<void>)>;

  /// Errors: unsupported, invalid_argument, too_large (memory, files), refused, network; the text has the provider and the cure.
  /// Cost:   the first one in a process loads libfabric: some 10 ms.
  static result<std::unique_ptr<fabric_endpoint>> open(const fabric_options& options, fabric_calls& calls = libfabric());
  /// Every read has been answered (interrupted) and its callback has returned. Waits for that, seldom longer than a second.
  /// Not from a callback.
  ~fabric_endpoint();
  fabric_endpoint(const fabric_endpoint&) = delete;
  fabric_endpoint& operator=(const fabric_endpoint&) = delete;

  /// For the other side; at most fabric_address_bytes_max bytes.
  std::span<const std::byte> address() const;
  const std::string& provider() const;   // "tcp;ofi_rxm"; of shm "process_vm_readv"

  /// For arenas: few and large. Any thread. Errors: too_large (memory that may be locked: `ulimit -l`), invalid_argument, refused.
  result<std::unique_ptr<fabric_memory>> register_memory(std::span<std::byte> bytes);

  /// Reads. Any thread, a callback too.
  ///
  /// Output: `done` is called once, on the endpoint's thread; when it is, nothing writes to the memory any more. It must be short.
  ///         What cannot be taken (no bytes, beyond `into`: invalid_argument; waiting_max: too_large; after the end: interrupted) is
  ///         answered at once, by the calling thread.
  /// Errors: network (ETIMEDOUT by the deadline), refused (key or range, where the provider says so), interrupted.
  /// Time:   a peer that falls silent costs the deadline and up to 250 ms: what it may still send must be kept from the memory first,
  ///         by ending the connection; other reads from it go on over a new one. Where that does not help, the answer waits until
  ///         the provider is done with the memory (counters::held), at the latest until the endpoint is closed.
  void read(remote_read r, answer done);

  struct counters {
    std::uint64_t reads = 0, read_bytes = 0;    // answered well
    std::uint64_t splits = 0;                   // operations beyond the first of a read
    std::uint64_t failed = 0, timed_out = 0;    // answered with an error; of these by the deadline
    std::uint64_t refused = 0;                  // not taken
    std::uint64_t connections = 0;              // opened, again too
    std::uint64_t dropped = 0;                  // idle connections closed to make room
    std::uint64_t cut = 0;                      // connections ended because a peer fell silent
    std::uint64_t held = 0;                     // answers that waited for the provider beyond that
    std::uint64_t busy = 0;                     // times the provider could not take an operation
    std::uint64_t strays = 0;                   // completions of nothing that was asked for
    std::uint64_t looks = 0, waits = 0;         // times the thread looked for progress; times it slept
  };
  counters count() const;

 private:
  class thread;
  explicit fabric_endpoint(std::unique_ptr<thread> t);
  const std::unique_ptr<thread> thread_;
};

/// Whether a lane can be used on this host: the provider's name. The error says what is missing and the cure.
result<std::string> find_fabric(repair_lane lane, const std::string& local_address);

}  // namespace ddf
