// Runs a fuzz target on files instead of searching, so that past crashes are ordinary tests with any compiler.
// usage: fuzz_NAME [FILE|FOLDER]...   (a folder that does not exist holds nothing)

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// The buffer is exactly as long as the input, so that a sanitizer sees the first byte read past the end.
void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::fprintf(stderr, "%s (%zu bytes)\n", path.c_str(), input.size());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::size_t inputs = 1;
  const std::uint8_t nothing = 0;
  LLVMFuzzerTestOneInput(&nothing, 0);
  for (int i = 1; i < argc; ++i) {
    if (fs::is_directory(argv[i])) {
      for (const auto& entry : fs::directory_iterator(argv[i])) {
        if (entry.is_regular_file()) { replay(entry.path()), ++inputs; }
      }
    } else if (fs::exists(argv[i])) {
      replay(argv[i]), ++inputs;
    }
  }
  std::printf("%zu inputs\n", inputs);
}
