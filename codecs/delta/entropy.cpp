#include "codecs/delta/entropy.hpp"

#include <algorithm>
#include <bit>

#include "codecs/delta/bits.hpp"
#include "codecs/delta/kernels.hpp"
#include "codecs/delta/number.hpp"

namespace ddf::delta {
namespace {

enum class coding : std::uint8_t { raw = 0, constant = 1, rans = 2 };

constexpr unsigned precision_max = 12;

// Fewer symbols deserve a coarser table: it is part of what is sent.
unsigned precision_for(std::size_t symbols) {
  return symbols < 512 ? 9 : symbols < 2048 ? 10 : symbols < 8192 ? 11 : precision_max;
}

// Frequencies that sum to 2^precision, none of a symbol that occurs below 1. What rounding leaves over or takes too much goes to
// the largest, which feel it least.
std::array<std::uint16_t, 256> normalize(const histogram& h, std::uint64_t total, unsigned precision) {
  std::array<std::uint16_t, 256> f{};
  const std::uint32_t whole = 1u << precision;
  std::uint32_t sum = 0;
  for (std::size_t s = 0; s < 256; ++s) {
    if (h[s] == 0) continue;
    f[s] = static_cast<std::uint16_t>(std::max<std::uint64_t>(1, (std::uint64_t(h[s]) * whole + total / 2) / total));
    sum += f[s];
  }
  while (sum != whole) {
    auto& largest = *std::max_element(f.begin(), f.end());
    if (sum < whole) {
      largest = static_cast<std::uint16_t>(largest + (whole - sum));
      break;
    }
    const std::uint32_t less = std::min<std::uint32_t>(sum - whole, (largest + 3) / 4);
    largest = static_cast<std::uint16_t>(largest - less);
    sum -= less;
  }
  return f;
}

// Symbol by symbol: how the bit length of the frequency differs from the one before, in unary; then its lower bits.
void write_table(bit_writer& bits, const std::array<std::uint16_t, 256>& f, unsigned precision) {
  unsigned last = 255;
  while (f[last] == 0) --last;
  bits.put(precision - 9, 2);
  bits.put(last, 8);
  unsigned before = 4;
  for (unsigned s = 0; s <= last; ++s) {
    const auto length = static_cast<unsigned>(std::bit_width(f[s]));
    const unsigned step = length >= before ? 2 * (length - before) : 2 * (before - length) - 1;
    bits.put(std::uint64_t(1) << step, step + 1);
    if (length > 1) bits.put(f[s] & ((1u << (length - 1)) - 1), length - 1);
    before = length;
  }
}

bool read_table(bit_reader& bits, std::array<std::uint16_t, 256>& f, unsigned& precision) {
  bits.refill();
  precision = 9 + static_cast<unsigned>(bits.take(2));
  const auto last = static_cast<unsigned>(bits.take(8));
  int length = 4;
  std::uint32_t sum = 0;
  f.fill(0);
  for (unsigned s = 0; s <= last; ++s) {
    bits.refill();
    const auto step = static_cast<unsigned>(std::countr_zero(bits.peek() | std::uint64_t(1) << 30));
    bits.drop(step + 1);
    length += step % 2 == 0 ? static_cast<int>(step / 2) : -static_cast<int>(step / 2 + 1);
    if (length < 0 || length > static_cast<int>(precision)) return false;
    if (length > 0) f[s] = static_cast<std::uint16_t>(1u << (length - 1) | bits.take(static_cast<unsigned>(length - 1)));
    sum += f[s];
  }
  return sum == 1u << precision && bits.intact();
}

struct encoder_symbol {
  std::uint64_t reciprocal;   // 2^64 / frequency, rounded up; not for a frequency of 1
  std::uint32_t limit;        // a state from here on gives 16 bits first
  std::uint16_t frequency, start;
};

__extension__ using uint128 = unsigned __int128;

[[gnu::always_inline]] inline std::byte* put_symbol(std::uint32_t& state, const encoder_symbol& e, unsigned precision, std::byte* end) {
  std::uint32_t x = state;
  store(end - 2, static_cast<std::uint16_t>(x));   // whether it gives 16 bits cannot be predicted: written always, kept if so
  const std::uint32_t gives = x >= e.limit;
  x >>= 16 * gives;
  const std::uint32_t q = e.frequency == 1 ? x : static_cast<std::uint32_t>(uint128(x) * e.reciprocal >> 64);
  state = (q << precision) + (x - q * e.frequency) + e.start;
  return end - 2 * gives;
}

// Writes backwards from `end`; returns where it began. There is room for 2 bytes a symbol, the states and 2 bytes.
std::byte* encode_lanes(std::span<const std::uint8_t> symbols, const std::array<std::uint16_t, 256>& f, unsigned precision, std::byte* end) {
  std::array<encoder_symbol, 256> table;
  std::uint32_t start = 0;
  for (std::size_t s = 0; s < 256; ++s) {
    table[s] = {f[s] < 2 ? 0 : ~std::uint64_t(0) / f[s] + 1, 0, f[s], static_cast<std::uint16_t>(start)};
    table[s].limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(0xffffffff, (std::uint64_t(rans_low) << (16 - precision)) * f[s]));
    start += f[s];
  }
  const unsigned lanes = rans_lanes(symbols.size());
  std::array<std::uint32_t, rans_lanes_max> state;
  state.fill(rans_low);
  std::size_t i = symbols.size();
  for (; i % lanes != 0; --i) end = put_symbol(state[(i - 1) % lanes], table[symbols[i - 1]], precision, end);
  while (i != 0) {
    i -= lanes;
    for (unsigned lane = lanes; lane-- != 0;) end = put_symbol(state[lane], table[symbols[i + lane]], precision, end);
  }
  for (unsigned lane = lanes; lane-- != 0;) {
    end -= 4;
    store(end, state[lane]);
  }
  return end;
}

}  // namespace

histogram count_symbols(std::span<const std::uint8_t> symbols) {
  std::array<histogram, 4> part{};   // equal neighbours would wait for one another in a single one
  std::size_t i = 0;
  for (; i + 4 <= symbols.size(); i += 4)
    for (std::size_t j = 0; j < 4; ++j) ++part[j][symbols[i + j]];
  for (; i < symbols.size(); ++i) ++part[0][symbols[i]];
  for (std::size_t s = 0; s < 256; ++s) part[0][s] += part[1][s] + part[2][s] + part[3][s];
  return part[0];
}

std::uint64_t entropy_bits(const histogram& h) {
  std::uint64_t total = 0, sum = 0, used = 0, last = 0;
  for (std::size_t s = 0; s < 256; ++s) {
    if (h[s] == 0) continue;
    total += h[s];
    sum += std::uint64_t(h[s]) * log2_4096(h[s]);
    ++used;
    last = s;
  }
  if (used <= 1) return 16;
  const std::uint64_t coded = (total * log2_4096(total) - sum) >> 12;
  return 8 + std::min(8 * total, coded + 10 + 6 * used + last + 32 * rans_lanes(total));
}

void entropy_encode(workspace& w, std::span<const std::uint8_t> symbols, std::vector<std::byte>& out) {
  entropy_encode(w, symbols, count_symbols(symbols), out);
}

void entropy_encode(workspace& w, std::span<const std::uint8_t> symbols, const histogram& h, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  const auto bytes = std::as_bytes(symbols);
  const auto raw = [&] {
    out.resize(begin);
    out.push_back(static_cast<std::byte>(coding::raw));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  if (symbols.empty()) return raw();
  if (h[symbols[0]] == symbols.size()) {
    if (symbols.size() == 1) return raw();
    out.push_back(static_cast<std::byte>(coding::constant));
    out.push_back(bytes[0]);
    return;
  }
  if (symbols.size() > 64 && entropy_bits(h) / 8 > symbols.size() - symbols.size() / 128) return raw();
  const unsigned precision = precision_for(symbols.size());
  const auto f = normalize(h, symbols.size(), precision);
  out.push_back(static_cast<std::byte>(coding::rans));
  bit_writer table(out);
  write_table(table, f, precision);
  table.finish();
  const std::size_t room = 2 * symbols.size() + 4 * rans_lanes_max + 2;
  std::byte* const end = at_least(w.entropy_words, room) + room;
  std::byte* const first = encode_lanes(symbols, f, precision, end);
  if (out.size() - begin + static_cast<std::size_t>(end - first) > symbols.size()) return raw();
  out.insert(out.end(), first, end);
}

bool entropy_decode(workspace& w, std::span<const std::byte>& in, std::span<std::uint8_t> symbols) {
  if (in.empty()) return false;
  const auto mode = static_cast<coding>(in[0]);
  in = in.subspan(1);
  switch (mode) {
    case coding::raw:
      if (in.size() < symbols.size()) return false;
      if (!symbols.empty()) std::memcpy(symbols.data(), in.data(), symbols.size());
      in = in.subspan(symbols.size());
      return true;
    case coding::constant:
      if (in.empty()) return false;
      std::fill(symbols.begin(), symbols.end(), std::to_integer<std::uint8_t>(in[0]));
      in = in.subspan(1);
      return true;
    case coding::rans: break;
    default: return false;
  }
  bit_reader bits(in);
  std::array<std::uint16_t, 256> f;
  unsigned precision;
  if (!read_table(bits, f, precision)) return false;
  const auto rest = bits.rest();
  if (!rest) return false;
  in = *rest;
  std::uint32_t* slot = at_least(w.entropy_table, std::size_t(1) << precision_max);
  for (std::uint32_t s = 0; s < 256; ++s)
    for (std::uint32_t offset = 0; offset < f[s]; ++offset) *slot++ = rans_entry(s, f[s], offset);
  const unsigned lanes = rans_lanes(symbols.size());
  if (in.size() < 4 * lanes) return false;
  std::array<std::uint32_t, rans_lanes_max> state;
  for (unsigned lane = 0; lane < lanes; ++lane) state[lane] = load<std::uint32_t>(in.data() + 4 * lane);
  const std::byte* at = in.data() + 4 * lanes;
  const std::byte* const end = in.data() + in.size();
  std::size_t done = 0;
  if (lanes == rans_lanes_max) done = w.kernel->rans_decode(w.entropy_table.data(), precision, state.data(), at, end, symbols.data(), symbols.size());
  const std::uint32_t* const table = w.entropy_table.data();
  const std::uint32_t mask = (1u << precision) - 1;
  for (; done < symbols.size(); ++done) {
    std::uint32_t& x = state[done % lanes];
    const std::uint32_t e = table[x & mask];
    symbols[done] = static_cast<std::uint8_t>(e);
    x = ((e >> 8 & 0xfff) + 1) * (x >> precision) + (e >> 20);
    if (x >= rans_low) continue;
    if (end - at < 2) return false;
    x = x << 16 | load<std::uint16_t>(at);
    at += 2;
  }
  // The encoder began with these states, so that they are a check of all that was read.
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (state[lane] != rans_low) return false;
  in = {at, end};
  return true;
}

}  // namespace ddf::delta
