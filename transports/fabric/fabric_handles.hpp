// What libfabric opens for one endpoint, closed in the right order.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <ddf/options.hpp>
#include "transports/fabric/fabric_calls.hpp"

namespace ddf {

struct free_fi_info {
  void operator()(fi_info* i) const { free_info(i); }
};
using owned_info = std::unique_ptr<fi_info, free_fi_info>;

/// What the provider of the lane tcp or verbs offers on this host. `port` 0: any.
/// Errors: invalid_argument (not a lane of this transport, not a numeric address), unsupported with what is missing and the cure.
result<owned_info> find_provider(fabric_calls& calls, repair_lane lane, const std::string& local_address, std::uint16_t port);

class fabric_handles {
 public:
  static result<std::unique_ptr<fabric_handles>> open(fabric_calls& calls, owned_info info, std::size_t operations, std::size_t peers);
  /// For the lane between processes, which needs nothing of libfabric.
  static result<std::unique_ptr<fabric_handles>> open_processes(fabric_calls& calls);
  ~fabric_handles();
  fabric_handles(const fabric_handles&) = delete;
  fabric_handles& operator=(const fabric_handles&) = delete;
  /// Ends all connections and operations; what was being read into is not written to any more.
  void close_endpoint();

  fabric_calls& calls;
  const owned_info info;
  std::string provider;
  /// The provider's form of a peer's address; empty when it is of another provider. They do not understand each other, even over
  /// equal sockets.
  std::span<const std::byte> native_address(std::span<const std::byte> peer) const;
  std::span<const std::byte> native_address() const { return native_address(address); }

  std::vector<std::byte> address;    // of the endpoint: a byte that tells the provider, and its form
  int wait_descriptor = -1;          // readable when there may be progress; -1: only looking tells
  std::size_t message_max = 0;       // bytes of one operation

  // What a provider asks of its user, and how it behaves.
  bool local_descriptors = false, virtual_addresses = false, own_keys = false, endpoint_memory = false;
  bool by_socket = false;            // connections are TCP sockets of this process
  bool by_process = false;           // what follows is null: reads are process_vm_readv(2)
  std::uint64_t process_nonce = 0;
  bool bound = false;                // the endpoint, to its addresses

  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* endpoint = nullptr;

 private:
  fabric_handles(fabric_calls& c, owned_info i);
  explicit fabric_handles(fabric_calls& c) : calls(c) {}
};

}  // namespace ddf
