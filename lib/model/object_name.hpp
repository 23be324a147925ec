// Which names objects and the parts of a folder may have.
#pragma once
#include <string>
#include <string_view>
#include <ddf/error.hpp>

namespace ddf {

inline constexpr std::size_t name_bytes_max = 255;        // an object's name, and each component of a path
inline constexpr std::size_t part_name_bytes_max = 4095;  // a path inside a folder object

/// Whether `name` may name an object: 1 to 255 bytes of UTF-8, parts separated by '/', no empty, "." or ".." part,
/// no NUL, no leading '/'. Errors: invalid_argument that says which rule is broken.
result<void> check_object_name(std::string_view name);
/// The same rules for a path inside a folder object, up to 4,095 bytes, each component up to 255.
result<void> check_part_name(std::string_view name);
bool is_utf8(std::string_view text);

/// Whether `name` matches `pattern`: '*' any run without '/', '**' any run, '?' one character, the rest literally.
bool name_matches(std::string_view name, std::string_view pattern);

/// `text` with control bytes and invalid UTF-8 shown as \xNN, safe to print on a terminal.
std::string printable(std::string_view text);

}  // namespace ddf
