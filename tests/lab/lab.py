#!/usr/bin/env python3
"""A lab of hosts around an emulated switch, in network namespaces of this machine.

Host 0 is the sender, hosts 1..N are the receivers; each has one interface, eth0, on a port p<i> of a
Linux bridge with IGMP and MLD snooping and a querier. Host i has 10.88.0.<i+1> and fd88::<i+1>.

    import lab
    with lab.Lab(receivers=2, mode="wire") as net:
        receiver = net.start(1, ["mcrecv", "--interface", "eth0", "--once"])
        net.wait_members("239.77.7.7", [1])
        net.loss(1.0, hosts=[1], kind="multicast")
        sender = net.start(0, ["mcsend", "--interface", "eth0", "model.bin"])
        assert receiver.wait(30) == 0, receiver.output()
        print(receiver.exit_time - sender.start_time, receiver.cpu_s, net.bytes_sent(0))

As a command it holds a lab open for a shell:  lab.py up --prefix t --receivers 2;  lab.py exec --prefix t 1 ip a;
lab.py down --prefix t.  See  lab.py --help.

Leaving the `with` block ends the processes the lab started, no others, and deletes its namespaces; so do an
exception, SIGTERM and the end of the interpreter. What a SIGKILL leaves behind is removed by the next lab.
Where the lab cannot run (no root, a tool is missing) it raises Skip, whose exit status is 77.

offload mode  veth as Linux makes it: a GSO packet of up to 64 KiB crosses the switch whole, as behind a NIC
              that segments and a receiver that coalesces. Loss would hit 44 frames at once: use wire for loss.
wire mode     every offload off, so that each packet on the switch is one frame of at most the MTU.
"""
import argparse
import atexit
import contextlib
import fcntl
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

SKIP_STATUS = 77  # what ctest and automake take for "cannot run here"
TOOLS = ("ip", "bridge", "tc", "nft", "ethtool", "sysctl")
STATE_DIR = "/run/ddf-lab"
RESPONSE_S = 0.5  # how long hosts may take to answer the querier, and how long a new bridge floods before it snoops
LOSS_KINDS = {"all": "", "multicast": "meta pkttype multicast", "unicast": "meta pkttype host"}
FIREWALL = {  # name: (input rules, output rules)
    "multicast": (["ip daddr 224.0.0.0/4 udp dport 1-65535 drop", "ip6 daddr ff00::/8 udp dport 1-65535 drop"], []),
    "igmp": (["ip protocol igmp drop", "icmpv6 type { 130, 131, 132, 143 } drop"],
             ["ip protocol igmp drop", "icmpv6 type { 130, 131, 132, 143 } drop"]),
    "unicast": (["meta pkttype host meta l4proto { tcp, udp } drop"], []),
    "unicast-udp": (["meta pkttype host meta l4proto udp drop"], []),
    "unicast-tcp": (["meta pkttype host meta l4proto tcp drop"], []),
}


class Skip(Exception):
    """The lab cannot run here; the text says what is missing."""


class LabError(Exception):
    """A command of the lab failed; the text is what it said."""


def _run(argv, text=None):
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{shlex.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def require(*tools):
    """Raises Skip unless this is root, the tools are there and namespaces can be made."""
    if os.geteuid() != 0:
        raise Skip("needs root, to make network namespaces")
    missing = [t for t in (*TOOLS, *tools) if not shutil.which(t)]
    if missing:
        raise Skip("missing: " + ", ".join(missing))
    try:
        _run(["unshare", "--net", "true"])
    except (LabError, OSError) as problem:
        raise Skip(f"network namespaces are not allowed here ({problem})") from None


def skip_or_run(main):
    """Runs `main` as a script's body: its value becomes the exit status, Skip becomes 77 and one line."""
    try:
        sys.exit(main())
    except Skip as reason:
        print(f"SKIP: {reason}")
        sys.exit(SKIP_STATUS)


class Process:
    """A process in a host. Its end is noted when it happens, whoever looks and whenever.

    start_time, exit_time  CLOCK_MONOTONIC seconds, as time.monotonic(); exit_time is None while it runs
    status                 exit status, negative for a signal; None while it runs
    cpu_s                  user and system time of it and of the children it waited for
    """

    def __init__(self, argv, log, cwd, env):
        self.argv, self.log = argv, log
        self.exit_time = self.status = None
        self.cpu_s = self.max_rss_bytes = 0
        self._reap = threading.Lock()
        self._ended = threading.Event()
        with open(log, "wb") as out:
            self.start_time = time.monotonic()
            self._child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                           cwd=cwd, env=env, start_new_session=True)
        self.pid = self._child.pid
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        # WNOWAIT keeps the process id ours until the lock is held, so that signal() cannot hit a stranger.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        ended = time.monotonic()
        with self._reap:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # what it left behind in its own group
            _, wait_status, usage = os.wait4(self.pid, 0)
            self.status = self._child.returncode = os.waitstatus_to_exitcode(wait_status)
            self.cpu_s = usage.ru_utime + usage.ru_stime
            self.max_rss_bytes = usage.ru_maxrss * 1024
            self.exit_time = ended
        self._ended.set()

    @property
    def running(self):
        return self.exit_time is None

    def signal(self, number):
        """Sends a signal to the process group; nothing happens when the process has ended."""
        with self._reap:
            if self.exit_time is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, number)

    def wait(self, timeout=None):
        """The exit status; TimeoutError after `timeout` seconds, the process left running."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"still running after {timeout} s: {shlex.join(self.argv)}\n{self.output()[-2000:]}")
        return self.status

    def stop(self, grace=1.0):
        """SIGTERM, then SIGKILL after `grace` seconds. Returns the exit status."""
        self.signal(signal.SIGTERM)
        if not self._ended.wait(grace):
            self.signal(signal.SIGKILL)
            self._ended.wait(5)
        return self.status

    def output(self):
        """What it wrote so far to standard output and standard error."""
        with open(self.log, errors="replace") as log:
            return log.read()


class Lab:
    """Hosts 0..receivers around one switch. All arguments after `receivers` are by name.

    prefix           starts the names of the namespaces; labs with different prefixes coexist
    mtu              of every host and port; set_mtu() changes one
    mode             "offload" or "wire", see the top of this file
    ipv4, ipv6       addresses; without ipv6 the hosts speak no IPv6 at all (no MLD noise on the wire)
    snooping, querier, flood_unknown
                     the switch: without a querier a Linux bridge floods every group; without a querier and
                     without flood_unknown even hosts that joined get nothing (deaf)
    backpressure     True: the switch forwards the sender's own packet to the last port, and while a slow port
                     holds it the sender's socket buffer stays charged: the sender slows down instead of the
                     port losing packets, which no real switch does. It takes a queue to show (cap() on a
                     receiver, or a full backlog). False: the bridge is promiscuous, every port gets a copy
                     that is charged to nobody, for a little more CPU per packet.
    directory        for logs and files of the run (on tmpfs); made and removed by the lab unless given or `keep`
    """

    def __init__(self, receivers, *, prefix=None, mtu=1500, mode="offload", ipv4=True, ipv6=True, snooping=True,
                 querier=True, flood_unknown=True, backpressure=True, directory=None, keep=False):
        if mode not in ("offload", "wire"):
            raise ValueError(f"mode {mode!r}: offload or wire")
        if not 1 <= receivers <= 250:
            raise ValueError("receivers: 1 to 250")
        self.prefix = prefix or f"ddf{os.getpid()}"
        if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", self.prefix):
            raise ValueError("prefix: a letter, then up to 15 letters or digits, lower case")
        self.receivers, self.mtu, self.mode = receivers, mtu, mode
        self.ipv4, self.ipv6 = ipv4, ipv6
        self.snooping, self.querier, self.flood_unknown = snooping, querier, flood_unknown
        self.backpressure = backpressure
        self.keep = keep
        self.processes = []
        self._started = itertools.count()
        self._given_directory, self.directory = directory, None
        self._lock = None
        self._rules = {}  # (host, "down"|"up") -> nft rules, to restore with the interface

    # ---- names -------------------------------------------------------------------------------------------

    @property
    def hosts(self):
        return range(self.receivers + 1)

    @property
    def receiver_hosts(self):
        return range(1, self.receivers + 1)

    def namespace(self, host):
        """The namespace's name, of a host number or of "switch"."""
        return f"{self.prefix}-{'sw' if host == 'switch' else f'h{host}'}"

    def address(self, host, family=4):
        return f"10.88.0.{host + 1}" if family == 4 else f"fd88::{host + 1:x}"

    # ---- life --------------------------------------------------------------------------------------------

    def __enter__(self):
        try:
            return self.up()
        except BaseException:
            self.down()
            raise

    def __exit__(self, *exc):
        self.down()

    def up(self):
        """Builds the lab. Use `with` rather than this, unless the lab is to outlive the caller."""
        require()
        os.makedirs(STATE_DIR, exist_ok=True)
        self._take_lock()
        _sweep()
        _remove(self.prefix)
        if threading.current_thread() is threading.main_thread() and \
                signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        atexit.register(self.down)
        self.directory = self._given_directory or tempfile.mkdtemp(
            prefix=f"{self.prefix}-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.makedirs(self.directory, exist_ok=True)
        self._write_state(stay=False)
        with contextlib.suppress(LabError, OSError):  # a namespace may only choose what is on the allowed list
            with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as f:
                _run(["sysctl", "-qw", f"net.ipv4.tcp_allowed_congestion_control={f.read().strip()}"])
        self._build()
        return self

    def down(self):
        """Ends the lab's processes and removes its namespaces; may be called again."""
        atexit.unregister(self.down)
        self.stop_all()
        if self._lock:
            _remove(self.prefix)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None
        if self.directory and not self.keep and not self._given_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def leave_up(self):
        """Lets the namespaces outlive this object: for the command, whose `down` removes them."""
        atexit.unregister(self.down)
        self._write_state(stay=True)
        self._lock.close()
        self._lock = None

    @classmethod
    def attach(cls, prefix):
        """The lab that leave_up() left under this prefix."""
        try:
            with open(f"{STATE_DIR}/{prefix}") as f:
                state = json.load(f)
        except (OSError, ValueError):
            raise LabError(f"no lab {prefix!r} is up") from None
        found = cls(state["receivers"], prefix=prefix, mtu=state["mtu"], mode=state["mode"], keep=True)
        found.directory = state["directory"]
        return found

    def _write_state(self, stay):
        self._lock.truncate(0)
        json.dump({"stay": stay, "receivers": self.receivers, "mtu": self.mtu, "mode": self.mode,
                   "directory": self.directory, "remove": not self._given_directory}, self._lock)
        self._lock.flush()

    def _take_lock(self):
        lock = open(f"{STATE_DIR}/{self.prefix}", "a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise LabError(f"another lab runs with prefix {self.prefix!r}") from None
        self._lock = lock

    # ---- building ----------------------------------------------------------------------------------------

    def _ip(self, host, *lines):
        _run(["ip", "-n", self.namespace(host), "-batch", "-"], "".join(line + "\n" for line in lines))

    def _in(self, host, *argv, text=None):
        return _run(["ip", "netns", "exec", self.namespace(host), *map(str, argv)], text)

    def _build(self):
        self._add_namespace("switch")
        # IGMPv3 and MLDv2 are asked for because with the bridge's default, IGMPv2, a host that hears another's report
        # keeps its own back, and until the querier is RESPONSE_S old the bridge floods reports to every host: now and
        # then a receiver would never appear in the switch's table.
        bridge = (f"link add br0 type bridge forward_delay 0 mcast_snooping {int(self.snooping)} "
                  f"mcast_querier {int(self.querier)} mcast_igmp_version 3 mcast_mld_version 2 "
                  f"mcast_startup_query_interval 100 mcast_query_response_interval {round(RESPONSE_S * 100)}")
        self._ip("switch", bridge, f"link set br0 mtu {self.mtu} promisc {'off' if self.backpressure else 'on'} up",
                 "addr add 10.88.0.254/24 dev br0")
        snoops = time.monotonic() + RESPONSE_S
        for host in self.hosts:
            self._add_namespace(host)
            self._add_interface(host)
        if self.snooping and self.querier:
            time.sleep(max(0.0, snoops + 0.05 - time.monotonic()))

    def _add_namespace(self, host):
        name = self.namespace(host)
        # A program that looks up an address must not wait for a name server that is not there.
        os.makedirs(f"/etc/netns/{name}", exist_ok=True)
        with open(f"/etc/netns/{name}/hosts", "w") as f:
            f.write("127.0.0.1 localhost\n::1 localhost\n")
            for h in self.hosts:
                f.write(f"{self.address(h)} h{h}\n{self.address(h, 6)} h{h}\n")
        with open(f"/etc/netns/{name}/resolv.conf", "w") as f:
            f.write("nameserver 127.0.0.1\n")
        _run(["ip", "netns", "add", name])
        on = self.ipv6
        self._in(host, "sysctl", "-qw", *(f"net.ipv6.conf.{x}.{k}={v}" for x in ("all", "default") for k, v in
                                          (("disable_ipv6", int(not on)), ("accept_dad", 0), ("accept_ra", 0))),
                 *(f"net.ipv4.conf.{x}.rp_filter=0" for x in ("all", "default")))
        self._ip(host, "link set lo up")

    def _add_interface(self, host):
        name, port = self.namespace(host), f"p{host}"
        self._ip("switch", f"link add {port} mtu {self.mtu} type veth peer name eth0 mtu {self.mtu} netns {name}")
        if self.mode == "wire":
            for where, device in ((host, "eth0"), ("switch", port)):
                self._in(where, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off",
                         "tx-udp-segmentation", "off", "sg", "off")
        self._ip("switch", f"link set {port} master br0 up")
        if not self.flood_unknown:
            _run(["bridge", "-n", self.namespace("switch"), "link", "set", "dev", port, "mcast_flood", "off"])
        lines = []
        if self.ipv4:
            lines.append(f"addr add {self.address(host)}/24 brd + dev eth0")
        if self.ipv6:
            lines.append(f"addr add {self.address(host, 6)}/64 dev eth0 nodad")
        lines.append("link set eth0 up")
        if self.ipv4:
            lines.append("route add default via 10.88.0.254")
        self._ip(host, *lines)
        for (h, direction), rules in self._rules.items():
            if h == host:
                self._ingress(host, direction, rules)

    # ---- the network misbehaves --------------------------------------------------------------------------

    def _ingress(self, host, direction, rules):
        """Replaces the drop rules on what reaches the host ("down") or what it sends ("up")."""
        where, device = (host, "eth0") if direction == "down" else ("switch", f"p{host}")
        table = f"drop_{device}"
        text = f"table netdev {table}\ndelete table netdev {table}\n"
        if rules:
            text += (f"table netdev {table} {{ chain c {{ type filter hook ingress device \"{device}\" priority 0; "
                     "policy accept;\n" + "\n".join(rules) + "\n}\n}\n")
        self._in(where, "nft", "-f", "-", text=text)
        self._rules[host, direction] = rules

    def _directions(self, direction):
        return {"down": ["down"], "up": ["up"], "both": ["down", "up"]}[direction]

    def loss(self, percent, *, hosts=None, kind="all", direction="down"):
        """Random loss, drawn per packet and host; 0 removes it. Default: every receiver.

        kind       "all", "multicast" or "unicast"; ARP and IPv6 neighbour discovery are spared
        direction  "down": what reaches the host; "up": what it sends; "both"
        """
        rules = []
        if percent:
            draw = f"numgen random mod 1000000 < {round(percent * 10000)}" if percent < 100 else ""
            rules = ["meta protocol != { ip, ip6 } accept",
                     "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
                     f"{LOSS_KINDS[kind]} {draw} counter drop"]
        for host in self.receiver_hosts if hosts is None else hosts:
            for d in self._directions(direction):
                self._ingress(host, d, rules)

    def lost(self, host, direction="down"):
        """How many packets loss() dropped at this host since it was last set."""
        where, device = (host, "eth0") if direction == "down" else ("switch", f"p{host}")
        text = self._in(where, "nft", "list", "table", "netdev", f"drop_{device}")
        return sum(map(int, re.findall(r"counter packets (\d+)", text)))

    def partition(self, host, direction="both"):
        """A silent partition: nothing passes, the carrier stays up. heal() ends it (and any loss)."""
        for d in self._directions(direction):
            self._ingress(host, d, ["counter drop"])

    def heal(self, host):
        for d in ("down", "up"):
            self._ingress(host, d, [])

    def cap(self, host, rate=None):
        """Caps a link, e.g. "1gbit"; None removes it.

        Host 0: what the sender sends, with a queue of 32 MiB, so that it blocks rather than loses.
        A receiver: what its switch port sends to it, with a queue of 128 KiB as in a shallow switch, so that
        excess is lost; build the lab with backpressure=False.
        """
        where, device = (0, "eth0") if host == 0 else ("switch", f"p{host}")
        burst, limit = ("128kb", "32mb") if host == 0 else ("32kb", "128kb")
        with contextlib.suppress(LabError):
            _run(["tc", "-n", self.namespace(where), "qdisc", "del", "dev", device, "root"])
        if rate:
            _run(["tc", "-n", self.namespace(where), "qdisc", "add", "dev", device, "root", "tbf",
                  "rate", rate, "burst", burst, "limit", limit])

    def firewall(self, host, *drop):
        """The host's own firewall drops "multicast" data, "igmp" (and MLD, both ways) or inbound "unicast",
        "unicast-udp", "unicast-tcp". Without a name it drops nothing."""
        text = "table inet firewall\ndelete table inet firewall\n"
        for hook, index in (("input", 0), ("output", 1)):
            rules = [rule for name in drop for rule in FIREWALL[name][index]]
            if rules:
                text += (f"table inet firewall {{ chain {hook} {{ type filter hook {hook} priority 0; policy accept;\n"
                         + "\n".join(rules) + "\n}\n}\n")
        self._in(host, "nft", "-f", "-", text=text)

    def link(self, host, up, *, cable=True):
        """Carrier off and on, as when the cable is pulled; with cable=False the host's own `ip link set`,
        which on the way down also loses the IPv6 addresses and the default route, as on any host."""
        where, device = ("switch", f"p{host}") if cable else (host, "eth0")
        self._ip(where, f"link set {device} {'up' if up else 'down'}")

    def delete_interface(self, host):
        self._ip(host, "link del eth0")

    def create_interface(self, host):
        """After delete_interface: a new eth0 with the same addresses and loss. A cap is gone."""
        self._add_interface(host)

    def decoy(self, host=0):
        """A second interface, net2 (10.89.0.<i+1>), on a switch of its own where nobody listens, which owns the
        default route: who lets the routing table choose the interface talks to nobody."""
        with contextlib.suppress(LabError):
            self._ip("switch", "link add br1 type bridge forward_delay 0 mcast_snooping 1 mcast_querier 1",
                     "link set br1 up")
        self._ip("switch", f"link add d{host} type veth peer name net2 netns {self.namespace(host)}",
                 f"link set d{host} master br1 up")
        self._ip(host, f"addr add 10.89.0.{host + 1}/24 brd + dev net2", "link set net2 up",
                 "route replace default via 10.89.0.254 dev net2")

    def set_mtu(self, host, mtu, *, port=True, end=True):
        """MTU of the host's end and of its switch port, or of one of them."""
        if end:
            self._ip(host, f"link set eth0 mtu {mtu}")
        if port:
            self._ip("switch", f"link set p{host} mtu {mtu}")

    def set_querier(self, on):
        self._ip("switch", f"link set br0 type bridge mcast_querier {int(on)}")

    # ---- processes ---------------------------------------------------------------------------------------

    def start(self, host, argv, *, log=None, cwd=None, env=None):
        """Starts a process in a host. Its standard output and error go to the file `log`."""
        log = log or f"{self.directory}/h{host}.{next(self._started)}.log"
        env = dict(os.environ if env is None else env, DDF_LAB=self._token())
        argv = ["ip", "netns", "exec", self.namespace(host), *map(str, argv)]
        process = Process(argv, log, cwd or self.directory, env)
        self.processes.append(process)
        return process

    def run(self, host, argv, timeout=60, **options):
        """Runs a process to its end; it is stopped at the timeout, which then is raised."""
        process = self.start(host, argv, **options)
        try:
            process.wait(timeout)
        finally:
            process.stop()
        return process

    def stop_all(self, grace=1.0):
        """Stops every process started so far; those that ended keep their results."""
        for process in self.processes:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace
        for process in self.processes:
            process.stop(max(0.0, deadline - time.monotonic()))
        self.processes.clear()

    def sysctl(self, host, setting):
        """Sets, for example, "net.ipv4.tcp_congestion_control=cubic" in a host."""
        self._in(host, "sysctl", "-qw", setting)

    def _token(self):
        return f"{self.prefix}:{os.getpid()}"

    # ---- looking -----------------------------------------------------------------------------------------

    def members(self, group):
        """The hosts whose port the switch forwards this group to: for two seconds more after a host left."""
        text = _run(["bridge", "-n", self.namespace("switch"), "-j", "mdb", "show"])
        entries = [e for block in json.loads(text or "[]") for e in block.get("mdb", [])]
        return {int(e["port"][1:]) for e in entries if e["grp"] == group and re.fullmatch(r"p\d+", e["port"])}

    def joined(self, host, group):
        """Whether a socket of this host is a member of the group on eth0."""
        text = _run(["ip", "-n", self.namespace(host), "-j", "maddr", "show", "dev", "eth0"])
        return any(a.get("address") == group for device in json.loads(text or "[]") for a in device.get("maddr", []))

    def wait_members(self, group, hosts=None, timeout=10.0):
        """Waits until these hosts (default: every receiver) have joined the group and the switch knows it."""
        missing = set(self.receiver_hosts if hosts is None else hosts)
        deadline = time.monotonic() + timeout
        while missing := {h for h in missing if not self.joined(h, group)} | (missing - self.members(group)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not joined to {group} after {timeout} s: hosts {sorted(missing)}")
            time.sleep(0.01)

    def _port(self, host):
        return json.loads(_run(["ip", "-n", self.namespace("switch"), "-j", "-s", "link", "show", "dev", f"p{host}"]))[0]

    def bytes_sent(self, host):
        """Bytes, with Ethernet headers, that left the host's interface and reached its switch port."""
        return self._port(host)["stats64"]["rx"]["bytes"]

    def bytes_received(self, host):
        """Bytes the switch sent to the host, before its loss() is applied."""
        return self._port(host)["stats64"]["tx"]["bytes"]

    def receive_buffer_errors(self, host):
        """UDP datagrams lost to full socket buffers in this host, IPv4 and IPv6."""
        text = self._in(host, "cat", "/proc/net/snmp", "/proc/net/snmp6")
        rows = [line.split() for line in text.splitlines() if line.startswith("Udp:")]
        v4 = int(rows[1][rows[0].index("RcvbufErrors")])
        v6 = re.search(r"Udp6RcvbufErrors\s+(\d+)", text)
        return v4 + (int(v6[1]) if v6 else 0)

    def softnet_drops(self):
        """Packets dropped because a CPU's backlog was full: of the whole machine."""
        with open("/proc/net/softnet_stat") as f:
            return sum(int(line.split()[1], 16) for line in f)


# ---- cleaning up -----------------------------------------------------------------------------------------


def _namespaces(prefix):
    return [name for name in sorted(os.listdir("/run/netns")) if re.fullmatch(prefix + r"-(sw|h\d+)", name)] \
        if os.path.isdir("/run/netns") else []


def _remove(prefix):
    """Deletes the namespaces of a lab whose lock is held, and what a lab of this prefix left running in them."""
    for name in _namespaces(prefix):
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in pids:
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = any(v.startswith(f"DDF_LAB={prefix}:".encode()) for v in f.read().split(b"\0"))
                if ours:
                    os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)


def _sweep():
    """Removes labs whose owner died without a chance to do it."""
    for prefix in os.listdir(STATE_DIR):
        with contextlib.suppress(OSError, ValueError):
            with open(f"{STATE_DIR}/{prefix}", "r") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                state = json.load(f)
                if not state["stay"]:
                    _remove(prefix)
                    if state["remove"]:
                        shutil.rmtree(state["directory"], ignore_errors=True)
                    os.unlink(f.name)


# ---- command ---------------------------------------------------------------------------------------------


def _command():
    parser = argparse.ArgumentParser(prog="lab.py", description="Hosts around an emulated switch, in namespaces.")
    sub = parser.add_subparsers(dest="command", required=True)

    def add(name, text):
        p = sub.add_parser(name, help=text)
        p.add_argument("--prefix", default="lab")
        return p

    p = add("up", "build a lab that stays until `down`")
    p.add_argument("--receivers", type=int, default=2)
    p.add_argument("--mtu", type=int, default=1500)
    p.add_argument("--mode", choices=["offload", "wire"], default="offload")
    for name in ("ipv6", "snooping", "querier", "flood-unknown", "backpressure"):
        p.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=True)
    p = add("exec", "run a command in a host")
    p.add_argument("host", type=int)
    p.add_argument("argv", nargs=argparse.REMAINDER)
    p = add("loss", "random loss at receivers, in percent")
    p.add_argument("percent", type=float)
    p.add_argument("--host", type=int, action="append")
    p.add_argument("--kind", choices=list(LOSS_KINDS), default="all")
    p.add_argument("--direction", choices=["down", "up", "both"], default="down")
    p = add("cap", "cap a host's link, e.g. 1gbit, or off")
    p.add_argument("host", type=int)
    p.add_argument("rate")
    p = add("firewall", "what a host's firewall drops")
    p.add_argument("host", type=int)
    p.add_argument("drop", nargs="*", choices=[[], *FIREWALL])
    add("down", "remove the lab")
    a = parser.parse_args()
    if a.command == "up":
        made = Lab(a.receivers, prefix=a.prefix, mtu=a.mtu, mode=a.mode, ipv6=a.ipv6, snooping=a.snooping,
                   querier=a.querier, flood_unknown=a.flood_unknown, backpressure=a.backpressure)
        made.__enter__()
        made.leave_up()
        return 0
    require()
    found = Lab.attach(a.prefix)
    if a.command == "exec":
        os.execvp("ip", ["ip", "netns", "exec", found.namespace(a.host), *a.argv])
    elif a.command == "loss":
        found.loss(a.percent, hosts=a.host, kind=a.kind, direction=a.direction)
    elif a.command == "cap":
        found.cap(a.host, None if a.rate == "off" else a.rate)
    elif a.command == "firewall":
        found.firewall(a.host, *a.drop)
    elif a.command == "down":
        found._take_lock()
        found.keep = False
        found.down()
    return 0


if __name__ == "__main__":
    try:
        skip_or_run(_command)
    except (LabError, ValueError, TimeoutError) as problem:
        sys.exit(f"lab.py: {problem}")
