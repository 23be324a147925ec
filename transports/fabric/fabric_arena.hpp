// Memory to serve reads from, or to read into: slots of one size, registered once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include "transports/fabric/fabric_endpoint.hpp"

namespace ddf {

/// Used by one thread. Its bytes are gone with it, so it stays until its endpoint has gone or nobody reads any more.
class fabric_arena {
 public:
  struct slot {
    std::uint32_t index = 0;
    std::size_t offset = 0;            // in memory(), to read into it
    std::span<std::byte> bytes;
    std::uint64_t address = 0;         // what a remote reader asks for to get the first byte, with memory().key()
  };

  /// Input:  sizes above 0; a slot is made a multiple of 64 bytes. Huge pages are used where the system gives them.
  /// Errors: those of register_memory(); too_large when the memory cannot be mapped.
  static result<std::unique_ptr<fabric_arena>> make(fabric_endpoint& endpoint, std::size_t slot_bytes, std::uint32_t slots);
  fabric_arena(const fabric_arena&) = delete;
  fabric_arena& operator=(const fabric_arena&) = delete;

  /// The slot given back last, which the caches may still have; nothing when all are taken. Cost: O(1), no allocation.
  std::optional<slot> take();
  /// Once for each take(), when nobody reads from it or into it any more.
  void give_back(const slot& s);

  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  fabric_memory& memory() { return *memory_; }

 private:
  struct unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* p) const;
  };
  using mapping = std::unique_ptr<std::byte, unmap>;
  fabric_arena(mapping m, std::unique_ptr<fabric_memory> memory, std::size_t slot_bytes, std::uint32_t slots);

  const mapping mapping_;
  const std::unique_ptr<fabric_memory> memory_;
  const std::size_t slot_bytes_;
  std::vector<std::uint32_t> free_;
  std::vector<bool> taken_;
};

}  // namespace ddf
