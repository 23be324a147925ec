// The payloads of a record's operations, without the operation byte and the tail (bytes behind the last whole element).
//
// Encoders append to `out`. Decoders are given exactly the payload and return false unless it makes the target of that base; what they
// wrote by then is any bytes. `n` counts elements. `target` may be `base` itself, and overlaps it in no other way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/delta/element.hpp"
#include "codecs/delta/workspace.hpp"

namespace ddf::delta {

/// One pair of elements, as many of base and target.
struct pair_view {
  delta::element element;
  const std::byte* base;
  const std::byte* target;
  std::size_t n;
};

/// w.change_masks of the pair and their count must be given by who calls the sparse ones and gather.
void encode_sparse_context(workspace& w, const pair_view& p, std::size_t changed, std::vector<std::byte>& out);
void encode_sparse_fast(workspace& w, const pair_view& p, std::size_t changed, std::vector<std::byte>& out);
void encode_gather(workspace& w, const pair_view& p, std::vector<std::byte>& out);
void encode_dense(workspace& w, const pair_view& p, std::vector<std::byte>& out);
void encode_planes(workspace& w, element e, const std::byte* target, std::size_t n, std::vector<std::byte>& out);
/// Returns false, and leaves out as it was, when zstd needs `bytes_max` or more.
bool encode_prefix(workspace& w, std::span<const std::byte> base, std::span<const std::byte> target, std::size_t bytes_max, std::vector<std::byte>& out);

bool decode_sparse_context(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n);
bool decode_sparse_fast(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n);
bool decode_gather(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n);
bool decode_dense(workspace& w, element e, const std::byte* base, std::span<const std::byte> payload, std::byte* target, std::size_t n);
bool decode_planes(workspace& w, element e, std::span<const std::byte> payload, std::byte* target, std::size_t n);
bool decode_prefix(workspace& w, std::span<const std::byte> base, std::span<const std::byte> payload, std::span<std::byte> target);

}  // namespace ddf::delta
