#include "transports/fabric/fabric_handles.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "lib/store/descriptor.hpp"
#include "transports/fabric/fabric_endpoint.hpp"
#include "transports/fabric/fabric_error.hpp"
#include "transports/fabric/process_memory.hpp"

namespace ddf {

namespace {

// The first byte of an address.
std::byte mark_of(std::string_view provider) {
  static constexpr std::array<std::string_view, 5> known{process_provider, "tcp;ofi_rxm", "net", "tcp", "verbs;ofi_rxm"};
  return static_cast<std::byte>(std::ranges::find(known, provider) - known.begin());
}

// Providers find out only when they listen.
int check_local(const std::array<unsigned char, sizeof(in6_addr)>& ip, bool v6) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  std::memcpy(&six.sin6_addr, ip.data(), sizeof six.sin6_addr);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  std::memcpy(&four.sin_addr, ip.data(), sizeof four.sin_addr);
  const descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  const auto* name = v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  return ::bind(socket.get(), name, v6 ? sizeof six : sizeof four) == 0 ? 0 : errno;
}

std::span<const char* const> candidates(repair_lane lane) {
  static constexpr std::array over_tcp{"tcp;ofi_rxm", "net", "tcp"};   // the last: libfabric 1.18 and later, where net has become it
  static constexpr std::array over_verbs{"verbs;ofi_rxm"};
  switch (lane) {
    case repair_lane::tcp: return over_tcp;
    case repair_lane::verbs: return over_verbs;
    case repair_lane::automatic: case repair_lane::udp: case repair_lane::shm: break;
  }
  return {};
}

}  // namespace

result<owned_info> find_provider(fabric_calls& calls, repair_lane lane, const std::string& local_address, std::uint16_t port) {
  const std::span<const char* const> names = candidates(lane);
  if (names.empty()) return fail(errc::invalid_argument, "repair over a fabric takes the lane tcp, shm or verbs");
  const bool addressed = !local_address.empty();
  std::uint32_t format = FI_SOCKADDR_IN;
  if (addressed) {
    std::array<unsigned char, sizeof(in6_addr)> bytes{};
    if (::inet_pton(AF_INET6, local_address.c_str(), bytes.data()) == 1) format = FI_SOCKADDR_IN6;
    else if (::inet_pton(AF_INET, local_address.c_str(), bytes.data()) != 1)
      return fail(errc::invalid_argument, local_address + " is not a numeric IPv4 or IPv6 address");
    if (std::ranges::all_of(std::span(bytes).first(format == FI_SOCKADDR_IN6 ? 16 : 4), [](unsigned char b) { return b == 0; }))
      return fail(errc::invalid_argument, "peers cannot reach " + local_address + "; name the address of one interface, or none");
    if (const int e = check_local(bytes, format == FI_SOCKADDR_IN6); e != 0) return fail(errc::invalid_argument, local_address + " is not an address of this host; ip address lists them", e);
  }
  if (const auto there = calls.load(); !there) return tl::unexpected(there.error());
  const std::string service = port != 0 ? std::to_string(port) : std::string();
  int last = -FI_ENODATA;
  for (const char* name : names) {
    const owned_info hints(new_info());
    if (!hints) return tl::unexpected(fabric_error(names[0], fabric_step::find, FI_ENOMEM));
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_RMA | FI_READ | FI_REMOTE_READ;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format = format;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_SAFE;   // memory is registered from any thread
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->fabric_attr->prov_name = ::strdup(name);   // freed with the hints
    fi_info* found = nullptr;
    const bool source = addressed || !service.empty();
    last = calls.getinfo(addressed ? local_address.c_str() : nullptr, service.empty() ? nullptr : service.c_str(), source ? FI_SOURCE : 0, hints.get(), &found);
    if (last == 0 && found != nullptr) return owned_info(found);
  }
  error e = fabric_error(names[0], fabric_step::find, -last);
  if (addressed) e.what += " (" + local_address + ")";
  return tl::unexpected(std::move(e));
}

result<std::string> find_fabric(repair_lane lane, const std::string& local_address) {
  if (lane == repair_lane::shm) {
    if (const auto may = may_read_processes(libfabric()); !may) return tl::unexpected(may.error());
    return std::string(process_provider);
  }
  auto found = find_provider(libfabric(), lane, local_address, 0);
  if (!found) return tl::unexpected(found.error());
  return std::string((*found)->fabric_attr->prov_name);
}

fabric_handles::fabric_handles(fabric_calls& c, owned_info i) : calls(c), info(std::move(i)), provider(info->fabric_attr->prov_name) {
  const auto mode = static_cast<std::uint64_t>(info->domain_attr->mr_mode);
  local_descriptors = (mode & FI_MR_LOCAL) != 0;
  virtual_addresses = (mode & FI_MR_VIRT_ADDR) != 0;
  own_keys = (mode & FI_MR_PROV_KEY) != 0;
  endpoint_memory = (mode & FI_MR_ENDPOINT) != 0;
  message_max = info->ep_attr->max_msg_size;
  by_socket = provider.starts_with("tcp") || provider.starts_with("net");
}

result<std::unique_ptr<fabric_handles>> fabric_handles::open(fabric_calls& calls, owned_info info, std::size_t operations, std::size_t peers) {
  std::unique_ptr<fabric_handles> h(new fabric_handles(calls, std::move(info)));
  const auto failed = [&](fabric_step step, int code) { return tl::unexpected(fabric_error(h->provider, step, -code)); };
  if (const int e = calls.fabric(h->info.get(), &h->fabric); e != 0) return failed(fabric_step::open, e);
  if (const int e = calls.domain(h->fabric, h->info.get(), &h->domain); e != 0) return failed(fabric_step::open, e);
  if (const int e = calls.av_open(h->domain, peers, &h->av); e != 0) return failed(fabric_step::open, e);
  bool waitable = true;
  int e = calls.cq_open(h->domain, 2 * operations, waitable, &h->cq);
  if (e == -FI_ENOSYS) {   // a provider without
    waitable = false;
    e = calls.cq_open(h->domain, 2 * operations, waitable, &h->cq);
  }
  if (e != 0) return failed(fabric_step::queue, e);
  if (waitable && ::fi_control(&h->cq->fid, FI_GETWAIT, &h->wait_descriptor) != 0) h->wait_descriptor = -1;
  if (e = calls.endpoint(h->domain, h->info.get(), &h->endpoint); e != 0) return failed(fabric_step::open, e);
  if (e = calls.bind(h->endpoint, &h->av->fid, 0); e != 0) return failed(fabric_step::enable, e);
  h->bound = true;
  if (e = calls.bind(h->endpoint, &h->cq->fid, FI_TRANSMIT | FI_RECV); e != 0) return failed(fabric_step::enable, e);
  if (e = calls.enable(h->endpoint); e != 0) return failed(fabric_step::enable, e);
  h->address.resize(fabric_address_bytes_max);
  h->address[0] = mark_of(h->provider);
  std::size_t bytes = fabric_address_bytes_max - 1;
  if (e = calls.getname(h->endpoint, h->address.data() + 1, &bytes); e != 0) return failed(fabric_step::enable, e);
  h->address.resize(1 + bytes);
  return h;
}

result<std::unique_ptr<fabric_handles>> fabric_handles::open_processes(fabric_calls& calls) {
  if (const auto may = may_read_processes(calls); !may) return tl::unexpected(may.error());
  std::unique_ptr<fabric_handles> h(new fabric_handles(calls));
  std::random_device random;
  h->provider = process_provider;
  h->by_process = h->virtual_addresses = true;
  h->process_nonce = static_cast<std::uint64_t>(random()) << 32 | random();
  h->message_max = std::numeric_limits<std::size_t>::max();
  h->address = write_process_name({::getpid(), h->process_nonce});
  h->address.insert(h->address.begin(), mark_of(process_provider));
  return h;
}

std::span<const std::byte> fabric_handles::native_address(std::span<const std::byte> peer) const {
  if (peer.size() != address.size() || peer[0] != address[0]) return {};
  return peer.subspan(1);
}

void fabric_handles::close_endpoint() {
  // ofi_rxm 1.17 crashes when an endpoint is closed that was never bound; rather than that, it stays open.
  if (endpoint != nullptr && !bound && ::fi_ep_bind(endpoint, &av->fid, 0) != 0) endpoint = nullptr;
  if (endpoint != nullptr) ::fi_close(&endpoint->fid);
  endpoint = nullptr;
}

fabric_handles::~fabric_handles() {
  close_endpoint();
  if (cq != nullptr) ::fi_close(&cq->fid);
  if (av != nullptr) ::fi_close(&av->fid);
  if (domain != nullptr) ::fi_close(&domain->fid);
  if (fabric != nullptr) ::fi_close(&fabric->fid);
}

}  // namespace ddf
