// ddf-delta: what the delta codecs make of two files or folders, one thread, without the transfer; for bench/delta_side_by_side.
//
//   ddf-delta make OLD NEW DELTA [--fast] [--block BYTES] [--changed]
//                                             prints one line of JSON: sizes, seconds, the operations; elements that differ
//   ddf-delta apply OLD DELTA OUT             OUT gets all bytes, of a folder its files one after the other
//
// DELTA: u64 number of blocks (little-endian); of each block its bytes and those of its payload as varints, then the payload.
// No digests: whether OUT is NEW is for who calls it to see.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "codecs/delta/block.hpp"
#include "codecs/delta/varint64.hpp"
#include "codecs/delta/workspace.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddf;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "ddf-delta: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(result<T> r) {
  if (!r) die(describe(r.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

class mapping {   // a file in memory, read-only
 public:
  explicit mapping(const fs::path& path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat s {};
    if (fd_ < 0 || ::fstat(fd_, &s) != 0) die("cannot open " + path.string() + ": " + std::strerror(errno));
    size_ = static_cast<std::size_t>(s.st_size);
    if (size_ > 0) at_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
    if (at_ == MAP_FAILED) die("cannot map " + path.string() + ": " + std::strerror(errno));
  }
  mapping(const mapping&) = delete;
  ~mapping() {
    if (at_ != nullptr) ::munmap(at_, size_);
    ::close(fd_);
  }
  // For samples: a page that is touched only once costs less to read than to map.
  bool read(std::uint64_t offset, std::span<std::byte> out) const {
    return ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(out.size());
  }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(at_), size_}; }

 private:
  int fd_ = -1;
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

class object final : public delta::base_bytes {
 public:
  explicit object(const fs::path& path) {
    manifest_.name = path.filename().string();
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
      manifest_.kind = object_kind::folder;
      for (const auto& e : fs::recursive_directory_iterator(path))
        if (e.is_regular_file()) files.push_back(e.path());
      std::sort(files.begin(), files.end());
    } else {
      files.push_back(path);
    }
    for (const auto& f : files) {
      starts_.push_back(size_);
      maps_.push_back(std::make_unique<mapping>(f));
      size_ += maps_.back()->bytes().size();
      manifest_.parts.push_back({manifest_.kind == object_kind::folder ? fs::relative(f, path).string() : "", maps_.back()->bytes().size()});
    }
  }

  const ddf::manifest& manifest() const { return manifest_; }
  std::uint64_t size() const override { return size_; }

  result<std::span<const std::byte>> at(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& room) const override {
    if (bytes > size_ || offset > size_ - bytes) return fail(errc::io, "read beyond " + manifest_.name);
    std::size_t i = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin()) - 1;
    std::uint64_t within = offset - starts_[i];
    if (bytes <= maps_[i]->bytes().size() - within) return maps_[i]->bytes().subspan(within, bytes);
    room.resize(bytes);
    for (std::size_t done = 0; done < bytes; ++i, within = 0) {
      const auto part = maps_[i]->bytes().subspan(within);
      const std::size_t n = std::min(part.size(), bytes - done);
      std::copy_n(part.begin(), n, room.begin() + static_cast<std::ptrdiff_t>(done));
      done += n;
    }
    return std::span<const std::byte>(room);
  }

  delta::read_function reads() const {
    return [this](std::uint64_t offset, std::span<std::byte> out) -> result<void> {
      if (out.size() > size_ || offset > size_ - out.size()) return fail(errc::io, "read beyond " + manifest_.name);
      std::size_t i = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin()) - 1;
      for (std::uint64_t within = offset - starts_[i]; !out.empty(); ++i, within = 0) {
        const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(maps_[i]->bytes().size() - within, out.size()));
        if (!maps_[i]->read(within, out.first(n))) return fail(errc::io, "cannot read " + manifest_.name, errno);
        out = out.subspan(n);
      }
      return {};
    };
  }

 private:
  ddf::manifest manifest_;
  std::vector<std::unique_ptr<mapping>> maps_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t size_ = 0;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::FILE* f = std::fopen(path.c_str(), "wb");
  if (f == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), f) != bytes.size() || std::fclose(f) != 0) die("cannot write " + path.string());
}

// Elements of the target that differ from what their region says; of untyped bytes only where there is nothing else, since in a
// header that moved all bytes differ.
std::uint64_t changed_elements(const std::vector<delta::region>& regions, const object& old, const object& wanted) {
  std::uint64_t changed = 0;
  std::vector<std::byte> a_room, b_room;
  const bool typed = std::any_of(regions.begin(), regions.end(), [](const auto& r) { return r.element != delta::element::bytes; });
  for (const auto& r : regions) {
    if (typed && r.element == delta::element::bytes) continue;
    const std::size_t width = width_of(r.element);
    for (std::uint64_t at = 0; at < r.bytes;) {
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(r.bytes - at, 1 << 20));
      if (r.base_offset == delta::region::no_base) {
        changed += n / width;
      } else {
        const auto a = must(old.at(r.base_offset + at, n, a_room)), b = must(wanted.at(r.target_offset + at, n, b_room));
        for (std::size_t i = 0; i < n; i += width) changed += std::memcmp(a.data() + i, b.data() + i, std::min(width, n - i)) != 0;
      }
      at += n;
    }
  }
  return changed;
}

int make(const std::string& old_path, const std::string& new_path, const std::string& delta_path, delta::profile p, std::uint32_t block_bytes, bool count) {
  const object old(old_path), wanted(new_path);
  if (block_bytes == 0) block_bytes = block_bytes_for(wanted.size());
  const double began = now();
  std::vector<std::string> warnings;
  const auto base = must(delta::tensor_map_of(old.manifest(), old.reads())), target = must(delta::tensor_map_of(wanted.manifest(), wanted.reads(), &warnings));
  const double mapped = now();
  const auto regions = must(delta::align(base, old.reads(), target, wanted.reads()));
  const double aligned = now();
  for (const auto& w : warnings) std::fprintf(stderr, "ddf-delta: %s\n", w.c_str());

  delta::workspace w;
  delta::account how;
  std::vector<std::byte> out(8), payload, room;
  std::uint64_t offset = 0, blocks = 0, regions_without_base = 0, unchanged = 0;
  for (const part& part : wanted.manifest().parts) {
    for (std::uint64_t at = 0; at < part.size; at += block_bytes) {
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, part.size - at));
      payload.clear();
      must(delta::encode_block(w, offset + at, must(wanted.at(offset + at, n, room)), regions, old, p, payload, &how));
      delta::put_varint64(out, n);
      delta::put_varint64(out, payload.size());
      out.insert(out.end(), payload.begin(), payload.end());
      unchanged += payload.empty();
      ++blocks;
    }
    offset += part.size;
  }
  for (unsigned i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(blocks >> (8 * i));
  const double encoded = now();
  write_file(delta_path, out);
  for (const auto& r : regions) regions_without_base += r.base_offset == delta::region::no_base;

  static constexpr const char* names[] = {"keep", "replace", "sparse_context", "sparse_fast", "gather", "dense", "planes", "prefix"};
  std::string operations;
  for (std::size_t i = 0; i < how.by_operation.size(); ++i) {
    const auto& l = how.by_operation[i];
    if (l.records > 0)
      operations += std::string(operations.empty() ? "" : ", ") + "\"" + names[i] + "\": [" + std::to_string(l.records) + ", " + std::to_string(l.target_bytes) + ", " + std::to_string(l.payload_bytes) + "]";
  }
  std::printf("{\"bytes\": %llu, \"delta_bytes\": %zu, \"changed\": %llu, \"tensors\": %zu, \"regions\": %zu, \"regions_without_base\": %llu, \"blocks\": %llu, \"blocks_kept\": %llu, "
              "\"framing_bytes\": %llu, \"no_base_bytes\": %llu, \"map_seconds\": %.6f, \"align_seconds\": %.6f, \"encode_seconds\": %.6f, \"operations\": {%s}}\n",
              static_cast<unsigned long long>(wanted.size()), out.size(), static_cast<unsigned long long>(count ? changed_elements(regions, old, wanted) : 0), target.size(), regions.size(),
              static_cast<unsigned long long>(regions_without_base), static_cast<unsigned long long>(blocks), static_cast<unsigned long long>(unchanged),
              static_cast<unsigned long long>(how.framing_bytes), static_cast<unsigned long long>(how.no_base_bytes), mapped - began, aligned - mapped, encoded - aligned, operations.c_str());
  return 0;
}

int apply(const std::string& old_path, const std::string& delta_path, const std::string& out_path) {
  const object old(old_path);
  const mapping file(delta_path);
  std::span<const std::byte> in = file.bytes();
  if (in.size() < 8) die("the delta is cut short");
  std::uint64_t blocks = 0, offset = 0;
  for (unsigned i = 0; i < 8; ++i) blocks |= static_cast<std::uint64_t>(in[i]) << (8 * i);
  in = in.subspan(8);
  std::FILE* out = std::fopen(out_path.c_str(), "wb");
  if (out == nullptr) die("cannot write " + out_path);
  delta::workspace w;
  std::vector<std::byte> block;
  double seconds = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto bytes = delta::take_varint64(in), payload = delta::take_varint64(in);
    if (!bytes || !payload || *bytes > limits::block_bytes_max || *payload > in.size()) die("the delta is cut short");
    block.resize(static_cast<std::size_t>(*bytes));
    const double began = now();
    must(delta::apply_block(w, offset, in.first(static_cast<std::size_t>(*payload)), old, block));
    seconds += now() - began;
    if (std::fwrite(block.data(), 1, block.size(), out) != block.size()) die("cannot write " + out_path);
    in = in.subspan(static_cast<std::size_t>(*payload));
    offset += *bytes;
  }
  if (std::fclose(out) != 0) die("cannot write " + out_path);
  std::printf("{\"bytes\": %llu, \"apply_seconds\": %.6f}\n", static_cast<unsigned long long>(offset), seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  delta::profile p = delta::profile::tight;
  std::uint32_t block_bytes = 0;
  bool count = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--fast") p = delta::profile::fast;
    else if (word == "--changed") count = true;
    else if (word == "--block" && i + 1 < argc) block_bytes = static_cast<std::uint32_t>(std::stoul(argv[++i]));
    else words.push_back(word);
  }
  if (words.size() == 4 && words[0] == "make" && block_bytes <= limits::block_bytes_max) return make(words[1], words[2], words[3], p, block_bytes, count);
  if (words.size() == 4 && words[0] == "apply") return apply(words[1], words[2], words[3]);
  std::fprintf(stderr, "usage: ddf-delta make OLD NEW DELTA [--fast] [--block BYTES] [--changed]\n       ddf-delta apply OLD DELTA OUT\n");
  return 2;
}
