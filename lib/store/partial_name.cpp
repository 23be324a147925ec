#include "lib/store/partial_name.hpp"

#include <algorithm>
#include <span>

#include "codecs/digest.hpp"
#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "lib/store/record.hpp"

namespace ddf {

static constexpr std::string_view middle = ".ddf-", end = ".partial";
static constexpr std::size_t tag_digits = 8;

std::string shortened_name(const std::string& base, std::size_t bytes_max) {
  if (base.size() <= bytes_max) return base;
  const digest whole = digest_of(std::as_bytes(std::span(base.data(), base.size())));
  const std::string rest = '-' + hexadecimal(std::span(whole.bytes).first(8));
  std::size_t cut = bytes_max - rest.size();
  while (cut > 0 && (static_cast<unsigned char>(base[cut]) & 0xc0) == 0x80) --cut;   // not inside a UTF-8 sequence
  return base.substr(0, cut) + rest;
}

std::string partial_name(const std::string& base, std::string_view tag) {
  DDF_ASSERT(tag.size() == tag_digits);
  constexpr std::size_t room = name_bytes_max - 1 - middle.size() - tag_digits - end.size();
  return '.' + shortened_name(base, room) + std::string(middle) + std::string(tag) + std::string(end);
}

bool is_partial_name(std::string_view component) {
  if (component == kept_versions_folder) return true;
  if (component.size() < 1 + middle.size() + tag_digits + end.size() || component.front() != '.') return false;
  if (!component.ends_with(end)) return false;
  component.remove_suffix(end.size());
  const auto tag = component.substr(component.size() - tag_digits);
  component.remove_suffix(tag_digits);
  return component.ends_with(middle) && tag.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool has_partial_name(std::string_view object_name) {
  for (;;) {
    const auto slash = object_name.find('/');
    if (is_partial_name(object_name.substr(0, slash))) return true;
    if (slash == std::string_view::npos) return false;
    object_name.remove_prefix(slash + 1);
  }
}

}  // namespace ddf
