#pragma once

#include <string_view>

namespace ddf {

/// The version of the library, "major.minor.patch"; valid for the life of the program.
std::string_view version() noexcept;

}  // namespace ddf
