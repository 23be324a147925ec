#include "transports/fabric/fabric_arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <limits>

#include "lib/model/assert.hpp"

namespace ddf {

void fabric_arena::unmap::operator()(std::byte* p) const { ::munmap(p, bytes); }

result<std::unique_ptr<fabric_arena>> fabric_arena::make(fabric_endpoint& endpoint, std::size_t slot_bytes, std::uint32_t slots) {
  constexpr std::size_t line = 64;
  if (slot_bytes == 0 || slots == 0) return fail(errc::invalid_argument, "an arena needs slots");
  if (slot_bytes > std::numeric_limits<std::size_t>::max() / 2 / slots) return fail(errc::too_large, "an arena of more bytes than there are addresses");
  slot_bytes = (slot_bytes + line - 1) / line * line;
  const std::size_t bytes = slot_bytes * slots;
  void* const p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return fail(errc::too_large, "mapping " + std::to_string(bytes) + " bytes for an arena; use fewer or smaller slots", errno);
  mapping m(static_cast<std::byte*>(p), unmap{bytes});
  ::madvise(p, bytes, MADV_HUGEPAGE);   // advice: fewer entries in the NIC's and the CPU's tables
  auto memory = endpoint.register_memory({m.get(), bytes});
  if (!memory) return tl::unexpected(memory.error());
  return std::unique_ptr<fabric_arena>(new fabric_arena(std::move(m), std::move(*memory), slot_bytes, slots));
}

fabric_arena::fabric_arena(mapping m, std::unique_ptr<fabric_memory> memory, std::size_t slot_bytes, std::uint32_t slots)
    : mapping_(std::move(m)), memory_(std::move(memory)), slot_bytes_(slot_bytes), taken_(slots) {
  free_.reserve(slots);
  for (std::uint32_t i = slots; i > 0; --i) free_.push_back(i - 1);
}

std::optional<fabric_arena::slot> fabric_arena::take() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t i = free_.back();
  free_.pop_back();
  taken_[i] = true;
  const std::size_t offset = i * slot_bytes_;
  return slot{i, offset, memory_->bytes().subspan(offset, slot_bytes_), memory_->address() + offset};
}

void fabric_arena::give_back(const slot& s) {
  DDF_ASSERT(s.index < taken_.size() && taken_[s.index]);
  taken_[s.index] = false;
  free_.push_back(s.index);
}

}  // namespace ddf
