// Safetensors files and objects made of them, in memory.
#pragma once
#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codecs/delta/block.hpp"
#include "codecs/delta/workspace.hpp"
#include "lib/model/prng.hpp"

namespace ddf::test {

using bytes_of = std::vector<std::byte>;

inline bytes_of noise(std::uint64_t seed, std::size_t n) {
  prng rng(seed);
  bytes_of out(n);
  for (auto& b : out) b = static_cast<std::byte>(rng.next() >> 40 & 0xff);
  return out;
}

/// Weights as they are distributed in bf16: few exponents, any mantissa.
inline bytes_of bf16_weights(std::uint64_t seed, std::size_t elements) {
  prng rng(seed);
  bytes_of out;
  out.reserve(2 * elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t r = rng.next();
    const auto exponent = static_cast<unsigned>(120 - std::countr_zero(r | 1u << 20));
    const auto v = static_cast<unsigned>(r >> 63 << 15) | exponent << 7 | static_cast<unsigned>(r >> 30 & 0x7f);
    out.push_back(static_cast<std::byte>(v));
    out.push_back(static_cast<std::byte>(v >> 8));
  }
  return out;
}

/// `share` of the bf16 elements moved by one unit in the last place.
inline bytes_of stepped(bytes_of b, std::uint64_t seed, double share) {
  prng rng(seed);
  for (std::size_t i = 0; i + 2 <= b.size(); i += 2) {
    if (rng.uniform() >= share) continue;
    const auto v = static_cast<unsigned>(b[i]) | static_cast<unsigned>(b[i + 1]) << 8;
    const unsigned w = rng.next() & 1 ? v + 1 : v - 1;
    b[i] = static_cast<std::byte>(w);
    b[i + 1] = static_cast<std::byte>(w >> 8);
  }
  return b;
}

struct weights {
  std::string name, dtype, shape;   // shape as JSON: "[2,3]"
  bytes_of bytes;
};

inline bytes_of as_bytes(std::string_view text) {
  const auto b = std::as_bytes(std::span(text));
  return {b.begin(), b.end()};
}

inline bytes_of with_length(std::string_view header, std::span<const std::byte> data = {}) {
  bytes_of out;
  for (unsigned i = 0; i < 8; ++i) out.push_back(static_cast<std::byte>(std::uint64_t(header.size()) >> (8 * i)));
  const auto h = as_bytes(header);
  out.insert(out.end(), h.begin(), h.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

/// A file as the reference writer makes it, padded to 8 bytes.
inline bytes_of safetensors(const std::vector<weights>& tensors, std::string_view metadata = "") {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"";
  if (!metadata.empty()) header += ",\"note\":\"" + std::string(metadata) + "\"";
  header += "}";
  bytes_of data;
  for (const weights& t : tensors) {
    header += ",\"" + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":" + t.shape + ",\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + t.bytes.size()) + "]}";
    data.insert(data.end(), t.bytes.begin(), t.bytes.end());
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  return with_length(header, data);
}

inline weights bf16_tensor(std::string name, std::uint64_t seed, std::size_t elements) {
  return {std::move(name), "BF16", "[" + std::to_string(elements) + "]", bf16_weights(seed, elements)};
}

struct object {   // an object with its bytes
  manifest is;
  bytes_of bytes;

  delta::read_function reads() const {
    return [this](std::uint64_t offset, std::span<std::byte> out) -> result<void> {
      if (out.size() > bytes.size() || offset > bytes.size() - out.size()) return fail(errc::io, "read beyond the object");
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
      return {};
    };
  }
  std::vector<delta::tensor> map(std::vector<std::string>* warnings = nullptr) const { return delta::tensor_map_of(is, reads(), warnings).value(); }
};

inline object file_object(bytes_of bytes, std::string name = "model.safetensors") {
  object o;
  o.is.name = std::move(name);
  o.is.parts = {{"", bytes.size()}};
  o.bytes = std::move(bytes);
  return o;
}

inline object folder_object(const std::vector<std::pair<std::string, bytes_of>>& files) {
  object o;
  o.is.name = "model";
  o.is.kind = object_kind::folder;
  for (const auto& [name, bytes] : files) {
    o.is.parts.push_back({name, bytes.size()});
    o.bytes.insert(o.bytes.end(), bytes.begin(), bytes.end());
  }
  return o;
}

class memory_base final : public delta::base_bytes {
 public:
  explicit memory_base(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>&) const override {
    if (bytes > bytes_.size() || offset > bytes_.size() - bytes) return fail(errc::io, "read beyond the base");
    return bytes_.subspan(static_cast<std::size_t>(offset), bytes);
  }

 private:
  std::span<const std::byte> bytes_;
};

inline std::vector<delta::region> regions_of(const object& base, const object& target) {
  return delta::align(base.map(), base.reads(), target.map(), target.reads()).value();
}

/// What is wrong with regions; empty when nothing is.
inline std::string fault(const std::vector<delta::region>& regions, std::uint64_t target_bytes, std::uint64_t base_bytes) {
  std::uint64_t end = 0;
  for (const auto& r : regions) {
    if (r.target_offset != end) return "a gap or an overlap at " + std::to_string(end);
    if (r.bytes == 0) return "an empty region";
    end += r.bytes;
    if (r.base_offset == delta::region::no_base) continue;
    if (r.bytes > base_bytes || r.base_offset > base_bytes - r.bytes) return "a base extent outside the base at " + std::to_string(r.target_offset);
  }
  return end == target_bytes ? "" : "the end is not covered";
}

/// Bytes of the target that its regions find at the same place of the base.
inline std::uint64_t same_bytes(const std::vector<delta::region>& regions, const object& base, const object& target) {
  std::uint64_t n = 0;
  for (const auto& r : regions)
    for (std::uint64_t i = 0; r.base_offset != delta::region::no_base && i < r.bytes; ++i) n += target.bytes[r.target_offset + i] == base.bytes[r.base_offset + i];
  return n;
}

struct delta_made {
  std::uint64_t bytes = 0;
  delta::account how;
  bool equal = false;   // applied, it gives the target
};

/// Encodes and applies a whole object in blocks.
inline delta_made delta_of(const object& base, const object& target, std::uint32_t block_bytes = 1 << 20, delta::profile p = delta::profile::tight) {
  const auto regions = regions_of(base, target);
  const memory_base old(base.bytes);
  delta::workspace w;
  delta_made made;
  bytes_of again(target.bytes.size());
  made.equal = true;
  for (std::size_t at = 0; at < target.bytes.size(); at += block_bytes) {
    const std::size_t n = std::min<std::size_t>(block_bytes, target.bytes.size() - at);
    bytes_of payload;
    made.equal = delta::encode_block(w, at, std::span(target.bytes).subspan(at, n), regions, old, p, payload, &made.how).has_value() && made.equal;
    made.bytes += payload.size();
    made.equal = delta::apply_block(w, at, payload, old, std::span(again).subspan(at, n)).has_value() && made.equal;
  }
  made.equal = made.equal && again == target.bytes;
  return made;
}

}  // namespace ddf::test
