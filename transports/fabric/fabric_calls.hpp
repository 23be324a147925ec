// The calls below the fabric transport that can fail, as one interface: so that a test can make the nth of a kind fail.
//
// libfabric is loaded when it is first used, not linked. Loading it loads the libraries of every provider, and those of two
// (libpsm_infinipath, libpsm2) take over SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL and SIGABRT before main() runs; their handler
// can deadlock. Loaded late, with the variables set that keep them from it, they do not, and who never uses a fabric has none of it.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <ddf/error.hpp>

struct fi_info;
struct fid;
struct fid_av;
struct fid_cq;
struct fid_domain;
struct fid_ep;
struct fid_fabric;
struct fid_mr;

namespace ddf {

/// An operation that ended. `context` is what it was posted with; null where the provider does not say.
struct fabric_completion {
  void* context = nullptr;
  int code = 0;            // 0: well; libfabric's error, positive
  int provider_code = 0;   // what the provider adds, e.g. the status of a verbs work completion
};

/// All return 0 or libfabric's error, negative, unless said otherwise.
class fabric_calls {
 public:
  virtual ~fabric_calls() = default;

  /// Loads libfabric. Errors: unsupported, when it is not installed. Thread-safe.
  virtual result<void> load();
  virtual int getinfo(const char* node, const char* service, std::uint64_t flags, const fi_info* hints, fi_info** out);
  virtual int fabric(fi_info* info, fid_fabric** out);
  virtual int domain(fid_fabric* fabric, fi_info* info, fid_domain** out);
  virtual int av_open(fid_domain* domain, std::size_t addresses, fid_av** out);
  /// `waitable`: with a descriptor to wait on. -FI_ENOSYS where a provider has none.
  virtual int cq_open(fid_domain* domain, std::size_t entries, bool waitable, fid_cq** out);
  virtual int endpoint(fid_domain* domain, fi_info* info, fid_ep** out);
  virtual int bind(fid_ep* endpoint, fid* to, std::uint64_t flags);
  virtual int enable(fid_ep* endpoint);
  virtual int getname(fid_ep* endpoint, void* out, std::size_t* bytes);
  virtual int mr_reg(fid_domain* domain, std::span<std::byte> bytes, std::uint64_t access, std::uint64_t wanted_key, fid_mr** out);
  virtual int av_insert(fid_av* av, const void* address, std::uint64_t* out);
  virtual int av_remove(fid_av* av, std::uint64_t address);
  /// 0, -FI_EAGAIN: not now, or another error.
  virtual ssize_t read(fid_ep* endpoint, void* into, std::size_t bytes, void* descriptor, std::uint64_t from, std::uint64_t address, std::uint64_t key, void* context);
  /// How many ended, in `out`; 0: none.
  virtual ssize_t cq_read(fid_cq* cq, std::span<fabric_completion> out);
  /// 0: nothing can be missed by waiting on the descriptor; -FI_EAGAIN: look again first.
  virtual int trywait(fid_fabric* fabric, fid_cq* cq);
  /// process_vm_readv(2): bytes read, or -1 and errno.
  virtual ssize_t process_read(pid_t process, std::span<const iovec> into, std::span<const iovec> from);
};

/// libfabric itself.
fabric_calls& libfabric();

/// For hints; freed by free_info(), as what getinfo() gave. Null without memory. libfabric is loaded.
fi_info* new_info();
void free_info(fi_info* info);
/// libfabric's words for an error; `code` is positive. libfabric is loaded.
std::string fabric_words(int code);

}  // namespace ddf
