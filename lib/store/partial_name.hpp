// The hidden name under which an object grows until it is whole: ".NAME.ddf-XXXXXXXX.partial".
#pragma once
#include <string>
#include <string_view>

namespace ddf {

/// Input: `base`, the last component of the final name; `tag`, eight hexadecimal digits.
/// Output: a component of at most 255 bytes; of a name too long for that, the beginning and a digest.
std::string partial_name(const std::string& base, std::string_view tag);

/// Whether a component looks like a partial_name(). No object may be named so.
bool is_partial_name(std::string_view component);

}  // namespace ddf
