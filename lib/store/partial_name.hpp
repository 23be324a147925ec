// The hidden name under which an object grows until it is whole: ".NAME.ddf-XXXXXXXX.partial".
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ddf {

/// The folder in an output folder that holds older versions.
inline constexpr std::string_view kept_versions_folder = ".ddf-versions";

/// `base`, or of a name too long the beginning and a digest.
std::string shortened_name(const std::string& base, std::size_t bytes_max);

/// Input: `base`, the last component of the final name; `tag`, eight hexadecimal digits.
/// Output: a component of at most 255 bytes.
std::string partial_name(const std::string& base, std::string_view tag);

/// Whether a component looks like a partial_name(), or is the folder of kept versions: names that are ddf's own.
bool is_partial_name(std::string_view component);
/// Whether a component of an object's name does: no object may be named so.
bool has_partial_name(std::string_view object_name);

}  // namespace ddf
