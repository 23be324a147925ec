// The payloads of a record's operations, without the operation byte and the tail (bytes behind the last whole element).
//
// Encoders append to `out`. Decoders are given exactly the payload and return false unless it makes the target of that base; what they
// wrote by then is any bytes. `n` counts elements. `target` may be `base` itself, and overlaps it in no other way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/delta/changes.hpp"
#include "codecs/delta/element.hpp"
#include "codecs/delta/workspace.hpp"

namespace ddf::delta {

/// The first two need the changes listed and located, or listed; gather their masks (changes.hpp).
void encode_sparse_context(workspace& w, const pair_view& p, const change_set& s, std::vector<std::byte>& out);
void encode_sparse_fast(workspace& w, const pair_view& p, const change_set& s, std::vector<std::byte>& out);
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
