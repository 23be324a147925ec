"""Loss, slow receivers, small buffers, small MTUs and forged requests: everything arrives, and nobody pays for another."""
# timeout: 240
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import KiB, MiB, NOBODY, case, check, lab, main  # noqa: E402


def transfer(field, size, hosts, *options, limit=30, **places):
    field.file("model.bin", size)
    receivers = [field.receive(host=h, **places) for h in hosts]
    sender = field.send("--expect", str(len(hosts)), *options, "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin", limit=limit)
    sender.wait(5, 0)
    return sender, receivers


@case("14", receivers=4, mode="wire", backpressure=False)
def one_percent_loss_is_repaired(field):
    field.net.loss(1)
    sender, _ = transfer(field, 32 * MiB, (1, 2, 3, 4))
    check(sender.summary()["egress_ratio"] < 1.15, f"egress {sender.summary()['egress_ratio']}", sender)
    check(sender.summary()["repair"]["nacks"] > 0, "nothing was lost", sender)


@case(receivers=4, mode="wire", backpressure=False)
def five_percent_loss_is_repaired(field):
    field.net.loss(5)
    sender, _ = transfer(field, 32 * MiB, (1, 2, 3, 4))
    check(sender.summary()["egress_ratio"] < 1.45, f"egress {sender.summary()['egress_ratio']}", sender)


@case(receivers=2, mode="wire", backpressure=False)
def loss_in_both_directions_of_everything_is_survived(field):
    for host in (1, 2):
        for direction in ("down", "up"):
            field.net.loss(10, hosts=[host], direction=direction)
    transfer(field, 8 * MiB, (1, 2))


@case("39", receivers=2, mode="wire", changes=False)
def many_small_transfers_end_soon_also_when_their_last_packets_are_lost(field):
    field.net.loss(20)
    for i in range(6):
        field.file(f"small{i}", 3 * KiB)
        receivers = [field.receive(f"small{i}", host=h) for h in (1, 2)]
        sender = field.send("--expect", "2", f"small{i}")
        for receiver in receivers:
            field.complete(receiver, f"small{i}", limit=5)
        sender.wait(5, 0)
    field.net.loss(0)


@case("40", receivers=3, mode="wire", backpressure=False)
def one_slow_receiver_does_not_slow_the_others_and_finishes_by_unicast(field):
    field.net.cap(3, "40mbit")
    field.file("model.bin", 48 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2, 3)]
    sender = field.send("--expect", "3", "--rate", "400Mbit", "model.bin")
    for receiver in receivers[:2]:
        field.complete(receiver, "model.bin")
        check(receiver.summary()["seconds"] < 48 * MiB * 8 / 400e6 * 1.3 + 1, "the slow one slowed the others", receiver)
    field.complete(receivers[2], "model.bin", limit=40)
    sender.wait(5, 0)
    check(receivers[2].summary()["seconds"] < 30, "the slow one took too long", receivers[2])
    told = [r for r in sender.summary()["receivers"] if r["left_rate_loop"]]
    check(len(told) <= 1, "others left the rate loop", sender)


@case("42", receivers=2, mode="wire")
def the_default_socket_buffer_is_enough_and_the_advice_is_given_when_it_overflows(field):
    program = f"{field.directory}/mcrecv"
    with open(f"{os.environ['DDF_BIN']}/mcrecv", "rb") as source, open(program, "wb") as copy:
        copy.write(source.read())
    os.chmod(program, 0o755)   # an unprivileged user gets what the system allows, here as on a fresh Debian
    with open("/proc/sys/net/core/rmem_max") as f:
        if int(f.read()) > 256 * KiB:
            raise lab.Skip("net.core.rmem_max of this machine is not the default")
    sender, receivers = transfer(field, 32 * MiB, (1, 2), user=NOBODY, program=program)
    check(sender.summary()["repair"]["unicast_bytes"] + sender.summary()["repair"]["multicast_bytes"] < 3 * MiB, "bursts do not fit the buffer", sender)
    for receiver in receivers:
        receiver.says("receive buffer", "sysctl -w net.core.rmem_max")


@case("43 152", receivers=2, mtu=9000, mode="wire")
def a_smaller_mtu_on_one_switch_port_is_found_used_and_said(field):
    field.net.set_mtu(2, 1500, end=False)
    sender, _ = transfer(field, 8 * MiB, (1, 2))
    sender.says("1472-byte datagrams", "MTU of every switch port")
    check(any("MTU" in w for w in sender.summary()["warnings"]), "the summary does not say so", sender)
    check(not any(r["deaf"] for r in sender.summary()["receivers"]), "it went by unicast", sender)


@case("43", receivers=2, mtu=9000, mode="wire")
def a_late_receiver_behind_a_smaller_mtu_is_refused_with_the_cure(field):
    field.net.set_mtu(2, 1500, end=False)
    field.file("model.bin", 32 * MiB)
    first = field.receive(host=1)
    sender = field.send("--expect", "1", "--rate", "50Mbit", "model.bin")
    first.wait_bytes(2 * MiB)
    late = field.receive(host=2)
    late.wait(10, 6)
    late.says("MTU", "--mtu")
    field.nothing_visible(late)
    field.complete(first, "model.bin")
    sender.wait(5, 5)
    sender.says("--mtu")


@case("43", receivers=2, mtu=9000, mode="wire")
def the_mtu_that_is_named_is_kept(field):
    field.net.set_mtu(2, 1500, end=False)
    sender, _ = transfer(field, 4 * MiB, (1, 2), "--mtu", "1400")
    check(not sender.summary()["warnings"], "it was named", sender)
    check(sender.summary()["bulk"]["bytes"] / sender.summary()["bulk"]["segments"] <= 1372, "larger than named", sender)


# Learns the session from the announcements, then asks for everything: with made-up tokens from its own address, and with
# the address of a receiver. The check is XXH3-64, here for 33 to 64 bytes.
FORGE = """
import os, socket, struct, sys, time
group, local, sender, victim, victim_port = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
secret = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c")
M = (1 << 64) - 1
def u64(b, at): return struct.unpack_from("<Q", b, at)[0]
def mix(d, at, s):
    p = (u64(d, at) ^ u64(secret, s)) * (u64(d, at + 8) ^ u64(secret, s + 8))
    return (p ^ p >> 64) & M
def check(d):
    a = len(d) * 0x9E3779B185EBCA87 + mix(d, 16, 32) + mix(d, len(d) - 32, 48) + mix(d, 0, 0) + mix(d, len(d) - 16, 16) & M
    a = (a ^ a >> 37) * 0x165667919E3779F9 & M
    return (a ^ a >> 32) & 0xffffffff
def nack(session, token, first, count, unicast):
    body = token + struct.pack("!QQQ", 0, 0, 0) + struct.pack("!H", 1) + first.to_bytes(6, "big") + struct.pack("!I", count - 1)
    d = bytes([0x17, 2 if unicast else 0]) + struct.pack("!HI", 16 + len(body), 0) + session + body
    return d[:4] + struct.pack("!I", check(d)) + d[8:]
def checksum(b):
    s = sum(struct.unpack(f"!{len(b) // 2}H", b))
    s = (s >> 16) + (s & 0xffff)
    return ~(s + (s >> 16)) & 0xffff
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
ear.bind((group, 7700))
ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(local))
print("ready", flush=True)
while True:
    d = ear.recv(65536)
    if d[0] == 0x11: break
session = d[8:16]
mine = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mine.bind((local, 0))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
end = time.monotonic() + 2
sent = 0
while time.monotonic() < end:
    for unicast in (False, True):
        d = nack(session, os.urandom(8), 0, 4000, unicast)
        mine.sendto(d, (sender, 7700))
        udp = struct.pack("!HHHH", victim_port, 7700, 8 + len(d), 0) + d
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + socket.inet_aton(victim) + socket.inet_aton(sender)
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        raw.sendto(ip + udp, (sender, 0))
        sent += 2
    time.sleep(0.001)
mine.setblocking(False)
got = 0
try:
    while True: got += len(mine.recv(65536))
except BlockingIOError: pass
print("sent", sent, "drew", got, flush=True)
"""


@case("36", receivers=3, changes=False)
def forged_nacks_draw_no_repair(field):
    field.file("model.bin", 96 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    field.joined(1, 2)
    sender = field.send("--expect", "3", "--wait", "1s", "--rate", "400Mbit", "--quorum", "2", "model.bin")
    receivers[0].wait_bytes(MiB)
    port = next(int(line.split()[3].rsplit(":")[-1]) for line in field.net._in(1, "ss", "-Huanp").splitlines() if "mcrecv" in line and ":7700" not in line)
    forger = field.net.start(3, [sys.executable, "-c", FORGE, field.address, field.net.address(3), field.net.address(0), field.net.address(1), port])
    for receiver in receivers:
        field.complete(receiver, "model.bin")
        check(receiver.summary()["dropped"].get("duplicate", 0) < 100, "repairs were drawn to it", receiver)
    sender.wait(5, 0)
    check(forger.wait(10) == 0, forger.output())
    sent, drew = map(int, re.search(r"sent (\d+) drew (\d+)", forger.output()).groups())
    check(sent > 100 and drew == 0, forger.output(), sender)
    summary = sender.summary()
    check(summary["dropped"].get("wrong_token", 0) > 100, "they were not counted", sender)
    check(summary["repair"]["unicast_bytes"] + summary["repair"]["multicast_bytes"] < MiB, "repairs were sent", sender)


main()
