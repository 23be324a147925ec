// Any bytes as head and index of a delta: refused, or every row within its bounds and written back to the same bytes.
#include "codecs/delta/stream.hpp"
#include "tests/support/fuzz_input.hpp"

using namespace ddf::delta;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ddf::test::fuzz_input in(data, size);
  const std::uint64_t rows = in.u8();
  std::vector<ddf::digest> base(in.u8());
  for (std::size_t i = 0; i < base.size(); ++i) base[i].bytes.fill(static_cast<std::byte>(i));
  const std::uint64_t payload = in.u32();
  const bool exact = in.flag();   // the head's word for the length of the index, or what is there
  const auto front = in.bytes(size);
  auto head = parse_stream_head(front);
  if (!head) {
    FUZZ_CHECK(head.error().code == ddf::errc::integrity);
    return 0;
  }
  const auto index = std::span(front).subspan(stream_head::wire_size);
  if (!exact) head->index_bytes = static_cast<std::uint32_t>(index.size());
  if (head->index_bytes != index.size()) return 0;
  auto parsed = parse_stream_index(*head, index, base, rows, front.size() + payload);
  if (!parsed) {
    FUZZ_CHECK(parsed.error().code == ddf::errc::integrity || parsed.error().code == ddf::errc::stale_base);
    return 0;
  }
  FUZZ_CHECK(parsed->size() == rows && index.size() <= index_bytes_max(rows));
  std::uint64_t at = front.size();
  for (const stream_row& r : *parsed) {
    if (r.by == stream_row::kind::keep) FUZZ_CHECK(r.base_row < base.size() && r.result == base[r.base_row]);
    if (r.by != stream_row::kind::patch) continue;
    FUZZ_CHECK(r.offset == at);
    at += r.bytes;
  }
  FUZZ_CHECK(at == front.size() + payload);
  const auto again = write_stream_head(*head, *parsed);
  if (exact) FUZZ_CHECK(std::equal(again.begin(), again.end(), front.begin(), front.end()));
  else FUZZ_CHECK(std::equal(again.begin() + stream_head::wire_size, again.end(), index.begin(), index.end()));
  return 0;
}
