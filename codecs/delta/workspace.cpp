#include "codecs/delta/workspace.hpp"

#include <zstd.h>

#include "codecs/delta/kernels.hpp"
#include "lib/model/assert.hpp"

namespace ddf::delta {

workspace::workspace() : kernel(&best_kernels()) {}
workspace::~workspace() = default;
workspace::workspace(workspace&&) noexcept = default;
workspace& workspace::operator=(workspace&&) noexcept = default;

void workspace::use_scalar_only() { kernel = &scalar_kernels(); }

ZSTD_CCtx_s* workspace::compressor() {
  if (!compressor_) compressor_.reset(ZSTD_createCCtx());
  DDF_ASSERT(compressor_);
  return compressor_.get();
}

ZSTD_DCtx_s* workspace::decompressor() {
  if (!decompressor_) decompressor_.reset(ZSTD_createDCtx());
  DDF_ASSERT(decompressor_);
  return decompressor_.get();
}

void workspace::free_compressor::operator()(ZSTD_CCtx_s* c) const { ZSTD_freeCCtx(c); }
void workspace::free_decompressor::operator()(ZSTD_DCtx_s* d) const { ZSTD_freeDCtx(d); }

}  // namespace ddf::delta
