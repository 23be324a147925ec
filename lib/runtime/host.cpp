#include "lib/runtime/host.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>

namespace ddf {

time_point now() { return time_point(std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch())); }

std::uint64_t random_number() {
  std::uint64_t n = 0;
  while (n == 0)
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = 0;
  return n;
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == 0) return "host";
  return buffer.data();
}

std::string default_state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') return std::string(state) + "/ddf";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return std::string(home) + "/.local/state/ddf";
  return {};
}

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 1ull << 30;
}

}  // namespace ddf
