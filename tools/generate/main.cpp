// ddf-generate: writes a safetensors file with weights as a transformer has them, the same bytes for the same options.
//
// The file: u64 little-endian length of the header, the header (JSON, padded with blanks to 8 bytes), the tensors
// without holes. Matrices and embeddings are bf16, norms fp32; the values are normal with a standard deviation of
// 1/sqrt(width), so that a compressor finds in them what it finds in a real model.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "lib/model/prng.hpp"

namespace {

struct tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  bool bf16 = true;
  double scale = 1;  // standard deviation
  double centre = 0;

  std::uint64_t elements() const {
    std::uint64_t n = 1;
    for (const auto extent : shape) { n *= extent; }
    return n;
  }
  std::uint64_t element_bytes() const { return bf16 ? 2 : 4; }
  std::uint64_t bytes() const { return elements() * element_bytes(); }
};

// A small transformer, and after it as many layers as are needed to reach `bytes`.
std::vector<tensor> layout(std::uint64_t bytes, std::uint64_t width) {
  std::vector<tensor> tensors;
  std::uint64_t total = 0;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const auto matrix = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    tensors.push_back({name, {rows, columns}, true, scale, 0});
    total += tensors.back().bytes();
  };
  const auto vector = [&](const std::string& name, double centre, double deviation) {
    tensors.push_back({name, {width}, false, deviation, centre});
    total += tensors.back().bytes();
  };
  matrix("model.embed_tokens.weight", 8 * width, width);
  for (int layer = 0; layer == 0 || total < bytes; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    vector(prefix + "input_layernorm.weight", 1, 0.05);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      matrix(prefix + "self_attn." + name + ".weight", width, width);
    }
    vector(prefix + "post_attention_layernorm.weight", 1, 0.05);
    matrix(prefix + "mlp.up_proj.weight", 4 * width, width);
    matrix(prefix + "mlp.down_proj.weight", width, 4 * width);
  }
  vector("model.norm.weight", 1, 0.05);
  return tensors;
}

std::string header_of(std::span<const tensor> tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const auto& t : tensors) {
    header[t.name] = {
        {"dtype", t.bf16 ? "BF16" : "F32"}, {"shape", t.shape}, {"data_offsets", {offset, offset + t.bytes()}}};
    offset += t.bytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

// Normal values by the inverse of the distribution on a table: 2^16 quantiles are as fine as bf16 can show, and
// reading them costs less than computing logarithms and cosines for 10^9 weights.
std::vector<float> quantiles() {
  constexpr std::size_t count = std::size_t{1} << 16;
  std::vector<float> table(count);
  const auto distribution = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  double x = -5;
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    for (int step = 0; step < 8; ++step) {  // Newton; the neighbour's quantile is a good first guess
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
      x -= (distribution(x) - wanted) / std::max(density, 1e-7);
    }
    table[i] = static_cast<float>(x);
  }
  return table;
}

void write_little_endian(std::vector<char>& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) { out.push_back(static_cast<char>(value >> (8 * i))); }
}

std::uint32_t to_bf16(float value) {  // round to nearest, ties to even; no infinities here
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}

void write_tensor(std::ofstream& file, const tensor& t, std::span<const float> normal, ddf::prng& random) {
  std::vector<char> chunk;
  constexpr std::uint64_t chunk_elements = 1 << 18;
  for (std::uint64_t done = 0; done < t.elements();) {
    chunk.clear();
    const std::uint64_t count = std::min(chunk_elements, t.elements() - done);
    std::uint64_t bits = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      bits = i % 4 == 0 ? random.next() : bits >> 16;
      const auto value = static_cast<float>(t.centre + t.scale * static_cast<double>(normal[bits & 0xffff]));
      if (t.bf16) {
        write_little_endian(chunk, to_bf16(value), 2);
      } else {
        write_little_endian(chunk, std::bit_cast<std::uint32_t>(value), 4);
      }
    }
    file.write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    done += count;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a safetensors file of random weights; the same options give the same bytes.", "ddf-generate");
  std::string path;
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::uint64_t seed = 1;
  app.add_option("FILE", path, "where to write it")->required();
  app.add_option("--size", bytes, "at least that large, e.g. 64MiB (whole layers)")->transform(CLI::AsSizeValue(false));
  app.add_option("--seed", seed, "other weights of the same shape");
  CLI11_PARSE(app, argc, argv);

  const std::uint64_t width = bytes < (1U << 20) ? 64 : bytes < (256U << 20) ? 512 : 2048;
  const auto tensors = layout(bytes, width);
  const auto header = header_of(tensors);
  const auto normal = quantiles();
  ddf::prng random(seed);

  std::ofstream file(path, std::ios::binary);
  std::vector<char> length;
  write_little_endian(length, static_cast<std::uint32_t>(header.size()), 4);
  write_little_endian(length, 0, 4);
  file.write(length.data(), static_cast<std::streamsize>(length.size()));
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const auto& t : tensors) { write_tensor(file, t, normal, random); }
  file.close();
  if (!file) {
    std::fprintf(stderr, "ddf-generate: cannot write %s\n", path.c_str());
    return 1;
  }
}
