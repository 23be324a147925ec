// Any bytes as a record of the state folder: no crash, nothing out of proportion, and what parses writes back the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "lib/store/base_store.hpp"
#include "lib/store/published.hpp"
#include "lib/store/receive_records.hpp"
#include "lib/store/record.hpp"

using bytes = std::span<const std::byte>;

static void expect(bool condition) {
  if (!condition) std::abort();
}

static void parse_all(bytes record) {
  const auto same = [&](const std::vector<std::byte>& again) { return std::equal(record.begin(), record.end(), again.begin(), again.end()); };
  if (const auto p = ddf::parse_partial_record(record)) expect(same(ddf::write_record(*p)));
  if (const auto c = ddf::parse_committed_record(record)) expect(same(ddf::write_record(*c)));
  if (const auto t = ddf::parse_digest_record(record)) expect(same(ddf::write_record(*t)));
  if (const auto b = ddf::parse_base(record)) expect(same(ddf::write_base(*b)));
  if (const auto v = ddf::parse_published("name", record)) expect(same(ddf::write_published("name", *v)));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const bytes input = std::as_bytes(std::span(data, size));
  parse_all(input);
  // As the body of an intact record, so that the search is not stopped by the digest.
  for (const std::string_view magic : {"ddfpart1", "ddfdone1", "ddfdgst2", "ddfpubl2", "ddfbase1"}) parse_all(ddf::seal_record(magic, input));
  return 0;
}
