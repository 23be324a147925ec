#include "tools/common/common_options.hpp"

#include <utility>

#include <fmt/format.h>

#include <ddf/ddf.hpp>

#include "lib/model/endpoint.hpp"
#include "tools/common/units.hpp"
#include "transports/verbs/device_selector.hpp"

namespace ddf::tools {
namespace {

constexpr std::uint16_t default_port = 7700;
constexpr std::uint64_t mtu_min = 1280, mtu_max = 65'535;  // what control messages need; the longest IP packet

result<void> unusable(const std::string& text, std::string_view allowed) {
  return fail(errc::invalid_argument, fmt::format("read '{}'; allowed: {}", text, allowed));
}

result<void> set_group(network_options& network, const std::string& text) {
  const auto parsed = parse_endpoint(text, default_port);
  if (!parsed)
    return fail(errc::invalid_argument,
                fmt::format("read '{}': {}; allowed: ADDR:PORT, as in 239.77.7.7:7700 or [ff15::77:7%eth0]:7700", text,
                            parsed.error().what));
  if (!is_multicast(*parsed))
    return unusable(text,
                    "a multicast address: 224.0.0.0 to 239.255.255.255 (239.x.y.z is for local use), or ff00::/8");
  if (parsed->port == 0) return unusable(text, "a port from 1 to 65535");
  network.group = text;
  return {};
}

result<void> set_source(network_options& network, const std::string& text) {
  const auto parsed = parse_endpoint(text, default_port);
  if (!parsed)
    return fail(errc::invalid_argument,
                fmt::format("read '{}': {}; allowed: the sender's address", text, parsed.error().what));
  if (is_multicast(*parsed) || is_unspecified(*parsed))
    return unusable(text, "the address of one sender, as in 192.0.2.1");
  network.source = text;
  return {};
}

result<void> set_multicast(network_options& network, const std::string& text) {
  if (text == "try")
    network.multicast = multicast_use::attempt;
  else if (text == "require")
    network.multicast = multicast_use::require;
  else if (text == "off")
    network.multicast = multicast_use::off;
  else
    return unusable(text, "try, require or off");
  return {};
}

result<void> set_repair(network_options& network, const std::string& text) {
  if (text == "auto")
    network.repair = repair_lane::automatic;
  else if (text == "udp")
    network.repair = repair_lane::udp;
  else if (text == "tcp")
    network.repair = repair_lane::tcp;
  else if (text == "shm")
    network.repair = repair_lane::shm;
  else if (text == "verbs")
    network.repair = repair_lane::verbs;
  else
    return unusable(text, "auto, verbs, tcp, shm or udp");
  return {};
}

result<void> set_transport(network_options& network, const std::string& text) {
  if (text != "udp" && text != "verbs") return unusable(text, "udp or verbs");
  network.transport = text;
  return {};
}

result<void> set_number(int& out, const std::string& text, std::uint64_t most) {
  const auto number = parse_count(text, 0, most);
  if (!number) return tl::unexpected(number.error());
  out = static_cast<int>(*number);
  return {};
}

result<void> set_mtu(network_options& network, const std::string& text) {
  if (text == "auto") {
    network.mtu = 0;
    return {};
  }
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < mtu_min || *bytes > mtu_max)
    return unusable(text, fmt::format("auto, or {} to {} bytes, as in 1500 or 9000", mtu_min, mtu_max));
  network.mtu = static_cast<std::uint32_t>(*bytes);
  return {};
}

}  // namespace

setter set_text(std::string& out, std::string allowed) {
  return [&out, allowed = std::move(allowed)](const std::string& text) -> result<void> {
    if (text.empty()) return unusable(text, allowed);
    out = text;
    return {};
  };
}

setter set_time(std::chrono::nanoseconds& out, std::chrono::nanoseconds least) {
  return [&out, least](const std::string& text) -> result<void> {
    const auto time = parse_time(text);
    if (!time) return tl::unexpected(time.error());
    if (*time < least) return unusable(text, "more than zero, as in 250ms, 30s, 2m");
    out = *time;
    return {};
  };
}

setter set_flag(bool& out) {
  return [&out](const std::string& text) -> result<void> {
    out = text == "true";
    return {};
  };
}

void add_network_options(command_line& line, common_options& options) {
  auto& network = options.network;
  line.group("Network", true);
  line.add({.name = "group",
            .value = "ADDR:PORT",
            .help = "the multicast group, IPv4 or IPv6 (default 239.77.7.7:7700)",
            .default_text = network.group,
            .set = [&](const std::string& text) { return set_group(network, text); }});
  line.add({.name = "interface",
            .kind = setting_kind::list,
            .value = "IF|ADDR|CIDR",
            .help = "use this interface, by name, address or network; repeat it for several (default: all that are up "
                    "and can multicast)",
            .set = [&](const std::string& text) -> result<void> {
              if (text.empty())
                return unusable(text,
                                "an interface's name, its address or a network, as in eth0, 10.0.0.5 or 10.0.0.0/24");
              network.interfaces.push_back(text);
              return {};
            }});
  line.add(
      {.name = "source",
       .value = "ADDR",
       .help = "the sender's address: join the group for this source only (SSM), and ask it when no multicast arrives",
       .set = [&](const std::string& text) { return set_source(network, text); }});
  line.add({.name = "ttl",
            .value = "N",
            .help = "routers a packet may pass, plus one: 0 to 255 (default 1: the local network)",
            .default_text = "1",
            .set = [&](const std::string& text) -> result<void> {
              const auto ttl = parse_count(text, 0, 255);
              if (!ttl) return tl::unexpected(ttl.error());
              network.ttl = static_cast<int>(*ttl);
              return {};
            }});
  line.add(
      {.name = "multicast",
       .value = "try|require|off",
       .help =
           "try: unicast for those whom multicast does not reach (default); require: fail instead; off: unicast only",
       .default_text = "try",
       .set = [&](const std::string& text) { return set_multicast(network, text); }});
  line.add({.name = "repair",
            .value = "auto|verbs|tcp|shm|udp",
            .help = "how one receiver gets what it alone misses: it reads it from the sender's memory, by RDMA, TCP or "
                    "shared memory, or is sent it (default auto: the best that both sides have)",
            .default_text = "auto",
            .set = [&](const std::string& text) { return set_repair(network, text); }});
  line.add({.name = "transport",
            .value = "udp|verbs",
            .help = "what carries the multicast: udp (default); verbs: InfiniBand or RoCE, by an RDMA device",
            .default_text = "udp",
            .set = [&](const std::string& text) { return set_transport(network, text); }});
  line.add({.name = "device",
            .value = "SELECTOR",
            .help = "verbs: which RDMA devices may be used, as in mlx5_0:1, ^mlx5_2 or =mlx5_0 (default: those of the "
                    "interfaces)",
            .set = [&](const std::string& text) -> result<void> {
              const auto parsed = device_selector::parse(text);
              if (!parsed) return tl::unexpected(parsed.error());
              network.device = text;
              return {};
            }});
  line.add({.name = "traffic-class",
            .value = "N",
            .help = "verbs: of packets to the group, 0 to 255; with RoCE the DSCP and ECN byte (default: the device's)",
            .set = [&](const std::string& text) { return set_number(network.traffic_class, text, 255); }});
  line.add({.name = "service-level",
            .value = "N",
            .help = "verbs: of packets to the group, 0 to 15 (default: the fabric's)",
            .set = [&](const std::string& text) { return set_number(network.service_level, text, 15); }});
  line.add({.name = "mtu",
            .value = "N",
            .help = "bytes of an IP packet (default auto: the interface's)",
            .default_text = "auto",
            .set = [&](const std::string& text) { return set_mtu(network, text); }});
  line.add({.name = "doctor",
            .kind = setting_kind::flag,
            .help = "examine this host instead: what would be used with these options, what is wrong and how to mend "
                    "it; sends nothing, changes nothing",
            .default_text = "false",
            .set = set_flag(options.doctor),
            .command_line_only = true,
            .alone = true});
}

void add_output_options(command_line& line, common_options& options) {
  auto& console = options.console;
  line.group("Output", true);
  line.add({.name = "json",
            .kind = setting_kind::flag,
            .help = "write JSON lines to standard output, the last one the summary",
            .default_text = "false",
            .set = set_flag(console.json)});
  line.add({.name = "progress",
            .value = "auto|always|never",
            .help = "show progress on standard error (default auto: on a terminal)",
            .default_text = "auto",
            .set = [&](const std::string& text) -> result<void> {
              if (text != "auto" && text != "always" && text != "never") return unusable(text, "auto, always or never");
              console.progress = text;
              return {};
            }});
  line.add({.name = "verbose",
            .letter = 'v',
            .kind = setting_kind::count,
            .help = "tell what is done; -vv: also how",
            .default_text = "0",
            .set = [&](const std::string& text) -> result<void> {
              console.verbose = text[0] - '0';
              return {};
            }});
  line.add({.name = "quiet",
            .letter = 'q',
            .kind = setting_kind::flag,
            .help = "warnings and errors only: no summary, no progress",
            .default_text = "false",
            .set = set_flag(console.quiet)});
  line.add({.name = "config", .value = "FILE", .help = "read options from a TOML file", .set = [](const std::string&) {
              return result<void>();
            }});
}

json start_event(const command_line& line, bool sender) {
  json options = json::object(), origins = json::object();
  for (const auto& [setting, value] : line.settings()) {
    if (value.kind == setting_kind::list)
      options[setting] = value.texts;
    else if (value.texts.empty())
      options[setting] = nullptr;
    else if (value.kind == setting_kind::flag)
      options[setting] = value.texts.front() == "true";
    else if (value.kind == setting_kind::count)
      options[setting] = value.texts.front()[0] - '0';
    else
      options[setting] = value.texts.front();
    origins[setting] = name(value.from);
  }
  return {{"event", "start"},          {"role", sender ? "sender" : "receiver"},
          {"version", ddf::version()}, {"arguments", line.arguments()},
          {"options", options},        {"origins", origins}};
}

}  // namespace ddf::tools
