// Bytes coded by how often each occurs: a static range coder (rANS) with the table in front.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/delta/workspace.hpp"

namespace ddf::delta {

using histogram = std::array<std::uint32_t, 256>;

histogram count_symbols(std::span<const std::uint8_t> symbols);

/// What entropy_encode() would need, in bits, with the table; a close estimate.
std::uint64_t entropy_bits(const histogram& h);

/// Appends `symbols`; never more than symbols.size() + 1 bytes. Their number is not part of it.
void entropy_encode(workspace& w, std::span<const std::uint8_t> symbols, std::vector<std::byte>& out);
void entropy_encode(workspace& w, std::span<const std::uint8_t> symbols, const histogram& h, std::vector<std::byte>& out);

/// Takes exactly symbols.size() symbols from the front of `in`; false when they are not there.
bool entropy_decode(workspace& w, std::span<const std::byte>& in, std::span<std::uint8_t> symbols);

// Of the format, shared with the kernels.
inline constexpr unsigned rans_lanes_max = 16;
inline constexpr std::uint32_t rans_low = 1 << 16;   // a state is at least this, and gives and takes 16 bits at a time
constexpr unsigned rans_lanes(std::size_t symbols) { return symbols < 256 ? 1 : symbols < 4096 ? 4 : rans_lanes_max; }
/// A table's entry: symbol | frequency - 1 << 8 | offset of the slot in its symbol's range << 20.
constexpr std::uint32_t rans_entry(std::uint32_t symbol, std::uint32_t frequency, std::uint32_t offset) { return symbol | (frequency - 1) << 8 | offset << 20; }

}  // namespace ddf::delta
