#include "transports/fabric/fabric_calls.hpp"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

namespace ddf {

namespace {

// What libfabric exports; all else is called through the objects it makes (inline functions of its headers).
struct exports {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  std::string missing;   // empty: loaded
};

constexpr std::array taken_signals{SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT};

// Puts back the handlers of the signals that libraries below take over.
class kept_signals {
 public:
  kept_signals() : lock_(one_at_a_time()) {
    for (std::size_t i = 0; i < taken_signals.size(); ++i) ::sigaction(taken_signals[i], nullptr, &before_[i]);
  }
  kept_signals(const kept_signals&) = delete;
  kept_signals& operator=(const kept_signals&) = delete;
  ~kept_signals() {
    for (std::size_t i = 0; i < taken_signals.size(); ++i) ::sigaction(taken_signals[i], &before_[i], nullptr);
  }

 private:
  static std::mutex& one_at_a_time() {
    static std::mutex m;
    return m;
  }
  std::lock_guard<std::mutex> lock_;
  std::array<struct sigaction, taken_signals.size()> before_{};
};

// Nothing that the user has set is overridden.
void set_environment() {
  ::setenv("HFI_NO_BACKTRACE", "1", 0);      // libpsm2: no signal handlers
  ::setenv("IPATH_NO_BACKTRACE", "1", 0);    // libpsm_infinipath: likewise
  ::setenv("FI_AV_REMOVE_CLEANUP", "1", 0);  // ofi_rxm: an address that is removed takes its connection along
  ::setenv("FI_UNIVERSE_SIZE", "64", 0);    // ofi_rxm: its completion queue has 256 entries for each; of 128 that is one more than soft-RoCE has
  ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "16", 0);   // buffers for messages, of which there are none: 18 MB an endpoint, not 70, and 17 ms, not 80
}

template <class F>
bool find(void* library, const char* name, const char* version, F& out) {
  void* found = ::dlvsym(library, name, version);
  if (found == nullptr) found = ::dlsym(library, name);
  out = reinterpret_cast<F>(found);
  return found != nullptr;
}

exports load_exports() {
  exports e;
  const kept_signals kept;
  set_environment();
  void* library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);   // for good: providers start threads and register exits
  if (library == nullptr) {
    const char* why = ::dlerror();
    e.missing = why != nullptr ? why : "libfabric.so.1 cannot be loaded";
    return e;
  }
  // The versions whose structures are those of the headers this is built with.
  if (!find(library, "fi_getinfo", "FABRIC_1.3", e.getinfo) || !find(library, "fi_freeinfo", "FABRIC_1.3", e.freeinfo) ||
      !find(library, "fi_dupinfo", "FABRIC_1.3", e.dupinfo) || !find(library, "fi_fabric", "FABRIC_1.1", e.fabric) ||
      !find(library, "fi_strerror", "FABRIC_1.0", e.strerror))
    e.missing = "libfabric.so.1 lacks functions of version 1.17";
  return e;
}

const exports& loaded() {
  static const exports e = load_exports();
  return e;
}

}  // namespace

result<void> fabric_calls::load() {
  if (!loaded().missing.empty())
    return fail(errc::unsupported, "libfabric is needed to repair over a fabric and is not here (" + loaded().missing + "); install libfabric1, or repair over udp");
  return {};
}

int fabric_calls::getinfo(const char* node, const char* service, std::uint64_t flags, const fi_info* hints, fi_info** out) {
  const kept_signals kept;   // providers are initialised by the first call
  return loaded().getinfo(FI_VERSION(1, 17), node, service, flags, hints, out);
}

int fabric_calls::fabric(fi_info* info, fid_fabric** out) { return loaded().fabric(info->fabric_attr, out, nullptr); }
int fabric_calls::domain(fid_fabric* fabric, fi_info* info, fid_domain** out) { return ::fi_domain(fabric, info, out, nullptr); }

int fabric_calls::av_open(fid_domain* domain, std::size_t addresses, fid_av** out) {
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  attributes.count = addresses;
  return ::fi_av_open(domain, &attributes, out, nullptr);
}

int fabric_calls::cq_open(fid_domain* domain, std::size_t entries, bool waitable, fid_cq** out) {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_CONTEXT;
  attributes.size = entries;
  attributes.wait_obj = waitable ? FI_WAIT_FD : FI_WAIT_NONE;
  return ::fi_cq_open(domain, &attributes, out, nullptr);
}

int fabric_calls::endpoint(fid_domain* domain, fi_info* info, fid_ep** out) {
  return ::fi_endpoint(domain, info, out, nullptr);
}

int fabric_calls::bind(fid_ep* endpoint, fid* to, std::uint64_t flags) { return ::fi_ep_bind(endpoint, to, flags); }
int fabric_calls::enable(fid_ep* endpoint) { return ::fi_enable(endpoint); }
int fabric_calls::getname(fid_ep* endpoint, void* out, std::size_t* bytes) { return ::fi_getname(&endpoint->fid, out, bytes); }

int fabric_calls::mr_reg(fid_domain* domain, std::span<std::byte> bytes, std::uint64_t access, std::uint64_t wanted_key, fid_mr** out) {
  return ::fi_mr_reg(domain, bytes.data(), bytes.size(), access, 0, wanted_key, 0, out, nullptr);
}

int fabric_calls::av_insert(fid_av* av, const void* address, std::uint64_t* out) {
  const int n = ::fi_av_insert(av, address, 1, out, 0, nullptr);
  return n == 1 ? 0 : n < 0 ? n : -FI_EINVAL;
}

int fabric_calls::av_remove(fid_av* av, std::uint64_t address) { return ::fi_av_remove(av, &address, 1, 0); }

ssize_t fabric_calls::read(fid_ep* endpoint, void* into, std::size_t bytes, void* descriptor, std::uint64_t from, std::uint64_t address, std::uint64_t key, void* context) {
  return ::fi_read(endpoint, into, bytes, descriptor, from, address, key, context);
}

ssize_t fabric_calls::cq_read(fid_cq* cq, std::span<fabric_completion> out) {
  std::array<fi_cq_entry, 32> entries;
  const ssize_t n = ::fi_cq_read(cq, entries.data(), std::min(entries.size(), out.size()));
  if (n >= 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) out[i] = {entries[i].op_context, 0, 0};
    return n;
  }
  if (n == -FI_EAGAIN) return 0;
  if (n != -FI_EAVAIL) return n;
  fi_cq_err_entry failed{};
  const ssize_t m = ::fi_cq_readerr(cq, &failed, 0);
  if (m == -FI_EAGAIN) return 0;
  if (m < 0) return m;
  out[0] = {failed.op_context, failed.err == 0 ? FI_EIO : std::abs(failed.err), failed.prov_errno};
  return 1;
}

int fabric_calls::trywait(fid_fabric* fabric, fid_cq* cq) {
  fid* fids[] = {&cq->fid};
  return ::fi_trywait(fabric, fids, 1);
}

ssize_t fabric_calls::process_read(pid_t process, std::span<const iovec> into, std::span<const iovec> from) {
  return ::process_vm_readv(process, into.data(), into.size(), from.data(), from.size(), 0);
}

fabric_calls& libfabric() {
  static fabric_calls calls;
  return calls;
}

fi_info* new_info() { return loaded().dupinfo(nullptr); }
void free_info(fi_info* info) { loaded().freeinfo(info); }
std::string fabric_words(int code) { return loaded().missing.empty() ? loaded().strerror(code) : "error " + std::to_string(code); }

}  // namespace ddf
