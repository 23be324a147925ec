// Which bytes of an object are which tensor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>
#include <ddf/error.hpp>
#include "codecs/delta/element.hpp"
#include "lib/model/manifest.hpp"

namespace ddf::delta {

struct tensor {
  std::string name;               // key by which versions are matched; "" for the only untyped part of an object
  std::uint64_t offset = 0, bytes = 0;   // in the object: its parts one after the other
  delta::element element = delta::element::bytes;
  std::vector<std::uint64_t> shape;      // of a safetensors tensor
};

/// Reads bytes of an object at an offset that counts through its parts. Errors: as the source's.
using read_function = std::function<result<void>(std::uint64_t offset, std::span<std::byte> out)>;

/// The tensors of an object in ascending, gapless order; together they cover it.
/// A part whose name ends in ".safetensors" (or any single unnamed part) and that parses as one is its header and its tensors; every other part is one untyped
/// tensor named by its path. A file that claims to be safetensors and is not (overlaps, holes, duplicate names, lengths
/// that do not fit the shape, a header over 100 MB) counts as untyped; `warnings` says why, by name.
/// Cost: reads the headers only.
result<std::vector<tensor>> tensor_map_of(const manifest& m, const read_function& read, std::vector<std::string>* warnings = nullptr);

/// The tensors of one safetensors file: the header as a part of its own (named "__header__"), then each tensor in file order, offsets within the file.
/// Input:  at least the whole header (8 bytes of length and the JSON); `file_bytes` of the whole file.
/// Errors: invalid_argument, naming the tensor and what is wrong.
result<std::vector<tensor>> parse_safetensors(std::span<const std::byte> head, std::uint64_t file_bytes);

}  // namespace ddf::delta
