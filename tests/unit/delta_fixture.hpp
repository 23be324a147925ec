// What tests of deltas in the store share: sources that count, sinks that fail, deltas made and applied, safetensors files.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lib/model/prng.hpp"
#include "lib/store/delta_apply.hpp"
#include "lib/store/delta_make.hpp"
#include "tests/support/allocations.hpp"
#include "tests/unit/store_fixture.hpp"

namespace ddf::test {

using kind = delta::stream_row::kind;
using byte_vector = std::vector<std::byte>;
using namespace std::chrono_literals;

// On threads of the library: Boost.Test is for one thread.
inline void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class counting_source final : public object_source {   // reads strings, and says which bytes
 public:
  explicit counting_source(const content& c, bool views = false) : content_(c), views_(views) {}

  result<void> read(std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) override {
    expect(offset + out.size() <= content_.parts.at(part).size(), "a read past the end");
    std::memcpy(out.data(), content_.parts[part].data() + offset, out.size());
    const std::lock_guard lock(mutex_);
    seen_.insert(begin(part) + offset, begin(part) + offset + out.size());
    return {};
  }
  std::span<const std::byte> view(std::uint32_t part, std::uint64_t offset, std::uint64_t n) override {
    return views_ ? std::as_bytes(std::span(content_.parts.at(part))).subspan(offset, n) : std::span<const std::byte>{};
  }
  result<void> check_unchanged() override { return {}; }
  digest identity() const override { return {}; }

  const range_set& seen() const { return seen_; }   // offsets in the object

 private:
  std::uint64_t begin(std::uint32_t part) const {
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < part; ++i) at += content_.parts[i].size();
    return at;
  }
  const content& content_;
  const bool views_;
  std::mutex mutex_;
  range_set seen_;
};

class string_sink final : public object_sink {   // writes to strings, and knows how often and where
 public:
  explicit string_sink(const content& c, int fails_at = 0) : left_(fails_at) {
    for (const std::string& p : c.parts) parts.emplace_back(p.size(), '?');
    written.resize(parts.size());
  }
  result<void> write(std::uint32_t part, std::uint64_t offset, std::span<const iovec> pieces) override {
    const std::lock_guard lock(mutex_);
    expect(!dead, "a write after the end");
    if (left_ > 0 && --left_ == 0) return fail(errc::io, "writing 'x' failed", ENOSPC);
    for (const iovec& p : pieces) {
      expect(offset + p.iov_len <= parts.at(part).size(), "a write past the end");
      std::memcpy(parts[part].data() + offset, p.iov_base, p.iov_len);
      written[part].insert(offset, offset + p.iov_len);
      offset += p.iov_len;
    }
    ++writes;
    return {};
  }
  result<void> read(std::uint32_t, std::uint64_t, std::span<std::byte>) override { return {}; }
  result<std::string> commit(const digest_table&) override { return std::string(); }
  result<void> checkpoint(const range_set&) override { return {}; }
  result<void> keep(const range_set&) override { return {}; }
  void discard() override {}

  std::vector<std::string> parts;
  std::vector<range_set> written;
  int writes = 0;
  bool dead = false;

 private:
  std::mutex mutex_;
  int left_;
};

inline delta_base base_over(const content& c, bool with_bytes = true, bool views = false) {
  delta_base b{version_id{7}, c.description, digests(c), nullptr};
  const auto kept = std::make_shared<const content>(c);
  if (with_bytes)
    b.bytes = std::make_shared<const object_bytes>(c.description, [kept](std::uint32_t part, std::uint64_t offset, std::span<std::byte> out) -> result<void> {
      std::memcpy(out.data(), kept->parts.at(part).data() + offset, out.size());
      return {};
    }, views ? [kept](std::uint32_t part, std::uint64_t offset, std::uint64_t n) { return std::as_bytes(std::span(kept->parts.at(part))).subspan(offset, n); } : object_bytes::part_view_of());
  return b;
}

inline const std::atomic<bool> go_on{false};

struct made {
  made_delta delta;
  digest_table table;
  byte_vector stream;
};

inline byte_vector stream_bytes(const made_delta& d, const content& target, const std::vector<range>& whole = {}) {
  const delta_object o = stream_of(d, digests(target).root, target.description.size(), whole);
  byte_vector out(o.bytes);
  DDF_REQUIRE_OK(o.source->read(0, 0, out));
  return out;
}

inline made make(const content& from, const content& to, const delta_options& how = {}, bool with_bytes = true, bool digests_known = false) {
  counting_source source(to, how.profile == delta::profile::fast);
  made m;
  if (digests_known) m.table = digests(to);
  auto d = make_delta(to.description, source, m.table, digests_known, base_over(from, with_bytes), how, go_on);
  DDF_REQUIRE_OK(d);
  m.delta = std::move(*d);
  BOOST_TEST((m.table.blocks == digests(to).blocks && m.table.root == digests(to).root));
  m.stream = stream_bytes(m.delta, to);
  return m;
}

// An applier of a stream, with its end as a future.
struct application {
  application(const content& target, std::uint64_t stream_bytes, delta_base base, std::shared_ptr<object_sink> to, unsigned threads = 2) : application(target, stream_bytes, [base] { return result<delta_base>(base); }, std::move(to), threads) {}
  application(const content& target, std::uint64_t stream_bytes, std::function<result<delta_base>()> open, std::shared_ptr<object_sink> to, unsigned threads = 2) {
    auto file = scratch_file::make("");
    DDF_REQUIRE_OK(file);
    scratch = *file;
    applier.emplace(delta_applier::task{scratch, stream_bytes, target.description, digests(target).root, std::move(open), std::move(to), threads}, [this](result<patch> p, double) {
      allocated = bytes_allocated();
      expect(!dead, "an outcome after the end");
      ended.set_value(std::move(p));
    });
  }
  void arrives(std::uint64_t offset, std::span<const std::byte> piece) {
    DDF_REQUIRE_OK(scratch->write(offset, piece));
    applier->arrived(offset, piece.size());
  }
  void arrives_whole(std::span<const std::byte> stream) {
    arrives(0, stream);
    applier->complete();
  }
  result<patch> end() {
    BOOST_REQUIRE(is_over(60s));
    return outcome.get();
  }
  bool is_over(std::chrono::milliseconds within) { return outcome.wait_for(within) == std::future_status::ready; }
  std::shared_ptr<scratch_file> scratch;
  std::promise<result<patch>> ended;
  std::future<result<patch>> outcome = ended.get_future();
  std::atomic<bool> dead = false;
  std::size_t allocated = 0;
  std::optional<delta_applier> applier;
};

inline range_set all_rows(const content& c) {
  range_set out;
  out.insert(0, c.description.blocks());
  return out;
}

// Each block that counts as made is written and right; each that does not was never written.
inline void check_rows(const content& target, const string_sink& sink, const range_set& rows) {
  const auto places = block_places(target.description);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const block_place& p = places[i];
    if (rows.contains(i)) BOOST_REQUIRE((sink.parts[p.part].compare(p.offset, p.bytes, target.parts[p.part], p.offset, p.bytes) == 0));
    else BOOST_REQUIRE(!sink.written[p.part].intersects(p.offset, p.offset + p.bytes));
  }
}

inline void check_applies(const content& from, const content& target, const byte_vector& stream, const range_set& rows, unsigned threads = 2) {
  const auto sink = std::make_shared<string_sink>(target);
  application a(target, stream.size(), base_over(from), sink, threads);
  a.arrives_whole(stream);
  const auto p = a.end();
  DDF_REQUIRE_OK(p);
  BOOST_TEST((p->rows == rows));
  BOOST_TEST((p->table.blocks == digests(target).blocks));
  check_rows(target, *sink, p->rows);
}

struct named_tensor {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  std::string data;
};

inline std::string safetensors(const std::vector<named_tensor>& tensors, std::size_t more_header = 0) {
  std::string json = "{\"__metadata__\":{\"note\":\"" + std::string(more_header, 'x') + "\"}", data;
  for (const named_tensor& t : tensors) {
    json += ",\"" + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < t.shape.size(); ++i) json += (i ? "," : "") + std::to_string(t.shape[i]);
    json += "],\"data_offsets\":[" + std::to_string(data.size()) + "," + std::to_string(data.size() + t.data.size()) + "]}";
    data += t.data;
  }
  json += '}';
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[static_cast<std::size_t>(i)] = static_cast<char>(json.size() >> 8 * i & 0xff);
  return length + json + data;
}

inline std::string bf16(std::size_t n, std::uint32_t seed) {   // weights of one order of magnitude
  std::string out = pattern(2 * n, seed);
  for (std::size_t i = 1; i < out.size(); i += 2) out[i] = static_cast<char>((out[i] & 0x80) | 0x3c | (out[i] & 3));
  return out;
}

inline std::string stepped(std::string data, std::uint64_t seed, unsigned one_in = 75) {   // some elements by their last bit
  prng random(seed);
  for (std::size_t i = 0; i + 1 < data.size(); i += 2)
    if (random.next() % one_in == 0) data[i] = static_cast<char>(data[i] + 1);
  return data;
}

inline std::vector<named_tensor> model(std::uint32_t seed = 1) {
  return {{"wte", "BF16", {300, 501}, bf16(300 * 501, seed)}, {"scale", "BF16", {}, bf16(1, seed + 1)}, {"none", "BF16", {0, 7}, ""}, {"h.0", "BF16", {100'001}, bf16(100'001, seed + 2)},
          {"odd", "U8", {777}, pattern(777, seed + 3)}, {"h.1", "BF16", {256, 256}, bf16(256 * 256, seed + 4)}};
}

inline std::vector<named_tensor> step(std::vector<named_tensor> m, std::uint64_t seed = 5) {
  for (named_tensor& t : m)
    if (t.dtype == "BF16") t.data = stepped(t.data, seed++);
  return m;
}

inline std::vector<named_tensor> subset(const std::vector<named_tensor>& m, std::initializer_list<std::size_t> which) {
  std::vector<named_tensor> out;
  for (const std::size_t i : which) out.push_back(m[i]);
  return out;
}

inline content file(const std::string& data) { return file_content("w.safetensors", data); }
inline content shards(const std::vector<std::pair<std::string, std::string>>& files) { return folder_content("w", files); }

}  // namespace ddf::test
