// The catalogue as bytes: the manifests of a session, without their digest tables.
#pragma once
#include <cstddef>
#include <span>
#include <vector>
#include <ddf/error.hpp>
#include "lib/model/manifest.hpp"

namespace ddf {

/// Layout, all big-endian: objects(32); per object: name length(8) name version(64) kind(8) algorithm(8) element bytes(8)
/// log2 of block bytes(8) parts(32); per part: name length(16) name size(64) mode(16) directory(8).
std::vector<std::byte> write_catalogue(const catalogue& c);

/// Errors: invalid_argument or too_large; every length is held against what is left before anything is allocated,
/// and the result keeps every rule of check_catalogue(). What parses writes back to the same bytes.
result<catalogue> parse_catalogue(std::span<const std::byte> bytes);

}  // namespace ddf
