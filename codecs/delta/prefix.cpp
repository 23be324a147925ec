// prefix: zstd with the base as what came before, for untyped data whose content moved a little; also without a base.
//
// Payload: one zstd frame (RFC 8878) that states its content size, with neither checksum nor dictionary id.
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "codecs/delta/operations.hpp"
#include "codecs/delta/record.hpp"
#include "lib/model/assert.hpp"

namespace ddf::delta {

constexpr int level = 3, window_log = 21;   // base and target together

bool encode_prefix(workspace& w, std::span<const std::byte> base, std::span<const std::byte> target, std::size_t bytes_max, std::vector<std::byte>& out) {
  ZSTD_CCtx* const z = w.compressor();
  ZSTD_CCtx_reset(z, ZSTD_reset_session_and_parameters);
  for (const auto& [parameter, value] : {std::pair(ZSTD_c_compressionLevel, level), std::pair(ZSTD_c_windowLog, window_log), std::pair(ZSTD_c_checksumFlag, 0),
                                         std::pair(ZSTD_c_contentSizeFlag, 1), std::pair(ZSTD_c_dictIDFlag, 0)})
    DDF_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(z, parameter, value)));
  if (!base.empty()) DDF_ASSERT(!ZSTD_isError(ZSTD_CCtx_refPrefix(z, base.data(), base.size())));
  const std::size_t begin = out.size();
  out.resize(begin + bytes_max);
  const std::size_t size = ZSTD_compress2(z, out.data() + begin, bytes_max, target.data(), target.size());
  const bool fits = !ZSTD_isError(size) && size < bytes_max;
  out.resize(fits ? begin + size : begin);
  return fits;
}

bool decode_prefix(workspace& w, std::span<const std::byte> base, std::span<const std::byte> payload, std::span<std::byte> target) {
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != target.size()) return false;
  if (ZSTD_findFrameCompressedSize(payload.data(), payload.size()) != payload.size()) return false;   // one frame, and no other
  std::span<std::byte> made = target;
  if (base.data() == target.data()) made = {at_least(w.packed_target, target.size()), target.size()};   // the prefix is read until the end
  ZSTD_DCtx* const z = w.decompressor();
  ZSTD_DCtx_reset(z, ZSTD_reset_session_and_parameters);
  DDF_ASSERT(!ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, window_log)));
  if (!base.empty()) DDF_ASSERT(!ZSTD_isError(ZSTD_DCtx_refPrefix(z, base.data(), base.size())));
  // The capacity is exact: beyond the content zstd may write as well.
  const std::size_t size = ZSTD_decompressDCtx(z, made.data(), made.size(), payload.data(), payload.size());
  if (ZSTD_isError(size) || size != target.size()) return false;
  if (made.data() != target.data()) std::copy(made.begin(), made.end(), target.begin());
  return true;
}

}  // namespace ddf::delta
