#include "transports/fabric/fabric_error.hpp"

#include <rdma/fi_errno.h>

#include <array>
#include <cerrno>

#include "transports/fabric/process_memory.hpp"

namespace ddf {

namespace {

// Statuses of verbs work completions (enum ibv_wc_status), as completions of "verbs;ofi_rxm" carry them.
enum : int {
  wc_length = 1,
  wc_protection = 4,
  wc_flushed = 5,
  wc_remote_invalid = 9,
  wc_remote_access = 10,
  wc_remote_operation = 11,
  wc_retries = 12,
  wc_rnr_retries = 13,
};

bool over(std::string_view provider, std::string_view core) { return provider.starts_with(core); }

std::string_view attempt(fabric_step step) {
  static constexpr std::array<std::string_view, 8> words{
      "finding a provider", "opening an endpoint", "opening a completion queue", "enabling an endpoint",
      "registering memory", "taking a peer's address", "reading from a peer", "making progress"};
  return words[static_cast<std::size_t>(step)];
}

std::string_view cure_of_verbs_status(int status) {
  switch (status) {
    case wc_length: case wc_protection: return "the memory read into is not, or no longer, registered for it";
    case wc_flushed: return "the connection was lost; the next read opens another";
    case wc_remote_invalid: case wc_remote_access: return "the peer does not allow it: the key is of memory it has given up, or the range is outside; ask it again where the bytes are";
    case wc_remote_operation: return "the peer's device failed; see its kernel log";
    case wc_retries: return "the peer does not answer: it has ended, or its packets do not arrive; compare GID and MTU of both ports (ibv_devinfo -v), and PFC along the way";
    case wc_rnr_retries: return "the peer has no room for requests; it makes no progress, or is overloaded";
    default: return {};
  }
}

}  // namespace

std::string_view fabric_cure(std::string_view provider, fabric_step step, int code, int provider_code) {
  const bool verbs = over(provider, "verbs"), process = over(provider, process_provider);
  switch (step) {
    case fabric_step::find:
      if (verbs) return "no RDMA device is there, or none has this address; ibv_devinfo lists devices, and libibverbs needs the one's driver (rdma-core)";
      return "the address must be one of this host's; ip address lists them";
    case fabric_step::queue:
    case fabric_step::enable:
      if (verbs && code == FI_EINVAL) return "the device's completion queue is smaller than asked for; set FI_UNIVERSE_SIZE to 16 (64 when it is not set)";
      [[fallthrough]];
    case fabric_step::open:
    case fabric_step::reg:
      if (code == FI_EADDRINUSE) return "another process has this port; choose another, or none";
      if (code == FI_EADDRNOTAVAIL) return "the address must be one of this host's; ip address lists them";
      if (code == FI_ENOMEM && verbs) return "not enough memory may be locked; raise it (ulimit -l, memlock in /etc/security/limits.conf, LimitMEMLOCK= of the unit)";
      if (code == FI_ENOMEM) return "memory ran out; close other programs, or use less";
      if (code == FI_EMFILE) return "too many files are open; raise ulimit -n";
      if (code == FI_EACCES || code == FI_EPERM) return "the device's file may not be opened; see the permissions of /dev/infiniband";
      if (code == FI_EFAULT || (step == fabric_step::reg && code == FI_EINVAL)) return "the range is not memory of this process";
      return {};
    case fabric_step::address:
      if (code == FI_ENOMEM) return "memory ran out; use fewer peers";
      return "it is not one of this provider; both sides must use the same lane and provider";
    case fabric_step::read:
      if (process && code == FI_EPERM) return "the peer's memory may not be read; both must run as one user, or one be root (kernel.yama.ptrace_scope=0)";
      if (process && code == ESRCH) return "the peer has ended, or is in another PID namespace; across containers repair over tcp";
      if (verbs && provider_code > 0)
        if (const std::string_view cure = cure_of_verbs_status(provider_code); !cure.empty()) return cure;
      switch (code) {
        case FI_ETIMEDOUT: return "the peer does not answer, or not in time: see that it runs, is not stopped, and that no firewall is between";
        case FI_ECONNREFUSED: return "nobody listens at the peer's address; it has ended, or a firewall refuses";
        case FI_EHOSTUNREACH: case FI_ENETUNREACH: return "there is no way to the peer; both sides must be on one network (verbs: one kind of GID)";
        case FI_EADDRNOTAVAIL: return "the peer's address cannot be reached from the local one; choose another interface";
        case FI_ENOTCONN: case FI_ECONNRESET: case FI_ECONNABORTED: case FI_ESHUTDOWN: case FI_ECANCELED: case EPIPE:
          return "the connection was lost: the peer has ended, or refused the key or the range; the next read opens another";
        case FI_EACCES: case FI_EPERM: case FI_ENOKEY: case FI_EKEYREJECTED: case FI_EFAULT:
          return "the peer does not allow it: the key is of memory it has given up, or the range is outside; ask it again where the bytes are";
        case FI_EMSGSIZE: case FI_ETRUNC: case FI_ETOOSMALL: return "what the peer sent does not fit what was asked for; versions of libfabric may differ";
        case FI_ENOMEM: return "memory ran out, or not enough may be locked (ulimit -l)";
        case FI_EIO:
          return "the device or the connection failed; see the kernel log";
        default: return {};
      }
    case fabric_step::progress: return "the endpoint is of no use any more; open another";
  }
  return {};
}

static errc code_of(fabric_step step, int code) {
  switch (code) {
    case FI_ENOMEM: case FI_ENOSPC: case FI_EMFILE: return errc::too_large;
    case FI_EACCES: case FI_EPERM: case FI_ENOKEY: case FI_EKEYREJECTED: return errc::refused;
    case FI_EADDRNOTAVAIL: return step == fabric_step::read ? errc::network : errc::invalid_argument;
    case FI_ENOSYS: case FI_ENODATA: case FI_ENODEV: case FI_ENOPROTOOPT: return step == fabric_step::read ? errc::network : errc::unsupported;
    case FI_EFAULT: if (step == fabric_step::read) return errc::refused; [[fallthrough]];
    case FI_EINVAL: return step == fabric_step::reg || step == fabric_step::address ? errc::invalid_argument : errc::network;
    default: return errc::network;
  }
}

error fabric_error(std::string_view provider, fabric_step step, int code, int provider_code) {
  std::string text = std::string(attempt(step)) + " over " + std::string(provider);
  const std::string_view cure = fabric_cure(provider, step, code, provider_code);
  const bool is_errno = code < FI_EOTHER;
  if (!is_errno) text += " (" + fabric_words(code) + ")";
  if (!cure.empty()) text += ": " + std::string(cure);
  return {code_of(step, code), is_errno ? code : 0, std::move(text)};
}

}  // namespace ddf
