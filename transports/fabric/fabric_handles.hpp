// What libfabric opens for one endpoint, closed in the right order.
#pragma once
#include <memory>
#include <string>
#include <vector>
#include <ddf/options.hpp>
#include "transports/fabric/fabric_calls.hpp"

namespace ddf {

struct free_fi_info {
  void operator()(fi_info* i) const { free_info(i); }
};
using owned_info = std::unique_ptr<fi_info, free_fi_info>;

/// What the provider of a lane offers on this host. `port` 0: any.
/// Errors: invalid_argument (not a lane of this transport, not a numeric address), unsupported with what is missing and the cure.
result<owned_info> find_provider(fabric_calls& calls, repair_lane lane, const std::string& local_address, std::uint16_t port);

class fabric_handles {
 public:
  static result<std::unique_ptr<fabric_handles>> open(fabric_calls& calls, owned_info info, std::size_t operations, std::size_t peers);
  ~fabric_handles();
  fabric_handles(const fabric_handles&) = delete;
  fabric_handles& operator=(const fabric_handles&) = delete;
  /// Ends all connections and operations; what was being read into is not written to any more.
  void close_endpoint();

  fabric_calls& calls;
  const owned_info info;
  const std::string provider;
  std::vector<std::byte> address;    // of the endpoint
  int wait_descriptor = -1;          // readable when there may be progress; -1: only looking tells
  std::size_t message_max = 0;       // bytes of one operation

  // What a provider asks of its user, and how it behaves.
  bool local_descriptors = false, virtual_addresses = false, own_keys = false, endpoint_memory = false;
  bool synchronous = false;          // fi_read() has read when it returns, and tells failures without their context
  bool by_socket = false;            // connections are TCP sockets of this process
  bool forgets_badly = false;        // must keep the addresses it was told

  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* endpoint = nullptr;

 private:
  fabric_handles(fabric_calls& c, owned_info i);
};

}  // namespace ddf
