// Packet filters, as far as the kernel tells them without their rules: the chains of nftables (iptables-nft is one of its
// users) that are hooked where a host's own packets pass, and the tables of the older iptables.
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "lib/runtime/host_access.hpp"
#include "lib/store/descriptor.hpp"

namespace ddf {
namespace {

constexpr std::size_t chains_max = 64;

/// Calls `handler(type, value)` for each netlink attribute in `bytes`; stops where a length makes no sense.
template <class Handler>
void each_attribute(std::span<const std::byte> bytes, const Handler& handler) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return;
    handler(header.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof header, header.nla_len - sizeof header));
    bytes = bytes.subspan(std::min<std::size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
}

std::uint32_t big_endian(std::span<const std::byte> value) {
  std::uint32_t n = 0;
  if (value.size() >= sizeof n) std::memcpy(&n, value.data(), sizeof n);
  return ntohl(n);
}

std::string text_of(std::span<const std::byte> value) {
  const std::string_view all(reinterpret_cast<const char*>(value.data()), value.size());
  return std::string(all.substr(0, all.find('\0')));
}

std::string_view family_name(unsigned family) {
  switch (family) {
    case NFPROTO_INET: return "inet";
    case NFPROTO_IPV4: return "ip";
    case NFPROTO_IPV6: return "ip6";
    default: return {};
  }
}

void take_chain(std::span<const std::byte> body, firewall_facts& facts) {
  if (body.size() < sizeof(nfgenmsg)) return;
  const std::string_view family = family_name(std::to_integer<unsigned>(body[0]));
  std::string table, chain;
  std::uint32_t hook = ~0u, policy = NF_ACCEPT, rules = 0;
  each_attribute(body.subspan(NLMSG_ALIGN(sizeof(nfgenmsg))), [&](int type, std::span<const std::byte> value) {
    if (type == NFTA_CHAIN_TABLE) table = text_of(value);
    if (type == NFTA_CHAIN_NAME) chain = text_of(value);
    if (type == NFTA_CHAIN_POLICY) policy = big_endian(value);
    if (type == NFTA_CHAIN_USE) rules = big_endian(value);
    if (type == NFTA_CHAIN_HOOK)
      each_attribute(value, [&](int inner, std::span<const std::byte> number) {
        if (inner == NFTA_HOOK_HOOKNUM) hook = big_endian(number);
      });
  });
  if (family.empty() || (hook != NF_INET_PRE_ROUTING && hook != NF_INET_LOCAL_IN && hook != NF_INET_LOCAL_OUT)) return;
  if (policy != NF_DROP && rules == 0) return;   // accepts all
  if (policy == NF_DROP) (hook == NF_INET_LOCAL_OUT ? facts.drops_output : facts.drops_input) = true;
  if (facts.chains.size() < chains_max) facts.chains.push_back(std::string(family) + " " + table + " " + chain);
}

/// Output: 0 when all chains were told, or an errno.
int list_chains(firewall_facts& facts) {
  const descriptor s(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!s) return errno;
  const timeval limit{0, 200'000};   // the kernel answers at once, or not at all
  ::setsockopt(s.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  struct {
    nlmsghdr header;
    nfgenmsg body;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.body.nfgen_family = NFPROTO_UNSPEC;
  if (::send(s.get(), &question, sizeof question, MSG_NOSIGNAL) < 0) return errno;
  alignas(nlmsghdr) std::array<std::byte, 65536> buffer;
  for (int parts = 0; parts < 64; ++parts) {
    const auto n = ::recv(s.get(), buffer.data(), buffer.size(), 0);
    if (n < 0) return errno;
    for (std::span<const std::byte> rest(buffer.data(), static_cast<std::size_t>(n)); rest.size() >= sizeof(nlmsghdr);) {
      nlmsghdr header{};
      std::memcpy(&header, rest.data(), sizeof header);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) return EBADMSG;
      const auto body = rest.subspan(sizeof header, header.nlmsg_len - sizeof header);
      if (header.nlmsg_type == NLMSG_DONE) return 0;
      if (header.nlmsg_type == NLMSG_ERROR) {
        nlmsgerr e{};
        std::memcpy(&e, body.data(), std::min(body.size(), sizeof e));
        return e.error != 0 ? -e.error : 0;
      }
      take_chain(body, facts);
      rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), rest.size()));
    }
  }
  return EMSGSIZE;
}

}  // namespace

// Asking a kernel whose nftables is a module that is not loaded would load it: there it is not asked.
static bool nftables_is_there(const host_access& host) {
  const std::string modules = host.text("/proc/modules", 1 << 20);
  if (modules.empty() || modules.starts_with("nf_tables ") || modules.find("\nnf_tables ") != std::string::npos) return true;
  const std::string release = host.text("/proc/sys/kernel/osrelease", 256);
  return host.text("/lib/modules/" + release + "/modules.builtin", 1 << 20).find("/nf_tables.ko") != std::string::npos;
}

firewall_facts host_access::firewall() {
  firewall_facts facts;
  facts.known = true;
  if (nftables_is_there(*this)) {
    const int failed = list_chains(facts);
    // A kernel without nftables says so in one of these ways; it has no rules to be afraid of.
    facts.known = failed == 0 || failed == EPROTONOSUPPORT || failed == EINVAL || failed == EOPNOTSUPP;
  }
  for (const char* tables : {"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"}) {
    if (!exists(tables)) continue;
    if (!readable(tables)) {
      facts.known = false;
      continue;
    }
    std::string names = text(tables);
    std::ranges::replace(names, '\n', ' ');
    if (!names.empty()) facts.chains.push_back(std::string(tables == std::string_view("/proc/net/ip_tables_names") ? "iptables " : "ip6tables ") + names);
  }
  return facts;
}

}  // namespace ddf
