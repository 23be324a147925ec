#!/usr/bin/env python3
"""mcsend --doctor and mcrecv --doctor: what they tell of this host, that they end at once, send nothing and change nothing."""
import ctypes
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ.get("DDF_BIN")
PROGRAMS = {"mcsend": "sender", "mcrecv": "receiver"}
SEVERITIES = ["problem", "warning", "note", "ok"]
CLONE_NEWNET = 0x40000000

if not BIN or not all(os.access(os.path.join(BIN, program), os.X_OK) for program in PROGRAMS):
    print("SKIP: DDF_BIN names no folder with mcsend and mcrecv")
    sys.exit(77)


def run(program, *arguments, inside=None, **variables):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DDF_")}
    return subprocess.run([os.path.join(BIN, program), "--doctor", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**clean, **variables}, timeout=30, preexec_fn=inside)


def report(program, *arguments, **more):
    done = run(program, "--json", *arguments, **more)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 1, (done.stdout, done.stderr)
    one = json.loads(lines[0])
    assert one["exit"] == done.returncode and one["ok"] == (done.returncode == 0), (one, done.returncode)
    return one


def finding(one, name):
    return next((f for f in one["findings"] if f["id"] == name), None)


def new_network():
    """Runs in the child: a network namespace of its own, in which the loopback is up."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise PermissionError
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_it_ends_at_once_and_leaves_nothing(self):
        for program in PROGRAMS:
            began = time.monotonic()
            done = run(program, "--interface", "lo")
            self.assertLess(time.monotonic() - began, 1)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(os.listdir("."), [])

    def test_the_text_has_its_groups_and_fits_a_terminal_of_letters(self):
        for program in PROGRAMS:
            text = run(program, "--interface", "lo").stdout.decode()
            headings = re.findall(r"^(\w[^:\n]*)$", text, re.MULTILINE)
            self.assertEqual([h.split(" (")[0] for h in headings if "checked" not in h], ["chosen", "interfaces", "buffers and limits", "RDMA", "repair lanes", "findings"])
            self.assertIn("lo (127.0.0.1): named by --interface", text)
            self.assertRegex(text, r"\n\d+ problems?, \d+ warnings?, \d+ notes?; \d+ checked and good\n$")
            self.assertNotIn("\x1b", text)

    def test_json_is_one_object_of_stable_names(self):
        for program, role in PROGRAMS.items():
            one = report(program, "--interface", "lo")
            self.assertEqual(list(one), ["event", "role", "version", "ok", "exit", "worst", "chosen", "facts", "findings"])
            self.assertEqual((one["event"], one["role"]), ("doctor", role))
            self.assertEqual(set(one["chosen"]), {"problem", "group", "query", "interfaces", "interfaces_why", "datagram_bytes", "datagram_why", "bulk", "bulk_why", "repair", "repair_why"})
            self.assertEqual(set(one["facts"]), {
                "interfaces", "route", "receive_buffer", "send_buffer", "rmem_max", "wmem_max", "memberships_max", "source_filters_max", "gso", "gro", "net_admin",
                "ipc_lock", "memlock_bytes", "hugepage_bytes", "hugepages_free", "receive_buffer_errors", "backlog_drops", "rp_filter_drops", "rdma", "lanes",
                "firewall", "container", "own_network", "cloud"})
            self.assertEqual(set(one["facts"]["interfaces"][0]), {
                "name", "index", "addresses", "up", "multicast", "loopback", "virtual_function", "mtu", "kind", "driver", "bits_per_s", "receive_ring", "receive_ring_max", "rp_filter",
                "forced_version", "querier_version", "chosen", "address", "passed_over", "datagram_bytes"})
            self.assertEqual([lane["lane"] for lane in one["facts"]["lanes"]], ["udp", "tcp", "shm", "verbs"])
            ranks = [SEVERITIES.index(f["severity"]) for f in one["findings"]]
            self.assertEqual(ranks, sorted(ranks), "the worst first")
            self.assertEqual(one["worst"], one["findings"][0]["severity"])
            for f in one["findings"]:
                self.assertEqual(set(f), {"severity", "id", "what", "why", "cure"})
                self.assertTrue(f["what"])
                self.assertEqual(f["why"] == "", f["severity"] == "ok", f)

    def test_the_options_are_those_of_a_transfer(self):
        pathlib.Path("ddf.toml").write_text('mtu = 1400\ninterface = ["lo"]\n[mcsend]\nserve = true\n[mcrecv]\nfollow = true\n')
        for program in PROGRAMS:
            one = report(program, "--interface", "127.0.0.0/8", "--group", "239.77.7.9:17709", "--mtu", "1300", "--multicast", "off")
            self.assertEqual((one["chosen"]["group"], one["chosen"]["query"]), ("239.77.7.9:17709", "239.77.7.9:17710"))
            self.assertEqual(one["chosen"]["datagram_bytes"], 1300 - 28)
            self.assertEqual(one["chosen"]["bulk"], "udp unicast")
            self.assertEqual([n["name"] for n in one["facts"]["interfaces"] if n["chosen"]], ["lo"])
            # What a file and the environment say of usual runs does no harm here.
            self.assertEqual(report(program, "--config", "ddf.toml")["chosen"]["datagram_bytes"], 1400 - 28)
            self.assertEqual(report(program, "--mtu", "1500", DDF_INTERFACE="lo", DDF_MTU="1400")["chosen"]["datagram_bytes"], 1500 - 28)
        one = report("mcsend", "--source", "127.0.0.1")
        self.assertEqual(one["chosen"]["interfaces"], ["lo (127.0.0.1)"])
        self.assertIn("--source", one["chosen"]["interfaces_why"])

    def test_what_does_not_work_is_a_problem_with_exit_1(self):
        for program in PROGRAMS:
            one = report(program, "--interface", "nothere0")
            self.assertEqual((one["exit"], one["worst"], one["chosen"]["problem"]["code"]), (1, "problem", "invalid_argument"))
            self.assertIn("nothere0", finding(one, "interfaces")["what"])
            self.assertEqual(one["chosen"]["interfaces"], [])
            done = run(program, "--interface", "nothere0", "--quiet")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"nothere0", done.stdout)
            self.assertNotIn(b"chosen", done.stdout)
        self.assertEqual(report("mcsend", "--source", "192.0.2.77")["exit"], 1)

    def test_a_port_that_another_program_keeps_to_itself(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("", 0))
            port = other.getsockname()[1]
            one = report("mcrecv", "--interface", "lo", "--group", f"239.77.7.9:{port}")
            self.assertEqual((one["exit"], finding(one, "group_port")["severity"]), (1, "problem"))
            self.assertIn(str(port), finding(one, "group_port")["cure"])

    def test_a_group_of_ipv6(self):
        one = report("mcrecv", "--interface", "lo", "--group", "[ff15::77:7]:7700")
        self.assertEqual(one["chosen"]["group"], "[ff15::77:7]:7700")
        if one["ok"]:
            self.assertIn("IPv6", one["chosen"]["datagram_why"])

    def test_it_sends_nothing_and_joins_nothing(self):
        script = pathlib.Path("inside.py")
        script.write_text("import json, pathlib, re, subprocess, sys\n"
                          "def state():\n"
                          " snmp = [line for line in pathlib.Path('/proc/self/net/snmp').read_text().splitlines() if line.startswith('Udp: ')]\n"
                          " return [snmp, re.sub(r'[0-9]+:[0-9A-F]{8}', '', pathlib.Path('/proc/self/net/igmp').read_text()), pathlib.Path('/proc/self/net/dev').read_text()]\n"
                          "before = state()\n"
                          "codes = [subprocess.run([program, '--doctor'], stdout=subprocess.DEVNULL).returncode for program in sys.argv[1:]]\n"
                          "print(json.dumps([codes, before, state()]))\n")
        try:
            done = subprocess.run([sys.executable, script, *(os.path.join(BIN, program) for program in PROGRAMS)], stdout=subprocess.PIPE, timeout=60, preexec_fn=new_network)
        except (subprocess.SubprocessError, PermissionError):
            self.skipTest("no network namespace can be made here")
        codes, before, after = json.loads(done.stdout)
        self.assertEqual(codes, [0, 0])
        self.assertEqual(before, after)

    def inside(self, *commands):
        """mcrecv's report in a namespace of its own, after `commands`."""
        def prepare():
            new_network()
            for command in commands:
                subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)

        try:
            return report("mcrecv", inside=prepare)
        except (subprocess.SubprocessError, PermissionError):
            self.skipTest("no network namespace with these can be made here")

    def test_faults_of_a_real_network_are_found(self):
        network = [f"ip link add v{i} type veth peer name p{i} && ip link set p{i} up && ip link set v{i} up && ip address add 10.{i}.0.1/24 dev v{i}" for i in range(2)]
        set_to = lambda value, *names: "; ".join(f"echo {value} > /proc/sys/net/ipv4/{name}" for name in names)
        one = self.inside(*network, set_to(1, "conf/all/rp_filter"), set_to(2, "conf/v1/force_igmp_version", "igmp_max_memberships"))
        self.assertEqual(finding(one, "interfaces")["severity"], "note")
        self.assertIn("net.ipv4.conf.v0.rp_filter=2", finding(one, "rp_filter")["cure"])
        self.assertIn("v1", finding(one, "membership_version")["what"])
        self.assertEqual((finding(one, "memberships")["severity"], one["exit"]), ("problem", 1))
        self.assertEqual(finding(one, "route")["severity"], "note")
        self.assertEqual({n["name"]: n["kind"] for n in one["facts"]["interfaces"] if n["chosen"]}, {"lo": "loopback", "v0": "veth", "v1": "veth"})
        one = self.inside(*network[:1], set_to(0, "conf/all/rp_filter", "conf/v0/rp_filter"), "ip route add 239.0.0.0/8 dev v0")
        self.assertEqual((finding(one, "rp_filter"), finding(one, "membership_version"), one["exit"]), (None, None, 0))
        self.assertEqual((finding(one, "route")["severity"], one["facts"]["route"]), ("ok", "v0"))

    def test_packet_filters_are_seen(self):
        table = "nft add table inet t && nft add chain inet t i '{ type filter hook input priority 0; policy %s; }'"
        one = self.inside(table % "drop")
        self.assertEqual((finding(one, "firewall")["severity"], one["facts"]["firewall"]["drops_input"]), ("warning", True))
        self.assertEqual(one["facts"]["firewall"]["chains"], ["inet t i"])
        one = self.inside(table % "accept")
        self.assertEqual(finding(one, "firewall")["severity"], "ok", "a chain without rules that accepts all is nothing")
        one = self.inside(table % "accept", "nft add rule inet t i udp dport 9 drop")
        self.assertEqual((finding(one, "firewall")["severity"], one["facts"]["firewall"]["drops_input"]), ("note", False))

    def test_a_host_without_a_network_has_a_problem(self):
        def bare():
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
                raise PermissionError

        try:
            one = report("mcrecv", inside=bare)
        except (subprocess.SubprocessError, PermissionError):
            self.skipTest("no network namespace can be made here")
        self.assertEqual((one["exit"], one["chosen"]["problem"]["code"]), (1, "network"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
