"""Which interfaces are used, that it is said, and what is on every packet: the scope, the source, the TTL."""
# timeout: 180
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402

# Prints "<ip proto> <destination> <ttl> <udp destination port> <udp bytes>" of every UDP packet that leaves by eth0.
SNIFF = """
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
s.bind(("eth0", 0))
print("ready", flush=True)
while True:
    p, a = s.recvfrom(65536 + 64)
    if a[2] != 4: continue
    t = struct.unpack("!H", p[12:14])[0]
    if t == 0x800 and p[23] == 17: ttl, to, udp = p[22], socket.inet_ntop(socket.AF_INET, p[30:34]), 14 + 4 * (p[14] & 15)
    elif t == 0x86dd and p[20] == 17: ttl, to, udp = p[21], socket.inet_ntop(socket.AF_INET6, p[38:54]), 54
    else: continue
    print(to, ttl, struct.unpack("!H", p[udp + 2:udp + 4])[0], p[udp + 8] & 15, flush=True)
"""
DATA, ANNOUNCE, WELCOME, NACK, REPAIR = 0, 1, 5, 7, 10


def sniff(field, host):
    process = field.net.start(host, [sys.executable, "-c", SNIFF])
    while "ready" not in process.output():
        pass
    return process


def packets(process):
    process.stop()
    return [tuple(int(x) if x.isdigit() else x for x in line.split()) for line in process.output().splitlines()[1:] if line.count(" ") == 3]


@case("1", receivers=2)
def the_named_interface_wins_over_the_default_route(field):
    for host in (0, 1):
        field.net.decoy(host)
    field.file("model.bin", 2 * MiB)
    receivers = [field.receive("--interface", "eth0", host=h) for h in (1, 2)]
    sender = field.send("--interface", "eth0", "--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["interfaces"] == ["eth0"], "another interface was used", sender)
    check(sender.summary()["repair"]["unicast_bytes"] == 0, "it went by unicast", sender)


@case("1 2", receivers=2)
def without_a_name_all_interfaces_are_tried_and_the_choice_is_told(field):
    for host in (0, 1, 2):
        field.net.decoy(host)
    field.net.link(2, False, cable=False)   # this one is reached by net2 alone
    field.file("model.bin", 2 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    sender.says("eth0 (10.88.0.1)", "net2 (10.89.0.1)")
    receivers[0].says("eth0 (10.88.0.2)", "net2 (10.89.0.2)")
    check("net2" in sender.summary()["interfaces"], "net2 reaches both", sender)
    check(all(not r["deaf"] for r in sender.summary()["receivers"]), "a receiver heard no multicast", sender)


@case("1", receivers=2)
def data_is_sent_only_where_receivers_answered(field):
    field.net.decoy(0)
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["interfaces"] == ["eth0"], "it sent where nobody listens", sender)
    check(sender.summary()["egress_ratio"] < 1.1, "it sent twice", sender)


@case("2", receivers=1)
def an_interface_that_does_not_exist_is_an_error_that_lists_those_that_do(field):
    field.file("model.bin", 1000)
    for tool in (field.receive("--interface", "eth7"), field.send("--interface", "eth7", "model.bin")):
        tool.wait(3, 2)
        tool.says("eth7", "eth0 10.88.0.")


@case("4", receivers=1)
def an_interface_that_is_down_is_skipped_and_does_not_stop_the_others(field):
    for host in (0, 1):
        field.net.decoy(host)
        field.net._ip(host, "link set net2 down")
    field.file("model.bin", MiB)
    receiver = field.receive("--interface", "net2", "--interface", "eth0")
    sender = field.send("--interface", "net2", "--interface", "10.88.0.0/24", "--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    receiver.says("net2 is down")
    sender.says("net2 is down")


@case("4", receivers=1)
def when_every_interface_is_down_the_error_lists_them(field):
    field.net.link(0, False, cable=False)
    field.file("model.bin", 1000)
    sender = field.send("--interface", "eth0", "model.bin")
    sender.wait(3, 1)
    sender.says("eth0 is down")


@case("10", receivers=2, mode="wire")
def the_ttl_is_on_every_kind_of_packet(field):
    field.net.loss(3, hosts=[1], kind="multicast")
    field.net.firewall(2, "multicast")   # so that there is unicast data too
    field.file("model.bin", 2 * MiB)
    ears = [sniff(field, h) for h in (0, 1)]
    receivers = [field.receive("--ttl", "7", host=1), field.receive("--ttl", "7", "--source", field.net.address(0), host=2)]
    sender = field.send("--ttl", "7", "--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    seen = [p for ear in ears for p in packets(ear)]
    check(seen and {p[1] for p in seen} == {7}, f"other TTLs: {sorted({p for p in seen if p[1] != 7})[:10]}")
    kinds = {p[3] for p in seen}
    check({DATA, ANNOUNCE, WELCOME, NACK} <= kinds, f"only the kinds {kinds} were seen")


@case("10", receivers=1)
def the_ttl_is_1_unless_another_is_asked_for(field):
    field.file("model.bin", MiB)
    ear = sniff(field, 0)
    receiver = field.receive()
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    seen = packets(ear)
    check(seen and {p[1] for p in seen} == {1}, f"other TTLs: {sorted({p for p in seen if p[1] != 1})[:10]}")


@case(receivers=2, changes=False)
def source_specific_multicast_takes_this_sender_only(field):
    field.file("model.bin", 2 * MiB)
    field.file("other.bin", 2 * MiB)
    receiver = field.receive("--source", field.net.address(0))
    stranger = field.send("--wait", "3s", "other.bin", host=2)
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["repair"]["unicast_bytes"] == 0, "it went by unicast", sender)
    stranger.wait(10, 3)


@case(receivers=2, ipv4=False)
def ipv6_with_any_source(field):
    field.file("model.bin", 4 * MiB)
    group = "[ff15::77:7]:7700"
    receivers = [field.receive(host=h, group=group) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin", group=group)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["repair"]["unicast_bytes"] == 0, "it went by unicast", sender)


@case(receivers=1)
def ipv6_with_one_source(field):
    field.file("model.bin", 2 * MiB)
    group = "[ff35::77:7]:7700"
    receiver = field.receive("--source", field.net.address(0, 6), group=group)
    sender = field.send("--expect", "1", "model.bin", group=group)
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["repair"]["unicast_bytes"] == 0, "it went by unicast", sender)


@case("48", receivers=2, mode="wire")
def a_link_local_group_keeps_its_scope_on_data_and_repair(field):
    for host in (0, 1, 2):
        field.net.decoy(host)
    field.net.loss(2, hosts=[1])
    field.file("model.bin", 2 * MiB)
    group = "[ff12::77:7%eth0]:7700"
    receivers = [field.receive(host=h, group=group) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin", group=group)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["interfaces"] == ["eth0"], "another interface was used", sender)
    check(sender.summary()["repair"]["nacks"] > 0, "nothing was repaired", sender)
    check(re.search(r"fe80::[0-9a-f:]+%", sender.summary()["receivers"][0]["id"]) is not None, "the receiver's address has no scope", sender)


@case("48", receivers=1)
def a_link_local_group_without_a_scope_says_what_to_add(field):
    field.file("model.bin", 1000)
    for host in (0, 1):
        field.net.decoy(host)
    for tool in (field.receive(group="[ff12::77:7]:7700"), field.send("model.bin", group="[ff12::77:7]:7700")):
        tool.wait(3, 2)
        tool.says("%eth0", "--interface")


@case("48", receivers=1)
def a_link_local_group_takes_its_scope_from_the_one_interface(field):
    field.file("model.bin", 1000)
    for host in (0, 1):
        field.net.decoy(host)
    group = "[ff12::77:7]:7700"
    receiver = field.receive("--interface", "eth0", group=group)
    sender = field.send("--interface", "eth0", "--expect", "1", "model.bin", group=group)
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check("deaf" not in receiver.text() and "no multicast" not in receiver.text(), "it came by unicast", receiver)


main()
