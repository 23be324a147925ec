#include "transports/verbs/verbs_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/udp/socket_address.hpp"

namespace ddf {

namespace {

// What the libraries export; posting and polling are called through the device (inline functions of their headers).
struct exports {
  decltype(&::rdma_create_event_channel) create_event_channel = nullptr;
  decltype(&::rdma_destroy_event_channel) destroy_event_channel = nullptr;
  decltype(&::rdma_create_id) create_id = nullptr;
  decltype(&::rdma_destroy_id) destroy_id = nullptr;
  decltype(&::rdma_bind_addr) bind_addr = nullptr;
  decltype(&::rdma_resolve_addr) resolve_addr = nullptr;
  decltype(&::rdma_create_qp) create_qp = nullptr;
  decltype(&::rdma_destroy_qp) destroy_qp = nullptr;
  decltype(&::rdma_join_multicast_ex) join_multicast = nullptr;
  decltype(&::rdma_leave_multicast) leave_multicast = nullptr;
  decltype(&::rdma_get_cm_event) get_cm_event = nullptr;
  decltype(&::rdma_ack_cm_event) ack_cm_event = nullptr;
  decltype(&::ibv_get_device_name) device_name = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*) = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int) = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_create_ah) create_ah = nullptr;
  decltype(&::ibv_destroy_ah) destroy_ah = nullptr;
  std::string missing;   // empty: loaded
};

class library {   // stays loaded: providers register what is called at exit
 public:
  library(const char* name, exports& e) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)), exports_(e) {
    if (handle_ != nullptr || !exports_.missing.empty()) return;
    const char* why = ::dlerror();
    exports_.missing = why != nullptr ? why : std::string(name) + " cannot be loaded";
  }
  template <class F>
  void find(const char* name, F& out) {
    if (handle_ == nullptr) return;
    out = reinterpret_cast<F>(::dlsym(handle_, name));
    if (out == nullptr && exports_.missing.empty()) exports_.missing = std::string(name) + " is not in this version";
  }

 private:
  void* handle_;
  exports& exports_;
};

exports load_exports() {
  exports e;
  library verbs("libibverbs.so.1", e);
  verbs.find("ibv_get_device_name", e.device_name);
  verbs.find("ibv_query_device", e.query_device);
  verbs.find("ibv_query_port", e.query_port);
  verbs.find("ibv_alloc_pd", e.alloc_pd);
  verbs.find("ibv_dealloc_pd", e.dealloc_pd);
  verbs.find("ibv_create_comp_channel", e.create_comp_channel);
  verbs.find("ibv_destroy_comp_channel", e.destroy_comp_channel);
  verbs.find("ibv_create_cq", e.create_cq);
  verbs.find("ibv_destroy_cq", e.destroy_cq);
  verbs.find("ibv_get_cq_event", e.get_cq_event);
  verbs.find("ibv_ack_cq_events", e.ack_cq_events);
  verbs.find("ibv_reg_mr", e.reg_mr);
  verbs.find("ibv_dereg_mr", e.dereg_mr);
  verbs.find("ibv_create_ah", e.create_ah);
  verbs.find("ibv_destroy_ah", e.destroy_ah);
  library manager("librdmacm.so.1", e);
  manager.find("rdma_create_event_channel", e.create_event_channel);
  manager.find("rdma_destroy_event_channel", e.destroy_event_channel);
  manager.find("rdma_create_id", e.create_id);
  manager.find("rdma_destroy_id", e.destroy_id);
  manager.find("rdma_bind_addr", e.bind_addr);
  manager.find("rdma_resolve_addr", e.resolve_addr);
  manager.find("rdma_create_qp", e.create_qp);
  manager.find("rdma_destroy_qp", e.destroy_qp);
  manager.find("rdma_join_multicast_ex", e.join_multicast);
  manager.find("rdma_leave_multicast", e.leave_multicast);
  manager.find("rdma_get_cm_event", e.get_cm_event);
  manager.find("rdma_ack_cm_event", e.ack_cm_event);
  return e;
}

const exports& loaded() {
  static const exports e = load_exports();
  return e;
}

int errno_or(int otherwise) { return errno != 0 ? errno : otherwise; }
int set_non_blocking(int fd) { return ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 ? 0 : errno; }

// The connection manager knows groups by address alone; a port would be another group's to some of its versions.
sockaddr_storage socket_address(endpoint e) {
  e.port = 0;
  sockaddr_storage s{};
  to_sockaddr(e, s);
  return s;
}
sockaddr* plain(sockaddr_storage& s) { return reinterpret_cast<sockaddr*>(&s); }

group_address address_of(const rdma_ud_param& p) {
  group_address g;
  g.queue_pair = p.qp_num;
  g.key = p.qkey;
  std::memcpy(g.gid.data(), p.ah_attr.grh.dgid.raw, g.gid.size());
  g.flow_label = p.ah_attr.grh.flow_label;
  g.gid_index = p.ah_attr.grh.sgid_index;
  g.hop_limit = p.ah_attr.grh.hop_limit;
  g.traffic_class = p.ah_attr.grh.traffic_class;
  g.lid = p.ah_attr.dlid;
  g.service_level = p.ah_attr.sl;
  g.path_bits = p.ah_attr.src_path_bits;
  g.rate = p.ah_attr.static_rate;
  g.port = p.ah_attr.port_num;
  g.global = p.ah_attr.is_global != 0;
  return g;
}

verbs_event event_of(const rdma_cm_event& e) {
  verbs_event out;
  out.status = e.status < 0 ? -e.status : e.status;
  switch (e.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: out.what = verbs_event::kind::resolved; break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      out.what = verbs_event::kind::joined;
      out.joined = address_of(e.param.ud);
      break;
    case RDMA_CM_EVENT_ADDR_ERROR: case RDMA_CM_EVENT_MULTICAST_ERROR: out.what = verbs_event::kind::failed; break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: case RDMA_CM_EVENT_ADDR_CHANGE: out.what = verbs_event::kind::ended; break;
    default: break;
  }
  return out;
}

}  // namespace

result<void> verbs_calls::load() {
  if (!loaded().missing.empty())
    return fail(errc::unsupported, "transport verbs needs libibverbs and librdmacm (" + loaded().missing + "); install libibverbs1, librdmacm1 and ibverbs-providers, or use the transport udp");
  return {};
}

int verbs_calls::open(rdma_event_channel** out) {
  errno = 0;
  *out = loaded().create_event_channel();
  if (*out == nullptr) return errno_or(ENODEV);
  return set_non_blocking((*out)->fd);
}

int verbs_calls::open(rdma_event_channel* channel, rdma_cm_id** out) { return loaded().create_id(channel, out, nullptr, RDMA_PS_UDP) == 0 ? 0 : errno; }

int verbs_calls::bind(rdma_cm_id* id, const endpoint& local) {
  auto s = socket_address(local);
  return loaded().bind_addr(id, plain(s)) == 0 ? 0 : errno;
}

int verbs_calls::resolve(rdma_cm_id* id, const endpoint& local, const endpoint& group, int timeout_ms) {
  auto from = socket_address(local), to = socket_address(group);
  return loaded().resolve_addr(id, plain(from), plain(to), timeout_ms) == 0 ? 0 : errno;
}

int verbs_calls::next_event(rdma_event_channel* channel, int timeout_ms, verbs_event& out) {
  pollfd p{channel->fd, POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&p, 1, timeout_ms)) < 0)
    if (errno != EINTR) return errno;
  if (ready == 0) return EAGAIN;
  rdma_cm_event* e = nullptr;
  if (loaded().get_cm_event(channel, &e) != 0) return errno;
  out = event_of(*e);
  loaded().ack_cm_event(e);
  return 0;
}

int verbs_calls::device(rdma_cm_id* id, verbs_device& out) {
  if (id->verbs == nullptr) return ENODEV;
  ibv_device_attr device{};
  ibv_port_attr port{};
  if (const int e = loaded().query_device(id->verbs, &device); e != 0) return e;
  if (const int e = loaded().query_port(id->verbs, id->port_num, &port); e != 0) return e;
  out.name = loaded().device_name(id->verbs->device);
  out.port = id->port_num;
  out.mtu = 128u << port.active_mtu;
  out.ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  out.active = port.state == IBV_PORT_ACTIVE;
  out.requests_max = static_cast<std::uint32_t>(std::max(device.max_qp_wr, 0));
  out.completions_max = static_cast<std::uint32_t>(std::max(device.max_cqe, 0));
  return 0;
}

int verbs_calls::join(rdma_cm_id* id, const endpoint& group, bool sends_only) {
  auto to = socket_address(group);
  rdma_cm_join_mc_attr_ex attributes{};
  attributes.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attributes.join_flags = sends_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
  attributes.addr = plain(to);
  return loaded().join_multicast(id, &attributes, nullptr) == 0 ? 0 : errno;
}

void verbs_calls::leave(rdma_cm_id* id, const endpoint& group) {
  auto to = socket_address(group);
  loaded().leave_multicast(id, plain(to));
}

int verbs_calls::open(rdma_cm_id* id, ibv_pd** out) {
  errno = 0;
  *out = loaded().alloc_pd(id->verbs);
  return *out != nullptr ? 0 : errno_or(ENOMEM);
}

int verbs_calls::open(rdma_cm_id* id, ibv_comp_channel** out, int& fd) {
  errno = 0;
  *out = loaded().create_comp_channel(id->verbs);
  if (*out == nullptr) return errno_or(ENOMEM);
  fd = (*out)->fd;
  return set_non_blocking(fd);
}

int verbs_calls::open(rdma_cm_id* id, std::uint32_t entries, ibv_comp_channel* channel, ibv_cq** out) {
  errno = 0;
  *out = loaded().create_cq(id->verbs, static_cast<int>(entries), nullptr, channel, 0);
  return *out != nullptr ? 0 : errno_or(ENOMEM);
}

int verbs_calls::open(rdma_cm_id* id, ibv_pd* pd, ibv_cq* cq, std::uint32_t sends, std::uint32_t receives) {
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = cq;
  a.qp_type = IBV_QPT_UD;
  a.cap.max_send_wr = sends;
  a.cap.max_recv_wr = receives;
  a.cap.max_send_sge = 1;
  a.cap.max_recv_sge = 2;
  return loaded().create_qp(id, pd, &a) == 0 ? 0 : errno;
}

int verbs_calls::open(ibv_pd* pd, std::span<std::byte> memory, ibv_mr** out) {
  errno = 0;
  *out = loaded().reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  return *out != nullptr ? 0 : errno_or(ENOMEM);
}

int verbs_calls::open(ibv_pd* pd, const group_address& to, ibv_ah** out) {
  ibv_ah_attr a{};
  std::memcpy(a.grh.dgid.raw, to.gid.data(), to.gid.size());
  a.grh.flow_label = to.flow_label;
  a.grh.sgid_index = to.gid_index;
  a.grh.hop_limit = to.hop_limit;
  a.grh.traffic_class = to.traffic_class;
  a.dlid = to.lid;
  a.sl = to.service_level;
  a.src_path_bits = to.path_bits;
  a.static_rate = to.rate;
  a.port_num = to.port;
  a.is_global = to.global ? 1 : 0;
  errno = 0;
  *out = loaded().create_ah(pd, &a);
  return *out != nullptr ? 0 : errno_or(EINVAL);
}

static constexpr std::size_t posted_at_once = 64;

int verbs_calls::post(rdma_cm_id* id, ibv_ah* to, const group_address& group, ibv_mr* memory, std::span<const verbs_send> sends, std::size_t& posted) {
  posted = 0;
  while (posted < sends.size()) {
    std::array<ibv_sge, posted_at_once> pieces;
    std::array<ibv_send_wr, posted_at_once> requests{};
    const std::size_t n = std::min(sends.size() - posted, posted_at_once);
    for (std::size_t i = 0; i < n; ++i) {
      const verbs_send& s = sends[posted + i];
      pieces[i] = {reinterpret_cast<std::uintptr_t>(s.at), s.bytes, memory->lkey};
      ibv_send_wr& w = requests[i];
      w.wr_id = s.id;
      w.next = i + 1 < n ? &requests[i + 1] : nullptr;
      w.sg_list = &pieces[i];
      w.num_sge = 1;
      w.opcode = IBV_WR_SEND;
      w.send_flags = s.told ? IBV_SEND_SIGNALED : 0;
      w.wr.ud.ah = to;
      w.wr.ud.remote_qpn = group.queue_pair;
      w.wr.ud.remote_qkey = group.key;
    }
    ibv_send_wr* bad = nullptr;
    const int e = ::ibv_post_send(id->qp, requests.data(), &bad);
    if (e != 0) {
      posted += bad != nullptr ? static_cast<std::size_t>(bad - requests.data()) : 0;
      return e;
    }
    posted += n;
  }
  return 0;
}

int verbs_calls::post(rdma_cm_id* id, ibv_mr* memory, std::span<const verbs_receive> receives, std::size_t& posted) {
  posted = 0;
  while (posted < receives.size()) {
    std::array<ibv_sge, 2 * posted_at_once> pieces;
    std::array<ibv_recv_wr, posted_at_once> requests{};
    const std::size_t n = std::min(receives.size() - posted, posted_at_once);
    for (std::size_t i = 0; i < n; ++i) {
      const verbs_receive& r = receives[posted + i];
      for (std::size_t k = 0; k < 2; ++k) pieces[2 * i + k] = {reinterpret_cast<std::uintptr_t>(r.pieces[k].at), r.pieces[k].bytes, memory->lkey};
      ibv_recv_wr& w = requests[i];
      w.wr_id = r.id;
      w.next = i + 1 < n ? &requests[i + 1] : nullptr;
      w.sg_list = &pieces[2 * i];
      w.num_sge = 2;
    }
    ibv_recv_wr* bad = nullptr;
    const int e = ::ibv_post_recv(id->qp, requests.data(), &bad);
    if (e != 0) {
      posted += bad != nullptr ? static_cast<std::size_t>(bad - requests.data()) : 0;
      return e;
    }
    posted += n;
  }
  return 0;
}

int verbs_calls::poll(ibv_cq* cq, std::span<verbs_completion> out) {
  static constexpr std::size_t polled_at_once = 64;
  std::array<ibv_wc, polled_at_once> ended;
  std::size_t taken = 0;
  while (taken < out.size()) {
    const std::size_t wanted = std::min(out.size() - taken, polled_at_once);
    const int n = ::ibv_poll_cq(cq, static_cast<int>(wanted), ended.data());
    if (n < 0) return taken != 0 ? static_cast<int>(taken) : -EIO;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) out[taken++] = {ended[i].wr_id, static_cast<int>(ended[i].status), ended[i].byte_len};
    if (static_cast<std::size_t>(n) < wanted) break;
  }
  return static_cast<int>(taken);
}

int verbs_calls::arm(ibv_cq* cq) { return ::ibv_req_notify_cq(cq, 0); }

bool verbs_calls::take_event(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (loaded().get_cq_event(channel, &cq, &context) != 0) return false;
  loaded().ack_cq_events(cq, 1);
  return true;
}

void verbs_calls::close(ibv_ah* ah) { loaded().destroy_ah(ah); }
void verbs_calls::close(ibv_mr* mr) { loaded().dereg_mr(mr); }
void verbs_calls::close_queue_pair(rdma_cm_id* id) { loaded().destroy_qp(id); }
void verbs_calls::close(ibv_cq* cq) { loaded().destroy_cq(cq); }
void verbs_calls::close(ibv_comp_channel* channel) { loaded().destroy_comp_channel(channel); }
void verbs_calls::close(ibv_pd* pd) { loaded().dealloc_pd(pd); }
void verbs_calls::close(rdma_cm_id* id) { loaded().destroy_id(id); }
void verbs_calls::close(rdma_event_channel* channel) { loaded().destroy_event_channel(channel); }

verbs_calls& rdma_libraries() {
  static verbs_calls calls;
  return calls;
}

}  // namespace ddf
