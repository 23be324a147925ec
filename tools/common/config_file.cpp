#include "tools/common/config_file.hpp"

#include <cerrno>
#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace ddf::tools {
namespace {

constexpr std::size_t file_bytes_max = 1 << 20;

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* f = node.as_floating_point()) return fmt::format("{}", f->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<config_entry> read_entry(const toml::node& node) {
  config_entry entry;
  entry.line = static_cast<std::uint32_t>(node.source().begin.line);
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array) {
      auto text = scalar_text(element);
      if (!text) return std::nullopt;
      entry.texts.push_back(std::move(*text));
    }
    return entry;
  }
  auto text = scalar_text(node);
  if (!text) return std::nullopt;
  entry.texts.push_back(std::move(*text));
  return entry;
}

}  // namespace

result<std::map<std::string, config_entry>> read_config_file(const std::string& path, const std::string& program) {
  std::ifstream file(path, std::ios::binary);
  std::string text(file_bytes_max + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return fail(errc::io, fmt::format("cannot read '{}'", path), errno);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > file_bytes_max)
    return fail(errc::invalid_argument, fmt::format("{}: is longer than {} bytes", path, file_bytes_max));

  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    return fail(errc::invalid_argument, fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()));
  }

  std::map<std::string, config_entry> entries;
  const auto take = [&](const toml::table& table, bool in_table) -> result<void> {
    for (const auto& [key, node] : table) {
      const std::string_view name = key.str();
      if (!in_table && node.is_table()) {
        if (name == "mcsend" || name == "mcrecv") continue;
        return fail(errc::invalid_argument, fmt::format("{}:{}: [{}]: allowed tables: [mcsend], [mcrecv]", path,
                                                        node.source().begin.line, name));
      }
      auto entry = read_entry(node);
      if (!entry)
        return fail(errc::invalid_argument,
                    fmt::format("{}:{}: {}: allowed: a string, a number, a boolean or a list of these", path,
                                node.source().begin.line, name));
      entry->in_table = in_table;
      entries[std::string(name)] = std::move(*entry);
    }
    return {};
  };
  if (auto taken = take(root, false); !taken) return tl::unexpected(taken.error());
  if (const auto* table = root[program].as_table())
    if (auto taken = take(*table, true); !taken) return tl::unexpected(taken.error());
  return entries;
}

}  // namespace ddf::tools
