// Catalogues for tests.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "lib/model/manifest.hpp"

namespace ddf::test {

inline manifest file(std::string name, std::uint64_t bytes, std::uint32_t block_bytes = limits::block_bytes_min) {
  manifest m;
  m.name = std::move(name);
  m.block_bytes = block_bytes;
  part p;
  p.size = bytes;
  m.parts.push_back(p);
  return m;
}

inline manifest folder(std::string name, const std::vector<std::uint64_t>& sizes, std::uint32_t block_bytes = limits::block_bytes_min) {
  manifest m;
  m.name = std::move(name);
  m.kind = object_kind::folder;
  m.block_bytes = block_bytes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    part p;
    p.name = "d/" + std::to_string(i);
    p.size = sizes[i];
    m.parts.push_back(p);
  }
  return m;
}

}  // namespace ddf::test
