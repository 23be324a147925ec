#include "transports/fabric/process_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace ddf {

static constexpr std::array<char, 4> mark{'d', 'd', 'f', 'p'};

std::vector<std::byte> write_process_name(const process_name& n) {
  std::vector<std::byte> out(process_name::wire_size);   // read on the same host: its byte order
  std::memcpy(out.data(), mark.data(), 4);
  std::memcpy(out.data() + 4, &n.pid, 4);
  std::memcpy(out.data() + 8, &n.nonce, 8);
  return out;
}

std::optional<process_name> parse_process_name(std::span<const std::byte> bytes) {
  if (bytes.size() != process_name::wire_size || std::memcmp(bytes.data(), mark.data(), 4) != 0) return std::nullopt;
  process_name n;
  std::memcpy(&n.pid, bytes.data() + 4, 4);
  std::memcpy(&n.nonce, bytes.data() + 8, 8);
  if (n.pid <= 0) return std::nullopt;
  return n;
}

result<void> may_read_processes(fabric_calls& calls) {
  std::uint64_t there = 1, here = 0;
  const iovec from{&there, sizeof there}, to{&here, sizeof here};
  if (calls.process_read(::getpid(), {&to, 1}, {&from, 1}) != static_cast<ssize_t>(sizeof here))
    return fail(errc::unsupported, "processes may not read memory here (seccomp, a container without CAP_SYS_PTRACE); allow process_vm_readv, or repair over tcp", errno);
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope && scope > 0 && ::geteuid() != 0)
    return fail(errc::unsupported, "processes may not read each other's memory here (kernel.yama.ptrace_scope is " + std::to_string(scope) + "); set it to 0, or repair over tcp");
  return {};
}

int read_process(fabric_calls& calls, const process_name& from, std::uint64_t address, std::uint64_t key, std::span<std::byte> into) {
  std::array<std::uint64_t, 4> card{};   // magic, nonce, address, bytes
  std::size_t done = 0;
  while (done < into.size()) {   // the kernel may give less
    const auto at = address + done;
    const std::array<iovec, 2> theirs{iovec{reinterpret_cast<void*>(key), sizeof card}, iovec{reinterpret_cast<void*>(at), into.size() - done}};
    const std::array<iovec, 2> ours{iovec{card.data(), sizeof card}, iovec{into.data() + done, into.size() - done}};
    const ssize_t n = calls.process_read(from.pid, ours, theirs);
    if (n < 0) return errno;
    if (static_cast<std::size_t>(n) < sizeof card) return EFAULT;
    const auto& [magic, nonce, first, bytes] = card;
    if (magic != process_card::valid || address < first || address - first > bytes || into.size() > bytes - (address - first)) return EKEYREJECTED;
    if (nonce != from.nonce) return ESRCH;
    if (static_cast<std::size_t>(n) == sizeof card) return EFAULT;   // no byte of what was asked for
    done += static_cast<std::size_t>(n) - sizeof card;
  }
  return 0;
}

}  // namespace ddf
