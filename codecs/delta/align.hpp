// Which bytes of a base the bytes of a target are made from.
#pragma once
#include <cstdint>
#include <vector>
#include "codecs/delta/tensor_map.hpp"

namespace ddf::delta {

struct region {   // a stretch of the target and where its base begins
  static constexpr std::uint64_t no_base = ~std::uint64_t(0);
  std::uint64_t target_offset = 0, bytes = 0;
  std::uint64_t base_offset = no_base;
  delta::element element = delta::element::bytes;
  bool operator==(const region&) const = default;
};

/// Regions in ascending, gapless order that cover the target; a base extent always lies within the base.
/// Tensors are matched by name, element and size, wherever they stand; neighbours that keep their distance and their element's width and kind
/// become one region. What has no such partner (and untyped parts whose bytes moved) is looked for by anchors: 8-byte keys
/// sampled from the base, found in windows of the target, voted for by their shift.
/// Cost: reads headers, and samples of untyped parts: 20 ms for 256 MiB; bounded memory.
result<std::vector<region>> align(const std::vector<tensor>& base, const read_function& read_base,
                                  const std::vector<tensor>& target, const read_function& read_target);

/// How alike two versions or objects are, 0 to 1: the share of the target that has a partner of equal name, element and size in
/// the base, times the share of sampled bytes that are equal there. A fine-tune and its base model give 0.4 or more, two trainings of one
/// architecture 0.1. Cost: 64 samples of 4 KiB.
double resemblance(const std::vector<tensor>& base, const read_function& read_base, const std::vector<tensor>& target, const read_function& read_target);

}  // namespace ddf::delta
