#include "codecs/delta/tensor_map.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codecs/delta/bits.hpp"
#include "lib/model/object_name.hpp"

namespace ddf::delta {
namespace {

// A parser of our own, because a header has one shape and the general parser of the tools would make a string of every key
// and a number of every token, hides duplicate keys from who does not build a second table, and would be the library's first
// dependency on it. Strict where the reference reader is: one object of objects, no duplicate keys, no trailing text; members
// that it does not know are skipped.

struct type_of_element {
  std::string_view name;
  element is;
};
constexpr std::array<type_of_element, 15> types{{
    {"F64", element::f64}, {"F32", element::f32}, {"F16", element::f16}, {"BF16", element::bf16}, {"F8_E4M3", element::f8_e4m3},
    {"F8_E5M2", element::f8_e5m2}, {"I64", element::i64}, {"I32", element::i32}, {"I16", element::i16}, {"I8", element::i8},
    {"U64", element::i64}, {"U32", element::i32}, {"U16", element::i16}, {"U8", element::i8}, {"BOOL", element::i8},
}};

constexpr std::size_t depth_max = 32;             // of what is skipped
constexpr std::size_t rank_max = 64;              // dimensions of a tensor
constexpr std::uint64_t header_bytes_max = 100'000'000;   // as the reference implementation has it
constexpr std::string_view header_name = "__header__";

std::string shown(std::string_view name) {   // in an error text: a name may be as long as the header
  constexpr std::size_t most = 200;
  return "'" + printable(name.substr(0, most)) + (name.size() > most ? "…'" : "'");
}

tl::unexpected<error> bad(std::string what) { return fail(errc::invalid_argument, "safetensors header: " + what); }

class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ == text_.size(); }
  std::size_t offset() const { return at_; }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {   // after blanks
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool next_is(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }

  bool string(std::string& out) {
    out.clear();
    if (!take('"')) return false;
    for (;;) {
      const std::size_t plain = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<unsigned char>(text_[at_]) >= 0x20) ++at_;
      out.append(text_, plain, at_ - plain);
      if (at_ == text_.size()) return false;
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\' || at_ == text_.size() || !escape(out)) return false;
    }
  }

  bool number(std::uint64_t& out) {   // a natural number without a leading zero
    skip_blanks();
    const std::size_t first = at_;
    out = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (out > (~std::uint64_t(0) - digit) / 10) return false;
      out = out * 10 + digit;
    }
    if (at_ == first || (text_[first] == '0' && at_ - first > 1)) return false;
    return at_ == text_.size() || std::string_view(".eE").find(text_[at_]) == std::string_view::npos;
  }

  bool numbers(std::vector<std::uint64_t>& out, std::size_t most) {
    out.clear();
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (out.size() == most) return false;
      if (!number(out.emplace_back())) return false;
    } while (take(','));
    return take(']');
  }

  bool skip_value() {   // any JSON value
    std::string closing;
    do {
      skip_blanks();
      if (at_ == text_.size()) return false;
      const char c = text_[at_];
      if (c == '{' || c == '[') {
        if (closing.size() == depth_max) return false;
        ++at_;
        const char end = c == '{' ? '}' : ']';
        if (!take(end)) {
          closing += end;
          if (c == '{' && !key()) return false;
          continue;   // its first value
        }
      } else if (c == '"') {
        if (!string(scratch_)) return false;
      } else if (!word()) {
        return false;
      }
      while (!closing.empty() && take(closing.back())) closing.pop_back();
      if (!closing.empty()) {
        if (!take(',')) return false;
        if (closing.back() == '}' && !key()) return false;
      }
    } while (!closing.empty());
    return true;
  }

 private:
  bool key() { return string(scratch_) && take(':'); }

  bool word() {   // true, false, null or a number
    for (const std::string_view w : {"true", "false", "null"})
      if (text_.substr(at_, w.size()) == w) return at_ += w.size(), true;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ - first;
    };
    const auto one_of = [&](std::string_view set) { return at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos && (++at_, true); };
    one_of("-");
    const std::size_t first = at_, whole = digits();
    if (whole == 0 || (text_[first] == '0' && whole > 1)) return false;
    if (one_of(".") && digits() == 0) return false;
    if (one_of("eE") && (one_of("+-"), digits() == 0)) return false;
    return true;
  }

  bool hex4(std::uint32_t& out) {
    if (text_.size() - at_ < 4) return false;
    out = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) return false;
      out = out << 4 | static_cast<std::uint32_t>(digit);
    }
    return true;
  }

  bool escape(std::string& out) {
    const char c = text_[at_++];
    constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (const auto i = names.find(c); i != std::string_view::npos) return out += meant[i], true;
    std::uint32_t code = 0;
    if (c != 'u' || !hex4(code) || (code >= 0xdc00 && code < 0xe000)) return false;
    if (code >= 0xd800 && code < 0xdc00) {   // the first half of a pair
      std::uint32_t low = 0;
      if (text_.substr(at_, 2) != "\\u" || (at_ += 2, !hex4(low)) || low < 0xdc00 || low >= 0xe000) return false;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    const auto put = [&](std::uint32_t b) { out += static_cast<char>(b); };
    if (code < 0x80) put(code);
    else if (code < 0x800) put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
    else if (code < 0x10000) put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
    else put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string scratch_;
};

std::optional<std::uint64_t> product(const std::vector<std::uint64_t>& shape) {
  std::uint64_t n = 1;
  for (const auto extent : shape) {
    if (extent == 0) return 0;   // whatever the others are
  }
  for (const auto extent : shape) {
    if (n > ~std::uint64_t(0) / extent) return std::nullopt;
    n *= extent;
  }
  return n;
}

// What follows a tensor's name: {"dtype": …, "shape": […], "data_offsets": [begin, end]}, in any order. Offsets stay relative.
result<void> parse_tensor(reader& in, tensor& t, std::string& key, std::string& dtype) {
  const auto wrong = [&](std::string_view what) { return bad("tensor " + shown(t.name) + " " + std::string(what)); };
  if (!in.take('{')) return wrong("is not an object");
  bool has_dtype = false, has_shape = false, has_offsets = false;
  std::vector<std::uint64_t> offsets;
  if (!in.take('}')) {
    do {
      if (!in.string(key) || !in.take(':')) return wrong("has a member that cannot be read");
      bool* has = key == "dtype" ? &has_dtype : key == "shape" ? &has_shape : key == "data_offsets" ? &has_offsets : nullptr;
      if (has && std::exchange(*has, true)) return wrong("has '" + key + "' twice");
      if (has == &has_dtype && !in.string(dtype)) return wrong("has a dtype that is no string");
      if (has == &has_shape && !in.numbers(t.shape, rank_max)) return wrong("has a shape that is no list of numbers");
      if (has == &has_offsets && (!in.numbers(offsets, 2) || offsets.size() != 2)) return wrong("has data_offsets that are no two numbers");
      if (!has && !in.skip_value()) return wrong("has a member that cannot be read");
    } while (in.take(','));
    if (!in.take('}')) return wrong("does not end");
  }
  if (!has_dtype || !has_shape || !has_offsets) return wrong(!has_dtype ? "has no dtype" : !has_shape ? "has no shape" : "has no data_offsets");
  if (offsets[1] < offsets[0]) return wrong("ends before it begins");
  t.offset = offsets[0];
  t.bytes = offsets[1] - offsets[0];

  const auto type = std::find_if(types.begin(), types.end(), [&](const auto& x) { return x.name == dtype; });
  if (type == types.end()) return {};   // a type of later: bytes, and their number cannot be checked
  t.element = type->is;
  const auto elements = product(t.shape);
  const std::uint64_t width = width_of(t.element);
  if (!elements || *elements > ~std::uint64_t(0) / width || *elements * width != t.bytes)
    return wrong("has " + std::to_string(t.bytes) + " bytes, which its shape and " + dtype + " do not make");
  return {};
}

result<std::uint64_t> header_length(std::span<const std::byte> head, std::uint64_t file_bytes) {
  if (file_bytes < 8 || head.size() < 8) return bad("the file is too short for one");
  const auto length = load<std::uint64_t>(head.data());
  if (length > header_bytes_max) return bad("it is said to have " + std::to_string(length) + " bytes; at most 100,000,000 are allowed");
  if (length > file_bytes - 8) return bad("it is said to have " + std::to_string(length) + " bytes, more than the file");
  return length;
}

bool ends_with(std::string_view text, std::string_view end) { return text.size() >= end.size() && text.substr(text.size() - end.size()) == end; }

element element_of_width(std::uint8_t bytes) {
  return bytes == 2 ? element::i16 : bytes == 4 ? element::i32 : bytes == 8 ? element::i64 : element::bytes;
}

// The tensors of one file; its header is read in two steps, so that a file of another kind costs a few bytes.
result<std::vector<tensor>> map_of_file(const read_function& read, std::uint64_t offset, std::uint64_t file_bytes, bool& unreadable) {
  std::vector<std::byte> head(static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, 9)));
  const auto get = [&](std::size_t from) -> result<void> {
    const auto got = read(offset + from, std::span(head).subspan(from));
    if (!got) unreadable = true;
    return got;
  };
  if (const auto got = get(0); !got) return tl::unexpected(got.error());
  const auto length = header_length(head, file_bytes);
  if (!length) return tl::unexpected(length.error());
  if (*length > 0 && head[8] != std::byte('{')) return bad("it does not begin with '{'");
  if (*length > 1) {
    head.resize(static_cast<std::size_t>(8 + *length));
    if (const auto got = get(9); !got) return tl::unexpected(got.error());
  }
  return parse_safetensors(head, file_bytes);
}

// Names that several files have are qualified by their file's.
void make_names_unique(std::vector<tensor>& tensors, const std::vector<std::size_t>& file_of, const std::vector<part>& parts) {
  std::vector<char> shared(tensors.size(), 0);
  std::unordered_map<std::string_view, std::size_t> first;   // by name
  first.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [at, is_new] = first.try_emplace(tensors[i].name, i);
    if (!is_new) shared[i] = shared[at->second] = 1;
    if (tensors[i].name == header_name) shared[i] = 1;   // also the only one: a second file must not rename it
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (shared[i] && tensors[i].name != parts[file_of[i]].name) tensors[i].name = parts[file_of[i]].name + ":" + tensors[i].name;
}

}  // namespace

result<std::vector<tensor>> parse_safetensors(std::span<const std::byte> head, std::uint64_t file_bytes) {
  const auto length = header_length(head, file_bytes);
  if (!length) return tl::unexpected(length.error());
  const std::uint64_t data = 8 + *length;
  if (head.size() < data) return bad("only a part of it was read");
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + 8, static_cast<std::size_t>(*length));
  if (!text.starts_with('{')) return bad("it does not begin with '{'");
  if (!std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; }) && !is_utf8(text)) return bad("it is not UTF-8");

  reader in(text);
  std::vector<tensor> found;
  found.reserve(text.size() / 128);   // a typical entry has some 100 bytes
  std::string key, dtype, name;
  bool has_metadata = false;
  in.take('{');
  if (!in.take('}')) {
    do {
      if (!in.string(name) || !in.take(':')) return bad("it is not JSON at byte " + std::to_string(8 + in.offset()));
      if (name == "__metadata__") {
        if (std::exchange(has_metadata, true)) return bad("'__metadata__' comes twice");
        if (!in.next_is('{') || !in.skip_value()) return bad("'__metadata__' is not an object");
        continue;
      }
      tensor& t = found.emplace_back();
      t.name = name;
      if (const auto parsed = parse_tensor(in, t, key, dtype); !parsed) return tl::unexpected(parsed.error());
    } while (in.take(','));
    if (!in.take('}')) return bad("it is not JSON at byte " + std::to_string(8 + in.offset()));
  }
  in.skip_blanks();
  if (!in.at_end()) return bad("text follows its end at byte " + std::to_string(8 + in.offset()));

  {
    std::unordered_set<std::string_view> names;
    names.reserve(found.size() + 1);
    names.insert(header_name);
    for (const tensor& t : found)
      if (!names.insert(t.name).second) return bad("tensor " + shown(t.name) + (t.name == header_name ? " has a reserved name" : " comes twice"));
  }

  // File order. Those of no bytes come before what begins where they are.
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  const auto before = [&](std::size_t a, std::size_t b) {
    const tensor &x = found[a], &y = found[b];
    return std::tie(x.offset, x.bytes, a) < std::tie(y.offset, y.bytes, b);
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  std::vector<tensor> tensors;
  tensors.reserve(found.size() + 1);
  tensors.push_back({std::string(header_name), 0, data, element::bytes, {}});
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    tensor& t = found[i];
    if (t.offset != end) {
      return bad("tensor " + shown(t.name) + (t.offset < end ? " overlaps the one before it" : " leaves a hole before it") + ": it begins at byte " +
                 std::to_string(t.offset) + " of the data, not at " + std::to_string(end));
    }
    if (t.bytes > file_bytes - data - end) return bad("tensor " + shown(t.name) + " ends beyond the file");
    end += t.bytes;
    t.offset += data;
    tensors.push_back(std::move(t));
  }
  if (data + end != file_bytes) return bad("its tensors end " + std::to_string(file_bytes - data - end) + " bytes before the file");
  return tensors;
}

result<std::vector<tensor>> tensor_map_of(const manifest& m, const read_function& read, std::vector<std::string>* warnings) {
  std::vector<tensor> tensors;
  std::vector<std::size_t> file_of;   // of each tensor, the part
  std::uint64_t offset = 0;
  bool folder = false;
  for (std::size_t i = 0; i < m.parts.size(); ++i) {
    const part& p = m.parts[i];
    if (p.directory) continue;
    folder = folder || !p.name.empty();
    const bool alone = m.parts.size() == 1 && p.name.empty();
    const bool claims = ends_with(p.name.empty() ? m.name : p.name, ".safetensors");
    if (claims || alone) {
      bool unreadable = false;
      auto map = map_of_file(read, offset, p.size, unreadable);
      if (unreadable) return map;
      if (map) {
        for (tensor& t : *map) {
          t.offset += offset;
          tensors.push_back(std::move(t));
          file_of.push_back(i);
        }
        offset += p.size;
        continue;
      }
      if (claims && warnings) warnings->push_back(printable(p.name.empty() ? m.name : p.name) + " is sent as untyped bytes: " + map.error().what);
    }
    tensors.push_back({p.name, offset, p.size, element_of_width(m.element_bytes), {}});
    file_of.push_back(i);
    offset += p.size;
  }
  if (folder) make_names_unique(tensors, file_of, m.parts);
  return tensors;
}

}  // namespace ddf::delta
