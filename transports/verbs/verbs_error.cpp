#include "transports/verbs/verbs_error.hpp"

#include <array>
#include <cerrno>

namespace ddf {

static std::string_view attempt(verbs_step step) {
  static constexpr std::array<std::string_view, 9> words{
      "opening the RDMA connection manager", "finding the RDMA device", "opening a queue pair", "registering memory", "joining the group",
      "addressing the group", "sending", "posting receive buffers", "looking for what arrived"};
  return words[static_cast<std::size_t>(step)];
}

static std::string_view cure(verbs_step step, int code) {
  switch (step) {
    case verbs_step::manager:
      if (code == ENODEV || code == ENOENT || code == ENOSYS) return "this host shows no RDMA device (ls /sys/class/infiniband), or the kernel module rdma_ucm is not loaded (modprobe rdma_ucm), or /dev/infiniband/rdma_cm is not there for this user (its permissions; in a container: --device=/dev/infiniband)";
      if (code == EACCES || code == EPERM) return "/dev/infiniband/rdma_cm may not be opened; see its permissions";
      break;
    case verbs_step::find:
      if (code == ENODEV || code == EINVAL || code == ETIMEDOUT) return "no RDMA device has this address: choose the interface of one (rdma link, ibv_devinfo), or use the transport udp";
      if (code == EADDRNOTAVAIL) return "the address must be one of this host's; ip address lists them";
      if (code == ENETUNREACH || code == EHOSTUNREACH) return "there is no route to the group by this interface (ip route get)";
      break;
    case verbs_step::open:
      if (code == EINVAL) return "the device takes fewer requests or completions than it says; give a smaller socket_buffer";
      if (code == EACCES || code == EPERM) return "the device's file may not be opened; see the permissions of /dev/infiniband";
      [[fallthrough]];
    case verbs_step::reg:
      if (code == ENOMEM || code == EAGAIN) return "not enough memory may be locked; raise it (ulimit -l, memlock in /etc/security/limits.conf, LimitMEMLOCK= of the unit)";
      break;
    case verbs_step::join:
      if (code == ETIMEDOUT) return "nobody answers for the fabric: is a subnet manager running (sminfo), and the port active (ibv_devinfo)";
      if (code == EINVAL || code == ENETRESET) return "the subnet manager refuses the group: its MTU or rate is beyond this port, or its partition is another one (saquery -g, ibv_devinfo -v)";
      if (code == ENODEV || code == ENETDOWN) return "the port is down (ibv_devinfo)";
      if (code == ENOMEM || code == ENOBUFS) return "the device, or the system, is a member of as many groups as it can be (sysctl net.ipv4.igmp_max_memberships)";
      break;
    case verbs_step::address:
      return "the port has no usable GID for this address (ibv_devinfo -v lists them); it may just have changed";
    case verbs_step::send: case verbs_step::receive: case verbs_step::poll:
      return "the device failed or was reset; see the kernel's log (dmesg)";
  }
  return {};
}

static errc code_of(verbs_step step, int code) {
  switch (code) {
    case EACCES: case EPERM: return errc::refused;
    case ENOMEM: case EMFILE: case EAGAIN: return step == verbs_step::reg || step == verbs_step::open ? errc::too_large : errc::network;
    case ENODEV: case ENOENT: case ENOSYS: return step == verbs_step::manager || step == verbs_step::find ? errc::unsupported : errc::network;
    case EINVAL: case ETIMEDOUT: return step == verbs_step::find ? errc::unsupported : errc::network;
    default: return errc::network;
  }
}

error verbs_error(std::string_view of, verbs_step step, int code) {
  std::string text = std::string(attempt(step)) + " (" + std::string(of) + ")";
  if (const std::string_view what = cure(step, code); !what.empty()) text += ": " + std::string(what);
  return {code_of(step, code), code, std::move(text)};
}

error verbs_completion_error(std::string_view of, bool sending, int status) {
  struct known {
    std::string_view name, cure;
  };
  // In the order of enum ibv_wc_status, as far as datagrams can end so.
  static constexpr std::array<known, 7> words{{{"success", ""},
      {"local length error", "a datagram is larger than the port's MTU, which has changed: compare active_mtu of all ports (ibv_devinfo)"},
      {"local queue pair error", "the device found a fault in its own queue; see the kernel's log (dmesg)"},
      {"local end-to-end context error", ""},
      {"local protection error", "the memory is not, or no longer, registered; the device was reset"},
      {"flushed", "the port or the device went away; it is opened again when it is back"},
      {"memory window error", ""}}};
  static constexpr int fatal = 20, general = 21;
  known k{"an error", "see the kernel's log (dmesg)"};
  if (status >= 0 && static_cast<std::size_t>(status) < words.size()) k = words[static_cast<std::size_t>(status)];
  else if (status == fatal) k = {"fatal device error", "the device was reset; it is opened again when it is back"};
  else if (status == general) k = {"general error", "see the kernel's log (dmesg)"};
  std::string text = std::string(sending ? "sending to" : "receiving from") + " the group by " + std::string(of) + " ended in: " + std::string(k.name) + " (status " + std::to_string(status) + ")";
  if (!k.cure.empty()) text += "; " + std::string(k.cure);
  return {errc::network, 0, std::move(text)};
}

}  // namespace ddf
