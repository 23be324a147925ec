"""Groups, ports, sessions and programs that share a host or a group do not mix."""
# timeout: 180
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402

HOLD = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "reuseport": s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
if sys.argv[1] == "reuseaddr": s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 7700))
print("ready", flush=True)
s.setblocking(False)
time.sleep(60)
"""
SHOUT = """
import os, random, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
for i in range(int(sys.argv[3])):
    if i == 100: print("ready", flush=True)
    s.sendto(bytes([random.randrange(256)]) + os.urandom(random.randrange(1, 1400)), (sys.argv[2], 7700))
"""


def hold(field, host, how):
    process = field.net.start(host, [sys.executable, "-c", HOLD, how])
    while "ready" not in process.output():
        check(process.running, process.output())
        time.sleep(0.01)
    return process


@case("5", receivers=2, changes=False)
def two_groups_on_one_port_of_one_host_do_not_mix(field):
    other = field.address.replace("239.77", "239.78") + ":7700"
    field.file("one.bin", 8 * MiB)
    field.file("two.bin", 8 * MiB)
    ones = [field.receive(host=h) for h in (1, 2)]
    twos = [field.receive(host=h, group=other) for h in (1, 2)]
    senders = [field.send("--expect", "2", "one.bin"), field.send("--expect", "2", "two.bin", group=other)]
    for one, two in zip(ones, twos):
        field.complete(one, "one.bin")
        field.complete(two, "two.bin")
    for sender in senders:
        sender.wait(5, 0)


@case(receivers=2, changes=False)
def what_a_sender_offers_is_named_when_nothing_of_it_was_asked_for(field):
    field.file("model.bin", 1 * MiB)
    receiver = field.receive("nomatch", timeout="2s")
    sender = field.send("--expect", "1", "--wait", "3s", "model.bin")
    receiver.wait(10, 3)
    receiver.says("nothing it offers was asked for", "'model.bin'")
    sender.wait(10, 3)


@case(receivers=2, changes=False)
def only_the_named_source_is_listened_to(field):
    field.file("model.bin", 1 * MiB)
    receiver = field.receive("--source", field.net.address(2), timeout="2s")
    sender = field.send("--expect", "1", "--wait", "3s", "model.bin")
    receiver.wait(10, 3)
    field.nothing_visible(receiver)
    sender.wait(10, 3)


@case("5", receivers=2, changes=False)
def foreign_packets_are_dropped_and_counted(field):
    field.file("model.bin", 16 * MiB)
    receiver = field.receive()
    field.joined(1)
    noise = field.net.start(2, [sys.executable, "-c", SHOUT, field.net.address(2), field.address, 20_000])
    while "ready" not in noise.output():
        time.sleep(0.01)
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    noise.wait(10)
    check(sum(receiver.summary()["dropped"].get(why, 0) for why in ("foreign", "malformed", "other_session")) > 0, "nothing was counted", receiver)


@case("6 7", changes=False)
def several_receivers_on_one_host_all_complete(field):
    field.file("model.bin", 8 * MiB)
    receivers = [field.receive() for _ in range(4)]
    sender = field.send("--expect", "4", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(len({r["id"] for r in sender.summary()["receivers"]}) == 4, "they share a repair port", sender)


@case("7", mode="wire")
def each_of_several_receivers_on_one_host_gets_its_own_repairs(field):
    field.net.loss(3, hosts=[1], kind="multicast")
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive() for _ in range(3)]
    sender = field.send("--expect", "3", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
        check(receiver.summary()["repair"]["nacks"] > 0, "nothing was lost", receiver)
    sender.wait(5, 0)


@case("6", changes=False)
def a_foreign_program_that_shares_the_port_with_reuseport_does_no_harm(field):
    hold(field, 1, "reuseport")
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive() for _ in range(2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
        check("rejoin" not in receiver.text() and "deaf" not in str(receiver.summary()["warnings"]), "it heard no multicast", receiver)
    sender.wait(5, 0)
    check(not any(r["deaf"] for r in sender.summary()["receivers"]), "a receiver heard no multicast", sender)


@case("6", changes=False)
def a_foreign_program_that_shares_the_port_with_reuseaddr_does_no_harm(field):
    hold(field, 1, "reuseaddr")
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive() for _ in range(2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(not any(r["deaf"] for r in sender.summary()["receivers"]), "a receiver heard no multicast", sender)


@case("6", changes=False)
def a_foreign_program_that_holds_the_port_alone_is_explained(field):
    hold(field, 1, "alone")
    field.file("model.bin", 2 * MiB)
    required = field.receive("--multicast", "require")
    required.wait(3, 1)
    required.says("another program holds UDP port 7700", "ss -ulpn")
    # Where multicast is only tried, the sender is asked, and serves by unicast.
    receiver = field.receive()
    receiver.wait_for("Going on without multicast")
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["receivers"][0]["deaf"], "it was served by unicast", sender)


@case("6", changes=False)
def a_foreign_program_on_the_senders_port_does_no_harm(field):
    hold(field, 0, "alone")
    field.file("model.bin", 2 * MiB)
    receiver = field.receive()
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)


@case("24", receivers=3, changes=False)
def two_senders_on_one_group_are_never_mixed(field):
    field.file("one.bin", 24 * MiB)
    field.file("two.bin", 24 * MiB)
    receivers = [field.receive("one.bin", host=1), field.receive("two.bin", host=2)]
    senders = [field.send("--expect", "1", "one.bin"), field.send("--expect", "1", "two.bin", host=3)]
    field.complete(receivers[0], "one.bin")
    field.complete(receivers[1], "two.bin")
    for sender in senders:
        sender.wait(10, 0)


@case("24", receivers=3, changes=False)
def two_senders_of_one_name_give_one_whole_version(field):
    one, two = field.file("a/model.bin", 16 * MiB, seed=1), field.file("b/model.bin", 16 * MiB, seed=2)
    field.also("model.bin", one)
    field.also("model.bin", two)
    receivers = [field.receive(host=h) for h in (1, 2)]
    senders = [field.send("--wait", "500ms", one), field.send("--wait", "500ms", two, host=3)]
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    for sender in senders:
        sender.wait(12)


@case("16 24", receivers=1, changes=False)
def a_receiver_restarted_between_two_objects_never_writes_one_under_the_others_name(field):
    field.file("first.bin", 32 * MiB)
    field.file("second.bin", 32 * MiB)
    receiver = field.receive("first.bin", timeout="4s")
    sender = field.send("--expect", "1", "--rate", "400Mbit", "first.bin")
    receiver.wait_bytes(2 * MiB)
    receiver.kill()
    sender.kill()
    again = field.receive("first.bin", output=receiver.output, state=receiver.state, timeout="4s")
    second = field.send("--wait", "1s", "second.bin")
    second.wait(10, 3)
    again.wait(10, 3)
    field.nothing_visible(again)
    both = field.receive(output=receiver.output, state=receiver.state)
    last = field.send("--expect", "1", "second.bin")
    field.complete(both, "second.bin")
    last.wait(5, 0)


@case("24 25", receivers=2, changes=False)
def a_restarted_sender_is_a_new_session_and_the_old_one_ends_with_a_reason(field):
    old, new = field.file("a/model.bin", 32 * MiB, seed=1), field.file("b/model.bin", 32 * MiB, seed=2)
    field.also("model.bin", old)
    field.also("model.bin", new)
    receiver, follower = field.receive(host=1), field.receive("--follow", host=2)
    sender = field.send("--expect", "2", "--rate", "400Mbit", old)
    receiver.wait_bytes(2 * MiB)
    sender.kill()
    restarted = field.send("--wait", "12s", "--object-version", "2", new)
    receiver.wait(14, 1)
    receiver.says("nothing was heard from the sender for 10 s")
    field.nothing_visible(receiver)
    restarted.wait(20, 0)
    follower.process.signal(signal.SIGTERM)
    follower.wait(5, 0)
    check(follower.visible() == {"model.bin"} and open(f"{follower.output}/model.bin", "rb").read() == open(new, "rb").read(), "the follower has the new one", follower)


main()
