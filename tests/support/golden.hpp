// Golden files: bytes as hex text, '#' starts a comment. With DDF_WRITE_GOLDEN set in the environment they are written anew.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddf::test {

inline std::filesystem::path golden_folder() { return std::filesystem::path(__FILE__).parent_path().parent_path() / "golden"; }
inline bool writes_golden() { return std::getenv("DDF_WRITE_GOLDEN") != nullptr; }

struct golden {
  std::string comment;   // the first comment line, without its "# "
  std::vector<std::byte> bytes;
};

inline golden read_golden(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  golden g;
  std::string line, digits;
  while (std::getline(file, line)) {
    if (const auto hash = line.find('#'); hash != std::string::npos) {
      if (g.comment.empty() && hash + 2 <= line.size()) g.comment = line.substr(hash + 2);
      line.resize(hash);
    }
    for (const char c : line)
      if (std::isxdigit(static_cast<unsigned char>(c))) digits += c;
  }
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) g.bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return g;
}

inline void write_golden(const std::filesystem::path& path, const std::string& comment, std::span<const std::byte> bytes) {
  static constexpr char hex[] = "0123456789abcdef";
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << "# " << comment << '\n';
  for (std::size_t i = 0; i < bytes.size(); ++i)
    file << hex[std::to_integer<int>(bytes[i]) >> 4] << hex[std::to_integer<int>(bytes[i]) & 15] << (i % 16 == 15 || i + 1 == bytes.size() ? '\n' : ' ');
}

}  // namespace ddf::test
