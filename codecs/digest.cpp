#include "codecs/digest.hpp"

#include <array>
#include <cstring>
#include <new>

#undef XXH_INLINE_ALL   // the compiled library has vector code for each processor; inlined it would be SSE2 alone
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>   // the library's own choice of SSE2, AVX2 or AVX-512 at run time: up to three times as fast
#else
#include <xxhash.h>
#endif

namespace ddf {

static digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t c;
  XXH128_canonicalFromHash(&c, hash);
  digest d;
  static_assert(sizeof c.digest == digest::size);
  std::memcpy(d.bytes.data(), c.digest, digest::size);
  return d;
}

digest digest_of(std::span<const std::byte> bytes) { return canonical(XXH3_128bits(bytes.data(), bytes.size())); }

// The x86 header renames XXH3_128bits and XXH3_128bits_update to their dispatching forms.
struct digest_stream::state {
  XXH3_state_t* xxh = XXH3_createState();   // aligned as the vector code wants it
  state() {
    if (xxh == nullptr) throw std::bad_alloc();
  }
  ~state() { XXH3_freeState(xxh); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

digest_stream::digest_stream() : state_(std::make_unique<state>()) { reset(); }
digest_stream::~digest_stream() = default;
digest_stream::digest_stream(digest_stream&&) noexcept = default;
digest_stream& digest_stream::operator=(digest_stream&&) noexcept = default;

void digest_stream::reset() { XXH3_128bits_reset(state_->xxh); }
void digest_stream::update(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()); }
digest digest_stream::finish() const { return canonical(XXH3_128bits_digest(state_->xxh)); }

digest root_digest(std::string_view name, std::uint64_t bytes, std::span<const digest> blocks) {
  digest_stream s;
  std::array<std::byte, 12> head;   // length of the name and size, big-endian, so that no two inputs run together
  for (int i = 0; i < 4; ++i) head[i] = std::byte(name.size() >> (24 - 8 * i));
  for (int i = 0; i < 8; ++i) head[4 + i] = std::byte(bytes >> (56 - 8 * i));
  s.update(head);
  s.update(std::as_bytes(std::span(name.data(), name.size())));
  s.update(std::as_bytes(blocks));
  return s.finish();
}

}  // namespace ddf
