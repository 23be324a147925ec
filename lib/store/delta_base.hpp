// A version that is here whole: what a delta can start from.
#pragma once
#include <memory>
#include "lib/model/ids.hpp"
#include "lib/model/manifest.hpp"
#include "lib/store/object_bytes.hpp"

namespace ddf {

struct delta_base {
  version_id version{1};
  manifest description;
  digest_table digests;
  std::shared_ptr<const object_bytes> bytes;   // null: only its digests are left, so blocks are kept or sent whole
};

}  // namespace ddf
