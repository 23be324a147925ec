#include "tools/common/command_line.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <ddf/ddf.hpp>

#include "lib/model/assert.hpp"
#include "lib/model/object_name.hpp"
#include "tools/common/config_file.hpp"
#include "tools/common/output.hpp"

namespace ddf::tools {
namespace {

constexpr std::size_t columns_max = 100;
constexpr std::size_t help_column = 28;

bool is_flag(setting_kind kind) { return kind == setting_kind::flag || kind == setting_kind::count; }

result<std::string> flag_text(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return "true";
  if (text == "false" || text == "0" || text == "no" || text == "off") return "false";
  return fail(errc::invalid_argument, fmt::format("read '{}'; allowed: true or false", text));
}

result<std::string> count_text(const std::string& text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') return text;
  auto flag = flag_text(text);
  if (!flag) return fail(errc::invalid_argument, fmt::format("read '{}'; allowed: 0 to 9", text));
  return *flag == "true" ? "1" : "0";
}

/// `text` broken at spaces into lines of at most `width` columns.
std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < text.size();) {
    const auto end = std::min(text.find(' ', i), text.size());
    const auto word = text.substr(i, end - i);
    auto& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    i = end + 1;
  }
  return lines;
}

void append_option(std::string& out, const std::string& left, const std::string& help) {
  std::string line = "  " + left;
  const auto lines = wrapped(help, columns_max - help_column);
  std::size_t first = 0;
  if (line.size() + 2 <= help_column) {
    line.resize(help_column, ' ');
    line += lines[first++];
  }
  out += line + "\n";
  for (; first < lines.size(); ++first) out += std::string(help_column, ' ') + lines[first] + "\n";
}

}  // namespace

std::string_view name(origin from) {
  switch (from) {
    case origin::by_default: return "default";
    case origin::file: return "file";
    case origin::environment: return "environment";
    case origin::option: return "option";
  }
  return "unknown";
}

std::string environment_name(const std::string& setting) {
  std::string out = "DDF_";
  for (const char c : setting) out += c == '-' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

command_line::command_line(page text) : page_(std::move(text)) {}

void command_line::group(std::string heading, bool common) {
  heading_ = std::move(heading);
  common_ = common;
}

void command_line::add(setting s) {
  DDF_ASSERT(std::none_of(declared_.begin(), declared_.end(), [&](const declared& d) { return d.s.name == s.name; }));
  declared_.push_back({std::move(s), heading_, common_});
}

result<command_line::level> command_line::read_options(int argc, char** argv) {
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.set_version_flag("--version", std::string());
  app.allow_extras();
  std::map<std::string, CLI::Option*> options, opposites;
  for (const auto& d : declared_) {
    const auto names = (d.s.letter != 0 ? fmt::format("-{},", d.s.letter) : std::string()) + "--" + d.s.name;
    auto* option = is_flag(d.s.kind) ? app.add_flag(names) : app.add_option(names);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option->allow_extra_args(false);
    options[d.s.name] = option;
    if (!d.s.opposite.empty()) opposites[d.s.name] = app.add_flag("--" + d.s.opposite);
  }

  // CLI11 reads the options and hands back the rest. A positional of its own would take "[a,b]" for two names, and
  // "--name=" would make it take the next argument for the value.
  int options_end = 1;
  for (; options_end < argc && std::string_view(argv[options_end]) != "--"; ++options_end) {
    const std::string_view argument = argv[options_end];
    if (argument.size() > 3 && argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      return fail(errc::invalid_argument,
                  fmt::format("{}: the value is empty", argument.substr(0, argument.size() - 1)));
  }

  try {
    app.parse(options_end, argv);
  } catch (const CLI::CallForHelp&) {
    wants_help_ = true;
    return level();
  } catch (const CLI::CallForVersion&) {
    wants_version_ = true;
    return level();
  } catch (const CLI::ArgumentMismatch& e) {
    // "--rate: 1 required TEXT missing": CLI11 names the option, the value has our name.
    const std::string_view what = e.what();
    for (const auto& d : declared_)
      if (what.starts_with("--" + d.s.name + ":"))
        return fail(errc::invalid_argument, fmt::format("--{0}: needs a value: --{0} {1}", d.s.name, d.s.value));
    return fail(errc::invalid_argument, std::string(what));
  } catch (const CLI::ParseError& e) { return fail(errc::invalid_argument, e.what()); }
  arguments_ = app.remaining();
  for (const auto& argument : arguments_)
    if (argument.size() > 1 && argument.front() == '-')
      return fail(
          errc::invalid_argument,
          fmt::format("{}: there is no such option (names that begin with a dash go after --)", printable(argument)));
  arguments_.insert(arguments_.end(), argv + std::min(options_end + 1, argc), argv + argc);

  level given;
  for (const auto& d : declared_) {
    auto texts = options[d.s.name]->results();
    if (const auto opposite = opposites.find(d.s.name); opposite != opposites.end() && opposite->second->count() > 0) {
      if (!texts.empty())
        return fail(errc::invalid_argument, fmt::format("--{} and --{} exclude each other", d.s.name, d.s.opposite));
      texts = {"false"};
    }
    if (texts.empty()) continue;
    if (d.s.kind == setting_kind::count && texts.size() > 1)
      texts = {std::to_string(std::min<std::size_t>(texts.size(), 9))};
    given[d.s.name] = {std::move(texts), "--" + d.s.name};
  }
  return given;
}

result<command_line::level> command_line::read_environment() const {
  level given;
  for (const auto& d : declared_) {
    if (d.s.command_line_only) continue;
    const auto variable = environment_name(d.s.name);
    const char* text = std::getenv(variable.c_str());
    if (text == nullptr || *text == '\0') continue;
    std::vector<std::string> texts;
    if (d.s.kind == setting_kind::list) {
      for (std::string_view rest = text;;) {
        const auto comma = rest.find(',');
        texts.emplace_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
      }
    } else {
      texts = {text};
    }
    given[d.s.name] = {std::move(texts), variable};
  }
  return given;
}

result<command_line::level> command_line::read_file(const std::string& path) const {
  auto file = read_config_file(path, page_.program);
  if (!file) return tl::unexpected(file.error());
  level given;
  for (auto& item : *file) {
    const auto& key = item.first;  // not a structured binding, which clang 14 does not capture
    auto& entry = item.second;
    const auto label = fmt::format("{}:{}: {}", path, entry.line, printable(key));
    const auto found =
        std::find_if(declared_.begin(), declared_.end(), [&](const declared& d) { return d.s.name == key; });
    if (found == declared_.end())
      return fail(errc::invalid_argument,
                  fmt::format("{}: there is no such {}option", label, entry.in_table ? "" : "common "));
    if (!entry.in_table && !found->common)
      return fail(errc::invalid_argument, fmt::format("{}: stands below [{}], not at the top", label, page_.program));
    if (found->s.command_line_only || key == "config")
      return fail(errc::invalid_argument, fmt::format("{}: cannot stand in a file", label));
    if (entry.texts.size() != 1 && found->s.kind != setting_kind::list)
      return fail(errc::invalid_argument, fmt::format("{}: read a list; allowed: one value", label));
    given[key] = {std::move(entry.texts), label};
  }
  return given;
}

exit_code command_line::refuse(const std::string& sentence) const {
  write_error(fmt::format("{}: {}\nTry '{} --help'.\n", page_.program, sentence, page_.program));
  return exit_usage;
}

std::optional<exit_code> command_line::read(int argc, char** argv) {
  auto options = read_options(argc, argv);
  if (!options) return refuse(options.error().what);
  if (wants_help_ || wants_version_) {
    write_output(wants_help_ ? help() : fmt::format("{} (ddf) {}\n", page_.program, ddf::version()));
    return finish_output(page_.program) ? exit_complete : exit_failed;
  }
  auto environment = read_environment();
  if (!environment) return refuse(environment.error().what);

  level file;
  const auto named = [&](const level& l) { return l.contains("config") ? &l.at("config") : nullptr; };
  if (const auto* config = named(*options) != nullptr ? named(*options) : named(*environment); config != nullptr) {
    auto read = read_file(config->texts.back());
    if (!read) {
      if (read.error().code == errc::invalid_argument) return refuse(read.error().what);
      return refuse(fmt::format("{}: {}", config->label, describe(read.error())));
    }
    file = std::move(*read);
  }

  for (const auto& d : declared_) {
    auto& out = effective_[d.s.name];
    out.kind = d.s.kind;
    values chosen;
    for (const auto& [from, given] : {std::pair<origin, const level*>{origin::option, &*options},
                                      {origin::environment, &*environment},
                                      {origin::file, &file}}) {
      const auto found = given->find(d.s.name);
      if (found == given->end()) continue;
      out.from = from;
      chosen = found->second;
      break;
    }
    if (out.from == origin::by_default) {
      if (!d.s.default_text.empty()) out.texts = {d.s.default_text};
      continue;
    }
    if (d.s.kind != setting_kind::list) chosen.texts = {chosen.texts.back()};
    for (auto& text : chosen.texts) {
      if (is_flag(d.s.kind)) {
        auto read = d.s.kind == setting_kind::flag ? flag_text(text) : count_text(text);
        if (!read) return refuse(fmt::format("{}: {}", chosen.label, read.error().what));
        text = *read;
      }
      if (auto set = d.s.set ? d.s.set(text) : result<void>(); !set)
        return refuse(fmt::format("{}: {}", chosen.label, printable(set.error().what)));
    }
    out.texts = std::move(chosen.texts);
  }
  for (const auto& d : declared_) {
    if (!d.s.alone || effective_[d.s.name].from == origin::by_default || effective_[d.s.name].texts.back() != "true")
      continue;
    if (!arguments_.empty())
      return refuse(fmt::format("--{} takes no {}: read '{}'", d.s.name, page_.arguments, printable(arguments_.front())));
    // Those of the environment and the file are for runs of the usual kind, and do no harm.
    for (const auto& other : declared_)
      if (!other.common && options->contains(other.s.name))
        return refuse(fmt::format("--{} and --{} exclude each other", d.s.name, other.s.name));
    return std::nullopt;
  }
  if (page_.arguments_needed && arguments_.empty())
    return refuse(fmt::format("{} is missing: name what to publish", page_.arguments));
  return std::nullopt;
}

std::string command_line::help() const {
  std::string out = fmt::format("Usage: {} [options] {}\n\n", page_.program, page_.arguments);
  for (const auto& line : wrapped(page_.about, columns_max)) out += line + "\n";
  out += "\nExamples:\n" + page_.examples;
  std::string heading;
  for (const auto& d : declared_) {
    if (d.heading != heading) out += fmt::format("\n{}:\n", heading = d.heading);
    auto left = (d.s.letter != 0 ? fmt::format("-{}, ", d.s.letter) : std::string()) + "--" + d.s.name;
    if (!d.s.value.empty()) left += " " + d.s.value;
    append_option(out, left, d.s.help);
    if (!d.s.opposite.empty()) append_option(out, "--" + d.s.opposite, d.s.opposite_help);
  }
  append_option(out, "--version", "print the version and exit");
  append_option(out, "-h, --help", "print this and exit");
  out += "\nExit status:\n" + page_.exits;
  out +=
      "\nOptions can also be set in the environment (DDF_MULTICAST=require) and in the file of --config; an\n"
      "option wins over the environment, and that over the file. More: man " +
      page_.program + ", man ddf.toml\n";
  return out;
}

}  // namespace ddf::tools
