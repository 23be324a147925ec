// A header that parses covers its file, in order, by names that differ; one that does not says why.
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "codecs/delta/tensor_map.hpp"
#include "tests/support/fuzz_input.hpp"

static void check(std::span<const std::byte> head, std::uint64_t file_bytes) {
  const auto tensors = ddf::delta::parse_safetensors(head, file_bytes);
  if (!tensors) {
    FUZZ_CHECK(!tensors.error().what.empty() && tensors.error().what.size() < 2000);
    return;
  }
  std::uint64_t end = 0;
  std::set<std::string> names;
  for (const auto& t : *tensors) {
    FUZZ_CHECK(t.offset == end);
    end += t.bytes;
    FUZZ_CHECK(names.insert(t.name).second);
  }
  FUZZ_CHECK(end == file_bytes);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::as_bytes(std::span(data, size)), size);
  // The same as text: with the length before it, and a file as long as its tensors say.
  const auto whole = std::make_unique<std::byte[]>(size + 8);   // exactly as long, so that a read beyond it is seen
  for (unsigned i = 0; i < 8; ++i) whole[i] = static_cast<std::byte>(std::uint64_t(size) >> (8 * i));
  if (size > 0) std::memcpy(whole.get() + 8, data, size);
  for (const std::uint64_t tail : {0u, 4u, 16u, 4096u}) check({whole.get(), size + 8}, size + 8 + tail);
  return 0;
}
