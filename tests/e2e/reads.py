"""What one receiver misses it reads from the sender's memory; where reads do not get through, UDP takes their place."""
# timeout: 240
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402

DEAF_SWITCH = {"querier": False, "flood_unknown": False}   # forwards no group to anybody


def read_bytes(tool):
    return tool.summary()["repair"]["read_bytes"]


@case("91", receivers=2, **DEAF_SWITCH)
def who_hears_no_multicast_reads_everything_over_tcp(field):
    field.file("model.bin", 48 * MiB)
    receivers = [field.receive("--source", field.net.address(0), "--repair", "tcp", host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--repair", "tcp", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
        check(read_bytes(receiver) > 47 * MiB, "not read", receiver)
    sender.wait(5, 0)
    check([r["lane"] for r in sender.summary()["receivers"]] == ["tcp", "tcp"], "another lane", sender)
    check(read_bytes(sender) > 95 * MiB, "not read", sender)


@case("91", receivers=3)
def what_the_group_loses_is_read_over_tcp(field):
    for percent in (1, 10):
        field.net.loss(percent, hosts=[1, 2, 3], kind="multicast")
        name = f"model-{percent}.bin"
        field.file(name, 16 * MiB, seed=percent)
        receivers = [field.receive("--repair", "tcp", host=h) for h in (1, 2, 3)]
        sender = field.send("--expect", "3", "--repair", "tcp", name)
        for receiver in receivers:
            field.complete(receiver, name)
        sender.wait(10, 0)
        check(read_bytes(sender) > 0, "nothing was read", sender)


@case("91", receivers=2, **DEAF_SWITCH)
def a_folder_of_many_files_is_read(field):
    for i in range(400):
        field.file(f"tree/{i % 7}/{i}", (i % 50) * 3000, seed=i)
    receivers = [field.receive("--source", field.net.address(0), "--repair", "tcp", host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--repair", "tcp", "tree")
    for receiver in receivers:
        field.complete(receiver, "tree")
    sender.wait(5, 0)
    check(read_bytes(sender) > 0, "nothing was read", sender)


@case("95", receivers=1, **DEAF_SWITCH)
def where_a_firewall_drops_tcp_all_goes_by_udp(field):
    field.net.firewall(0, "unicast-tcp")
    field.file("model.bin", 64 * MiB)
    receiver = field.receive("--source", field.net.address(0), host=1)
    sender = field.send("--expect", "1", "model.bin")
    field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(read_bytes(sender) == 0, "something was read", sender)


@case("95", receivers=2, **DEAF_SWITCH)
def a_lane_that_one_side_has_not_is_refused_by_name(field):
    field.file("model.bin", MiB)
    receiver = field.receive("--source", field.net.address(0), "--repair", "udp", host=1)
    sender = field.send("--expect", "1", "--wait", "3s", "--repair", "tcp", "model.bin")
    receiver.wait(15, 6)
    sender.wait(15, 5)
    receiver.says("--repair")
    sender.says("--repair")
    field.nothing_visible(receiver)


@case("94 99", receivers=2, **DEAF_SWITCH)
def who_is_killed_or_stopped_while_it_reads_harms_nobody(field):
    field.net.cap(0, "800mbit")
    field.file("model.bin", 256 * MiB)
    doomed = field.receive("--source", field.net.address(0), "--repair", "tcp", host=1)
    other = field.receive("--source", field.net.address(0), "--repair", "tcp", host=2)
    sender = field.send("--expect", "2", "--repair", "tcp", "--deadline", "40s", "model.bin")
    doomed.wait_bytes(170 * MiB, limit=40)
    doomed.kill()
    field.complete(other, "model.bin", limit=40)
    sender.wait(45, 5)
    again = field.receive("--source", field.net.address(0), "--repair", "tcp", host=1, output=doomed.output, state=doomed.state)
    sender = field.send("--expect", "1", "--repair", "tcp", "model.bin")
    field.complete(again, "model.bin", limit=40)
    check(again.summary()["resumed_bytes"] > 0, "nothing was resumed", again)
    sender.wait(10, 0)


@case("94", receivers=1, **DEAF_SWITCH)
def a_sender_that_is_stopped_while_it_is_read_is_waited_for_and_one_that_is_killed_is_missed(field):
    field.net.cap(0, "800mbit")
    field.file("model.bin", 256 * MiB)
    receiver = field.receive("--source", field.net.address(0), "--repair", "tcp", host=1)
    sender = field.send("--expect", "1", "--repair", "tcp", "model.bin")
    receiver.wait_bytes(20 * MiB)
    sender.process.signal(signal.SIGSTOP)
    time.sleep(3)
    sender.process.signal(signal.SIGCONT)
    receiver.wait_bytes(100 * MiB, limit=40)
    sender.kill()
    receiver.wait(30, 1)
    field.nothing_visible(receiver)
    again = field.receive("--source", field.net.address(0), "--repair", "tcp", host=1, output=receiver.output, state=receiver.state)
    sender = field.send("--expect", "1", "--repair", "tcp", "model.bin")
    field.complete(again, "model.bin", limit=40)
    check(again.summary()["resumed_bytes"] > 50 * MiB, "nothing was resumed", again)


main()
