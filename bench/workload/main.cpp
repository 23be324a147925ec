// ddf-workload: versions of models as safetensors files, for sending with mcsend and for other delta tools; the same bytes for the
// same options.
//
//   ddf-workload FOLDER [--bytes 256MiB] [--seed 1] [PAIR...]
//
// writes PAIR-old.safetensors and PAIR-new.safetensors of each pair (all of them when none is named):
//   a b c c2 d e g h laggard   as in pairs.hpp
//   f, f2                      the old of a, with a header 1,360 bytes longer; values unchanged, or those of a's new
//   tiny                       tensors of 3,600 bytes, as many as fit (90,000 need 309 MiB); one in ten stepped as in a
//   moe                        fp8 experts with fp32 scales of 128 x 128 blocks; one expert in ten stepped
//   chain                      32 steps, one after the other: chain-00.safetensors (old) to chain-32.safetensors
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "bench/workload/pairs.hpp"

namespace {

using namespace ddf;
using workload::detail::normal_source;
using workload::detail::put;
using workload::detail::to_bf16;

struct tensor {
  std::string name;
  std::string_view dtype;
  std::uint64_t rows, columns;
  std::uint64_t bytes;
};

std::string_view dtype_of(delta::element e) { return e == delta::element::bf16 ? "BF16" : e == delta::element::f32 ? "F32" : "U8"; }

class writer {
 public:
  explicit writer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool failed() const { return failed_; }

  void write(const std::string& name, const std::vector<tensor>& tensors, std::span<const std::byte> data, std::size_t metadata_bytes = 0) {
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"";
    if (metadata_bytes > 0) header += ",\"n\":\"" + std::string(metadata_bytes - 7, 'm') + "\"";
    header += '}';
    std::uint64_t offset = 0;
    for (const tensor& t : tensors) {
      header += ",\"" + t.name + "\":{\"dtype\":\"" + std::string(t.dtype) + "\",\"shape\":[" + std::to_string(t.rows) + "," + std::to_string(t.columns) +
                "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + t.bytes) + "]}";
      offset += t.bytes;
    }
    header += '}';
    header.append((8 - header.size() % 8) % 8, ' ');
    std::ofstream file(folder_ / (name + ".safetensors"), std::ios::binary);
    for (unsigned i = 0; i < 8; ++i) file.put(static_cast<char>(std::uint64_t(header.size()) >> (8 * i)));
    file.write(header.data(), static_cast<std::streamsize>(header.size()));
    file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    file.close();
    if (file) return;
    std::fprintf(stderr, "ddf-workload: cannot write %s in %s\n", name.c_str(), folder_.c_str());
    failed_ = true;
  }

 private:
  std::filesystem::path folder_;
  bool failed_ = false;
};

// As make_pair shares them out.
std::vector<tensor> equal_tensors(std::size_t count, std::uint64_t bytes, std::string_view dtype, std::size_t width) {
  const std::uint64_t elements = bytes / width, each = elements / count;
  std::vector<tensor> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t n = i + 1 == count ? elements - each * i : each;
    const bool rows = n % 64 == 0 && n > 0;
    all.push_back({"model.layers." + std::to_string(i / 8) + ".proj_" + std::to_string(i % 8) + ".weight", dtype, rows ? n / 64 : 1, rows ? 64 : n, n * width});
  }
  return all;
}

void write_pair(writer& out, const std::string& name, char letter, std::size_t bytes, std::uint64_t seed) {
  const auto p = workload::make_pair(letter, bytes, seed);
  const auto tensors = equal_tensors(64, bytes, dtype_of(p.element), width_of(p.element));
  out.write(name + "-old", tensors, p.base);
  out.write(name + "-new", tensors, p.target);
}

void write_shifted(writer& out, const std::string& name, bool stepped, std::size_t bytes, std::uint64_t seed) {
  const auto p = workload::make_pair('a', bytes, seed);
  const auto tensors = equal_tensors(64, bytes, "BF16", 2);
  out.write(name + "-old", tensors, p.base);
  out.write(name + "-new", tensors, stepped ? p.target : p.base, 1360);
}

void write_tiny(writer& out, std::size_t bytes, std::uint64_t seed) {
  constexpr std::size_t each = 3600;
  const std::size_t count = std::min<std::size_t>(90'000, std::max<std::size_t>(bytes / each, 1));
  auto p = workload::make_pair('a', count * each, seed);
  std::vector<tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back({"layers." + std::to_string(i / 256) + ".experts." + std::to_string(i % 256) + ".lora.weight", "BF16", 1, each / 2, each});
    if (i % 10 != 0) std::copy_n(p.base.begin() + static_cast<std::ptrdiff_t>(i * each), each, p.target.begin() + static_cast<std::ptrdiff_t>(i * each));
  }
  out.write("tiny-old", tensors, p.base);
  out.write("tiny-new", tensors, p.target);
}

std::uint8_t to_e4m3(float f) {   // to nearest, ties to even; the largest is 448
  const std::uint8_t sign = std::signbit(f) ? 0x80 : 0;
  const float a = std::min(std::fabs(f), 448.0f);
  if (a < 0x1p-6f) return static_cast<std::uint8_t>(sign | static_cast<unsigned>(std::nearbyint(a * 0x1p9f)));   // the smallest normal follows the subnormals
  const auto bits = std::bit_cast<std::uint32_t>(a);
  const std::uint32_t rounded = bits + 0x7ffff + (bits >> 20 & 1);
  return static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120u << 3)));
}

void write_moe(writer& out, std::size_t bytes, std::uint64_t seed) {
  constexpr std::size_t rows = 512, columns = 2048, block = 128, scales = rows / block * (columns / block), each = rows * columns + scales * 4;
  const std::size_t experts = std::max<std::size_t>(bytes / each, 1);
  std::vector<tensor> tensors;
  std::vector<std::byte> versions[2];
  std::vector<float> weights[2];
  normal_source random(seed);
  for (std::size_t e = 0; e < experts; ++e) {
    const std::string name = "model.layers." + std::to_string(e / 64) + ".mlp.experts." + std::to_string(e % 64) + ".up_proj.weight";
    tensors.push_back({name, "F8_E4M3", rows, columns, rows * columns});
    tensors.push_back({name + "_scale_inv", "F32", rows / block, columns / block, scales * 4});
    for (auto& w : weights) w.resize(rows * columns);
    for (std::size_t i = 0; i < rows * columns; ++i) {
      weights[0][i] = static_cast<float>(0.02 * random.next());
      weights[1][i] = e % 10 == 0 ? static_cast<float>(weights[0][i] + 1e-5 * random.next()) : weights[0][i];
    }
    for (int v = 0; v < 2; ++v) {
      const std::size_t begin = versions[v].size();
      versions[v].resize(begin + each);
      std::byte* const to = versions[v].data() + begin;
      for (std::size_t s = 0; s < scales; ++s) {
        const std::size_t first = s / (columns / block) * block * columns + s % (columns / block) * block;
        float most = 0;
        for (std::size_t i = 0; i < block * block; ++i) most = std::max(most, std::fabs(weights[v][first + i / block * columns + i % block]));
        const float scale = most / 448;
        for (std::size_t i = 0; i < block * block; ++i) {
          const std::size_t at = first + i / block * columns + i % block;
          to[at] = static_cast<std::byte>(to_e4m3(weights[v][at] / scale));
        }
        std::memcpy(to + rows * columns + s * 4, &scale, 4);
      }
    }
  }
  out.write("moe-old", tensors, versions[0]);
  out.write("moe-new", tensors, versions[1]);
}

void write_chain(writer& out, std::size_t bytes, std::uint64_t seed) {
  constexpr int steps = 32;
  const std::size_t n = bytes / 2;
  const auto tensors = equal_tensors(64, bytes, "BF16", 2);
  normal_source random(seed);
  std::vector<float> master(n), momentum(n, 0);
  std::vector<std::byte> published(n * 2);
  for (auto& w : master) w = static_cast<float>(0.02 * random.next());
  for (int step = 0; step <= steps; ++step) {
    for (std::size_t i = 0; step > 0 && i < n; ++i) {
      momentum[i] = static_cast<float>(0.9 * momentum[i] + 0.1 * random.next());
      master[i] = static_cast<float>(master[i] - 1e-6 * momentum[i]);
    }
    for (std::size_t i = 0; i < n; ++i) put(published, i, to_bf16(master[i]));
    const std::string number = std::to_string(step);
    out.write("chain-" + std::string(2 - number.size(), '0') + number, tensors, published);
  }
}

std::optional<std::size_t> size_of(const std::string& text) {
  char* unit = nullptr;
  const unsigned long long n = std::strtoull(text.c_str(), &unit, 10);
  for (const auto& [name, shift] : {std::pair("", 0), {"K", 10}, {"KiB", 10}, {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}})
    if (unit != text.c_str() && std::string_view(unit) == name) return static_cast<std::size_t>(n) << shift;
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t bytes = std::size_t(256) << 20;
  std::uint64_t seed = 1;
  std::vector<std::string> words;
  bool usable = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if ((word == "--bytes" || word == "--seed") && i + 1 < argc) {
      const auto value = size_of(argv[++i]);
      if (!value || (word == "--bytes" && *value < 1024)) usable = false;
      else if (word == "--bytes") bytes = *value / 1024 * 1024;
      else seed = *value;
    } else {
      words.push_back(word);
    }
  }
  std::map<std::string, std::function<void(writer&)>> pairs;
  for (const auto& k : workload::pair_kinds) pairs[std::string(k.name)] = [&, k](writer& w) { write_pair(w, std::string(k.name), k.letter, bytes, seed); };
  pairs["f"] = [&](writer& w) { write_shifted(w, "f", false, bytes, seed); };
  pairs["f2"] = [&](writer& w) { write_shifted(w, "f2", true, bytes, seed); };
  pairs["tiny"] = [&](writer& w) { write_tiny(w, bytes, seed); };
  pairs["moe"] = [&](writer& w) { write_moe(w, bytes, seed); };
  pairs["chain"] = [&](writer& w) { write_chain(w, bytes, seed); };
  for (std::size_t i = 1; i < words.size(); ++i)
    usable = usable && pairs.contains(words[i]);
  if (!usable || words.empty() || words[0].starts_with("-")) {
    std::fprintf(stderr, "usage: ddf-workload FOLDER [--bytes 256MiB] [--seed 1] [PAIR...]\npairs:");
    for (const auto& [name, write] : pairs) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::error_code ignored;
  std::filesystem::create_directories(words[0], ignored);
  writer out(words[0]);
  for (const auto& [name, write] : pairs)
    if (words.size() == 1 || std::find(words.begin() + 1, words.end(), name) != words.end()) write(out);
  return out.failed() ? 1 : 0;
}
