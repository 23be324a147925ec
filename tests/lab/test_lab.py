#!/usr/bin/env python3
"""The lab does what its functions say: one small case each, with plain UDP sockets as the programs."""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab  # noqa: E402

GROUP = "239.88.1.1"
PYTHON = sys.executable
HEAR = """
import socket, sys, time
group, local, quiet = sys.argv[1], sys.argv[2], float(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("", 7788))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(local))
s.settimeout(8)
n = 0
try:
    while True:
        if s.recv(2048) == b"end": break
        n += 1
        s.settimeout(quiet)
except TimeoutError: pass
print(n)
"""
SAY = """
import socket, sys
to, count, local = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if local: s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(local))
for i in range(count): s.sendto(b"x" * 1000, (to, 7788))
for i in range(5): s.sendto(b"end", (to, 7788))
"""


def hear(net, host, quiet=0.4):
    return net.start(host, [PYTHON, "-c", HEAR, GROUP, net.address(host), quiet])


def say(net, count=200, to=GROUP, local=None):
    process = net.run(0, [PYTHON, "-c", SAY, to, count, net.address(0) if local is None else local])
    assert process.status == 0, process.output()


def heard(process):
    process.wait(15)
    return int(process.output())


class LabTest(unittest.TestCase):
    def deliver(self, net, hosts, count=200, members=True, **how):
        ears = {h: hear(net, h) for h in hosts}
        if members:
            net.wait_members(GROUP, hosts)
        else:
            time.sleep(0.5)
        say(net, count, **how)
        return {h: heard(p) for h, p in ears.items()}

    def test_faults_of_the_network(self):
        with lab.Lab(2, mode="wire") as net:
            before = net.bytes_sent(0)
            self.assertEqual(self.deliver(net, [1, 2]), {1: 200, 2: 200})
            self.assertGreater(net.bytes_sent(0) - before, 200 * 1042)
            self.assertLess(net.bytes_sent(0) - before, 250 * 1042)

            net.loss(50, hosts=[2], kind="multicast")
            got = self.deliver(net, [1, 2])
            self.assertEqual(got[1], 200)
            self.assertTrue(50 < got[2] < 150, got)
            self.assertGreater(net.lost(2), 0)

            net.loss(100, hosts=[2], kind="unicast")
            self.assertEqual(self.deliver(net, [1, 2]), {1: 200, 2: 200})
            net.loss(0)

            net.firewall(2, "multicast")
            ears = [hear(net, h) for h in (1, 2)]
            net.wait_members(GROUP)
            say(net)
            say(net, 3, to=net.address(2))
            self.assertEqual([heard(p) for p in ears], [200, 3])
            net.firewall(2, "unicast-udp")
            ear = hear(net, 2)
            net.wait_members(GROUP, [2])
            say(net, 3, to=net.address(2))
            say(net, 5)
            self.assertEqual(heard(ear), 5)
            net.firewall(2)

            ears = [hear(net, h, quiet=1) for h in (1, 2)]
            net.wait_members(GROUP)
            net.partition(2)
            say(net, 7)
            net.heal(2)
            say(net, 3)
            self.assertEqual([heard(p) for p in ears], [7, 3])

    def test_an_interface_that_comes_back(self):
        with lab.Lab(1) as net:
            ear = hear(net, 1, quiet=3)
            net.wait_members(GROUP)
            net.link(1, False)
            net.link(1, True)
            net.wait_members(GROUP)  # the switch asks, the host still is a member
            say(net, 10)
            self.assertEqual(heard(ear), 10)
            net.delete_interface(1)
            net.create_interface(1)
            self.assertEqual(self.deliver(net, [1], 10), {1: 10})

    def test_a_second_interface_owns_the_default_route(self):
        with lab.Lab(1) as net:
            net.decoy(0)
            self.assertEqual(self.deliver(net, [1], 10), {1: 10})
            ear = hear(net, 1)
            net.wait_members(GROUP)
            say(net, 10, local="")
            say(net, 1)
            self.assertEqual(heard(ear), 1)

    def test_a_firewall_against_igmp_makes_a_host_deaf(self):
        with lab.Lab(2) as net:
            net.firewall(2, "igmp")
            self.assertEqual(self.deliver(net, [1, 2], 10, members=False)[1], 10)
            self.assertEqual(net.members(GROUP) - {1}, set())

    def test_a_switch_without_querier_that_does_not_flood(self):
        with lab.Lab(1, querier=False, flood_unknown=False) as net:
            ear = hear(net, 1)
            time.sleep(0.5)
            say(net, 10)
            ear.stop()
            self.assertEqual(ear.output().strip(), "")

    def test_a_slow_port_loses_instead_of_slowing_the_sender(self):
        with lab.Lab(2, mode="wire", backpressure=False) as net:
            net.cap(2, "20mbit")
            got = self.deliver(net, [1, 2], 2000)
            self.assertEqual(got[1], 2000)
            self.assertLess(got[2], 1500)

    def test_a_process_reports_its_end_and_its_work(self):
        with lab.Lab(1) as net:
            p = net.start(1, [PYTHON, "-c", "import time; t = time.process_time()\n"
                              "while time.process_time() - t < 0.2: pass"])
            self.assertEqual(p.wait(20), 0)
            self.assertTrue(0.2 <= p.cpu_s < 0.6, p.cpu_s)
            self.assertGreater(p.exit_time - p.start_time, 0.2)
            sleeper = net.start(1, ["sleep", "100"])
            sleeper.signal(signal.SIGKILL)
            self.assertEqual(sleeper.wait(5), -signal.SIGKILL)

    def test_nothing_stays(self):
        with lab.Lab(1) as net:
            prefix, pid = net.prefix, net.start(1, ["sleep", "100"]).pid
            with self.assertRaises(lab.LabError):
                lab.Lab(1, prefix=prefix).up()
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
        self.assertNotIn(prefix, left)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertFalse(os.path.exists(net.directory))


def main():
    lab.require()
    return 0 if unittest.main(module=__name__, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    lab.skip_or_run(main)
