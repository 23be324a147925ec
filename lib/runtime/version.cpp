#include <ddf/ddf.hpp>

namespace ddf {

const char* version() { return DDF_VERSION; }

}  // namespace ddf
