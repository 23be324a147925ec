// Whatever became of a model from one version to the next: regions cover the target and lie within the base, and what is
// encoded along them makes the target again.
#include "codecs/delta/align.hpp"

#include <boost/test/unit_test.hpp>
#include <rapidcheck/boost_test.h>

#include "tests/support/weights.hpp"

using namespace ddf;
using namespace ddf::test;

namespace {

struct type {
  const char* name;
  std::size_t width;
};

weights some_tensor(unsigned number) {
  static const std::vector<type> types{{"BF16", 2}, {"F32", 4}, {"F64", 8}, {"F8_E4M3", 1}, {"I64", 8}, {"BOOL", 1}};
  const type t = *rc::gen::elementOf(types);
  const auto elements = *rc::gen::oneOf(rc::gen::inRange<std::size_t>(0, 4), rc::gen::inRange<std::size_t>(4, 3000), rc::gen::inRange<std::size_t>(3000, 60'000));
  weights w{"layer." + std::to_string(number), t.name, "[" + std::to_string(elements) + "]", {}};
  w.bytes = t.width == 2 ? bf16_weights(number, elements) : noise(number, elements * t.width);
  return w;
}

// Files with the tensors in this order, each file a run of them; or a single file.
object files_of(const std::vector<weights>& tensors, bool folder, const std::string& metadata) {
  if (!folder) return file_object(safetensors(tensors, metadata));
  const auto cut = *rc::gen::inRange<std::size_t>(0, tensors.size() + 1);
  const auto at = tensors.begin() + static_cast<std::ptrdiff_t>(cut);
  std::vector<std::pair<std::string, bytes_of>> files{{"1.safetensors", safetensors({tensors.begin(), at}, metadata)}, {"2.safetensors", safetensors({at, tensors.end()})}};
  if (*rc::gen::arbitrary<bool>()) files.push_back({"config.json", noise(cut, *rc::gen::inRange<std::size_t>(0, 200))});
  return folder_object(files);
}

std::vector<weights> next_version(std::vector<weights> tensors) {
  for (auto& t : tensors) {
    switch (*rc::gen::inRange(0, 8)) {
      case 0: t.bytes = stepped(t.bytes, t.bytes.size(), 0.02); break;
      case 1: t.name = "new." + t.name; break;
      case 2: t = some_tensor(static_cast<unsigned>(t.bytes.size() + 1000)); break;
      default: break;
    }
  }
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  prng rng(seed);
  if (*rc::gen::arbitrary<bool>())
    for (std::size_t i = tensors.size(); i > 1; --i) std::swap(tensors[i - 1], tensors[rng.next() % i]);
  if (!tensors.empty() && *rc::gen::inRange(0, 4) == 0) tensors.pop_back();
  return tensors;
}

void check(const object& base, const object& target) {
  const auto regions = regions_of(base, target);
  RC_ASSERT(fault(regions, target.bytes.size(), base.bytes.size()) == "");
  const auto block = *rc::gen::elementOf(std::vector<std::uint32_t>{64 << 10, 65'537, 4 << 20});
  const auto made = delta_of(base, target, block);
  RC_ASSERT(made.equal);
  RC_ASSERT(made.how.total().target_bytes == target.bytes.size());
  RC_ASSERT(made.how.total().payload_bytes == made.bytes);
}

}  // namespace

RC_BOOST_PROP(delta_align_makes_any_next_version_of_a_model, ()) {
  std::vector<weights> tensors;
  const auto count = *rc::gen::inRange(0u, 8u);
  for (unsigned i = 0; i < count; ++i) tensors.push_back(some_tensor(i));
  const bool folder = *rc::gen::arbitrary<bool>();
  const auto base = files_of(tensors, folder, "");
  const auto target = files_of(next_version(tensors), folder != (*rc::gen::inRange(0, 8) == 0), std::string(*rc::gen::inRange<std::size_t>(0, 2000), 'm'));
  check(base, target);
}

RC_BOOST_PROP(delta_align_makes_any_pieces_of_an_untyped_file, ()) {
  const auto old = noise(*rc::gen::inRange<std::uint64_t>(0, 4), *rc::gen::inRange<std::size_t>(0, 600'000));
  bytes_of now;
  const auto pieces = *rc::gen::inRange(0, 5);
  for (int i = 0; i < pieces; ++i) {
    if (*rc::gen::inRange(0, 3) == 0) {
      const auto in = noise(99 + static_cast<std::uint64_t>(i), *rc::gen::inRange<std::size_t>(0, 100'000));
      now.insert(now.end(), in.begin(), in.end());
    } else {
      const auto first = *rc::gen::inRange<std::size_t>(0, old.size() + 1), last = *rc::gen::inRange<std::size_t>(first, old.size() + 1);
      now.insert(now.end(), old.begin() + static_cast<std::ptrdiff_t>(first), old.begin() + static_cast<std::ptrdiff_t>(last));
    }
  }
  check(folder_object({{"a.bin", old}}), folder_object({{*rc::gen::arbitrary<bool>() ? "a.bin" : "b.bin", now}}));
}
