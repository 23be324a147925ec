#include <ddf/version.hpp>

namespace ddf {

std::string_view version() noexcept { return DDF_VERSION; }

}  // namespace ddf
