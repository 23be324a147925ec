// The lane between processes of one host: reads out of another process's memory (process_vm_readv(2)), with no help from it.
//
// Not libfabric's shm provider (1.17): it holds a lock in shared memory while it copies, so that a reader that is killed leaves
// whoever it read from, and all other readers, waiting for ever; it needs the other side's thread, takes over signals, and leaves
// 16 MB in /dev/shm behind for each process that is killed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "transports/fabric/fabric_calls.hpp"

namespace ddf {

inline constexpr const char* process_provider = "process_vm_readv";

/// What a process is found by. The nonce tells it from another that has its number later.
struct process_name {
  static constexpr std::size_t wire_size = 16;
  std::int32_t pid = 0;
  std::uint64_t nonce = 0;
};
std::vector<std::byte> write_process_name(const process_name& n);
std::optional<process_name> parse_process_name(std::span<const std::byte> bytes);

/// Beside memory that may be read; its address is the key. Readers look at it before they believe what they read.
struct process_card {
  static constexpr std::uint64_t valid = 0x6472616320666464;   // "ddf card"
  process_card(std::uint64_t n, std::span<const std::byte> memory) : nonce(n), address(reinterpret_cast<std::uintptr_t>(memory.data())), bytes(memory.size()) {}
  ~process_card() { magic.store(0); }
  std::atomic<std::uint64_t> magic = valid;
  const std::uint64_t nonce, address, bytes;
};
static_assert(sizeof(process_card) == 32 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Whether processes may read each other's memory here. Errors: unsupported, with what forbids it.
result<void> may_read_processes(fabric_calls& calls);

/// Fills `into` from the memory of a process.
/// Output: 0, or an errno: ESRCH: it has ended; EPERM; EFAULT, EKEYREJECTED: not memory that it lets be read. Then `into` is undefined.
int read_process(fabric_calls& calls, const process_name& from, std::uint64_t address, std::uint64_t key, std::span<std::byte> into);

}  // namespace ddf
