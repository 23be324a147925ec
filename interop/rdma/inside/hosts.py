"""Hosts with soft-RoCE around a switch, all in one virtual machine.

Soft-RoCE (rdma_rxe) of Linux 6.1 looks up routes and takes packets in the first network namespace only. So all hosts are there: host i
is the interface h<i> with the address 10.66.0.<i> and the RDMA device rxe<i>. The switch, a bridge with the ports p<i>, is in a namespace
of its own. Linux would deliver what one address sends to another of the same namespace without any wire; rules make each host look up
routes in a table of its own, where the other addresses are behind h<i>, and ask what is local only after that.

Programs must say which host they are by their address or interface; one that binds neither is no host at all.
"""
import contextlib
import os
import pathlib
import re
import subprocess
import time
from dataclasses import dataclass

SWITCH = "switch"
MTU = 4200             # room for RDMA's largest packet of 4096 bytes and its headers
TABLE, LOCAL_RULE = 1000, 30000
SYSCTLS = {"net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/default/rp_filter": 0,
           "net/ipv4/conf/all/accept_local": 1,      # packets of our own addresses do come in
           "net/ipv4/conf/all/arp_ignore": 1, "net/ipv4/conf/all/arp_announce": 2,   # each interface speaks for its own address
           "net/ipv6/conf/default/disable_ipv6": 1, "net/ipv6/conf/all/disable_ipv6": 1,
           "net/core/rmem_max": 32 << 20, "net/core/wmem_max": 32 << 20}


@dataclass(frozen=True)
class Host:
    number: int

    @property
    def interface(self):
        return f"h{self.number}"

    @property
    def port(self):
        return f"p{self.number}"

    @property
    def address(self):
        return f"10.66.0.{self.number}"

    @property
    def device(self):
        return f"rxe{self.number}"


def run(*argv, text=None):
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def _batch(program, lines):
    run(*program, "-batch", "-", text="".join(f"{line}\n" for line in lines))


def make(count):
    """Makes hosts 1 to `count`, and returns them."""
    hosts = [Host(i) for i in range(1, count + 1)]
    for name, value in SYSCTLS.items():
        pathlib.Path("/proc/sys", name).write_text(str(value))
    run("ip", "netns", "add", SWITCH)
    _batch(["ip", "-n", SWITCH], [f"link add br0 mtu {MTU} type bridge forward_delay 0 mcast_snooping 0", "link set br0 up",
                                  *(f"link add {h.port} mtu {MTU} type veth peer name {h.interface} mtu {MTU} netns 1" for h in hosts),
                                  *(f"link set {h.port} master br0 up" for h in hosts)])
    _batch(["ip"], ["link set lo up", f"rule add pref {LOCAL_RULE} lookup local", "rule del pref 0",
                    *(line for h in hosts for line in _host_lines(h))])
    for h in hosts:   # each packet on the wire is one frame: loss would hit many at once
        run("ethtool", "-K", h.interface, "tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off")
        run("rdma", "link", "add", h.device, "type", "rxe", "netdev", h.interface)
    for h in hosts:
        _wait_for_gid(h)
    return hosts


def _host_lines(h):
    table = TABLE + h.number
    routes = (f"local {h.address}", "10.66.0.0/24", "multicast 224.0.0.0/4")
    return [f"link set {h.interface} up", f"addr add {h.address}/24 brd + dev {h.interface}",
            *(f"route add {to} dev {h.interface} src {h.address} table {table}" for to in routes),
            f"rule add pref {1000 + h.number} oif {h.interface} lookup {table}",
            f"rule add pref {2000 + h.number} from {h.address} iif lo lookup {table}"]


def _wait_for_gid(h, limit_s=10):
    """Until the address is one of the device's, in RoCE's form: ::ffff:10.66.0.i."""
    wanted = "ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*map(int, h.address.split(".")))
    deadline = time.monotonic() + limit_s
    while True:
        for gid in pathlib.Path(f"/sys/class/infiniband/{h.device}/ports/1/gids").iterdir():
            with contextlib.suppress(OSError):
                if gid.read_text().strip().endswith(wanted):
                    return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{h.device} did not take up the address of {h.interface}")
        time.sleep(0.05)


def describe(hosts):
    """What programs in the machine find in their environment."""
    return {"DDF_RDMA_HOSTS": " ".join(h.interface for h in hosts), "DDF_RDMA_ADDRESSES": " ".join(h.address for h in hosts),
            "DDF_RDMA_DEVICES": " ".join(h.device for h in hosts)}


def all_hosts():
    """The hosts of the machine we are in."""
    return [Host(int(name[1:])) for name in os.environ["DDF_RDMA_HOSTS"].split()]


def lose(host, percent, kind="multicast"):
    """Drops this share of the multicast packets (or "all", or "unicast") that reach the host; 0 ends it. Returns nothing."""
    table = f"lose_{host.interface}"
    rules = f"table netdev {table}\ndelete table netdev {table}\n"
    if percent:
        match = {"multicast": "meta pkttype multicast", "unicast": "meta pkttype host", "all": "meta pkttype { host, multicast }"}[kind]
        draw = f"numgen random mod 1000000 < {round(percent * 10000)}" if percent < 100 else ""
        rules += (f"table netdev {table} {{ chain c {{ type filter hook ingress device \"{host.interface}\" priority 0; policy accept;\n"
                  f"meta protocol ip {match} {draw} counter drop\n}}\n}}\n")
    run("nft", "-f", "-", text=rules)


def lost(host):
    """How many packets lose() has dropped."""
    return sum(map(int, re.findall(r"counter packets (\d+)", run("nft", "list", "table", "netdev", f"lose_{host.interface}"))))


def crossed(host):
    """How many packets the switch has delivered to the host."""
    return int(pathlib.Path(f"/sys/class/net/{host.interface}/statistics/rx_packets").read_text())


def joined(host, group):
    """Whether the host's interface is a member of the group."""
    return f"inet  {group}" in run("ip", "maddr", "show", "dev", host.interface)
