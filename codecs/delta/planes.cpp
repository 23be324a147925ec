// planes: elements without a base, byte by byte from the most significant one, so that exponents stand together.
//
// Payload: for each byte of the element, the highest first, that byte of all elements (entropy.hpp). Those with an exponent are
// rotated left by one bit before, which takes the sign from above the exponent to below the mantissa.
#include <bit>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/element_class.hpp"
#include "codecs/delta/entropy.hpp"
#include "codecs/delta/number.hpp"
#include "codecs/delta/operations.hpp"

namespace ddf::delta {

static int rotation_of(element e) { return map_of(e).exponent_bits != 0 ? 1 : 0; }

void encode_planes(workspace& w, element e, const std::byte* target, std::size_t n, std::vector<std::byte>& out) {
  std::uint8_t* const plane = at_least(w.symbols, n);
  with_width(e, [&]<class U>(U) {
    for (unsigned byte = sizeof(U); byte-- != 0;) {
      for (std::size_t i = 0; i < n; ++i) plane[i] = static_cast<std::uint8_t>(std::rotl(load<U>(target + i * sizeof(U)), rotation_of(e)) >> 8 * byte);
      entropy_encode(w, {plane, n}, out);
    }
  });
}

bool decode_planes(workspace& w, element e, std::span<const std::byte> in, std::byte* target, std::size_t n) {
  const std::size_t width = width_of(e);
  std::uint8_t* const planes = at_least(w.symbols, n * width);
  for (std::size_t p = 0; p < width; ++p)
    if (!entropy_decode(w, in, {planes + p * n, n})) return false;
  if (!in.empty()) return false;
  with_width(e, [&]<class U>(U) {
    const int rotation = rotation_of(e);
    for (std::size_t i = 0; i < n; ++i) {
      U v = 0;
      for (std::size_t p = 0; p < sizeof(U); ++p) v = static_cast<U>(std::uint64_t(v) << 8 | planes[p * n + i]);
      store(target + i * sizeof(U), std::rotr(v, rotation));
    }
  });
  return true;
}

}  // namespace ddf::delta
