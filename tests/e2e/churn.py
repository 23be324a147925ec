"""Who comes late, dies, restarts or never comes: the others complete, what is missing is named, nothing is fetched twice."""
# timeout: 240
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402


def states(sender):
    return sorted(r["state"] for r in sender.summary()["receivers"])


@case("15", receivers=2, changes=False)
def a_receiver_that_comes_at_60_percent_gets_everything_and_the_rate_is_not_reduced(field):
    field.file("model.bin", 100 * MiB)
    first = field.receive()
    sender = field.send("--expect", "1", "--rate", "400Mbit", "model.bin")
    first.wait_bytes(60 * MiB)
    late = field.receive(host=2)
    field.complete(first, "model.bin")
    field.complete(late, "model.bin")
    sender.wait(5, 0)
    check(first.summary()["seconds"] < 100 * MiB * 8 / 400e6 * 1.15, "the late one slowed the first", first)
    check(sender.summary()["bulk"]["segments"] < 75_000, "the first pass was repeated", sender)


@case("15", receivers=2, changes=False)
def a_receiver_that_comes_when_all_was_sent_is_served_while_the_sender_lingers(field):
    field.file("model.bin", 8 * MiB)
    first = field.receive()
    sender = field.send("--expect", "1", "--linger", "5s", "model.bin")
    field.complete(first, "model.bin")
    late = field.receive(host=2)
    field.complete(late, "model.bin", limit=5)
    sender.wait(15, 0)
    check(states(sender) == ["complete", "complete"], "both are counted", sender)


@case("110", receivers=3, changes=False)
def a_killed_receiver_is_named_and_the_others_complete(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2, 3)]
    sender = field.send("--expect", "3", "--rate", "400Mbit", "model.bin")
    receivers[2].wait_bytes(16 * MiB)
    receivers[2].kill()
    for receiver in receivers[:2]:
        field.complete(receiver, "model.bin")
        check(receiver.summary()["seconds"] < 64 * MiB * 8 / 400e6 + 0.8, "the dead one delayed the others", receiver)
    sender.wait(10, 5)
    check(states(sender) == ["complete", "complete", "lost"], "one is lost", sender)
    lost = next(r for r in sender.summary()["receivers"] if r["state"] == "lost")
    check("10.88.0.4" in lost["id"] and "not heard for" in lost["reason"], "it is not named", sender)
    sender.says("10.88.0.4")
    field.nothing_visible(receivers[2])


@case(receivers=3, changes=False)
def a_stopped_receiver_slows_nobody_and_completes_when_it_goes_on(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2, 3)]
    sender = field.send("--expect", "3", "--rate", "400Mbit", "model.bin")
    receivers[2].wait_bytes(8 * MiB)
    receivers[2].process.signal(signal.SIGSTOP)
    for receiver in receivers[:2]:
        field.complete(receiver, "model.bin")
        check(receiver.summary()["seconds"] < 64 * MiB * 8 / 400e6 + 0.8, "the stopped one delayed the others", receiver)
    receivers[2].process.signal(signal.SIGCONT)
    field.complete(receivers[2], "model.bin")
    sender.wait(5, 0)
    check([r["left_rate_loop"] for r in sender.summary()["receivers"]].count(True) == 1, "it left the rate loop", sender)


@case("25 26", receivers=2, changes=False)
def a_killed_sender_ends_its_receivers_and_a_new_one_sends_only_what_is_missing(field):
    size = 128 * MiB
    field.file("model.bin", size)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "500Mbit", "model.bin")
    for receiver in receivers:
        receiver.wait_bytes(size // 2)
    died = time.monotonic()
    sender.kill()
    for receiver in receivers:
        receiver.wait(14, 1)
        check(9 < receiver.process.exit_time - died < 12.5, f"it took {receiver.process.exit_time - died:.1f} s", receiver)
        receiver.says("nothing was heard from the sender", "kept for a resume")
        field.nothing_visible(receiver)
    again = [field.receive(host=h, output=r.output, state=r.state) for h, r in zip((1, 2), receivers)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in again:
        field.complete(receiver, "model.bin")
        kept = receiver.summary()["resumed_bytes"]
        check(kept > size * 0.4, f"only {kept} bytes were resumed", receiver)
        fetched = receiver.summary()["bulk"]["bytes"] + sum(receiver.summary()["repair"][k] for k in ("multicast_bytes", "unicast_bytes"))
        check(fetched <= size - kept + 2 * MiB, f"{fetched} bytes were fetched, {size - kept} were missing", receiver)
    sender.wait(5, 0)
    check(sender.summary()["egress_ratio"] < 0.8, "more was sent than was missing", sender)


@case("26", receivers=2, changes=False)
def a_killed_receiver_that_is_started_again_fetches_only_what_is_missing(field):
    size = 192 * MiB
    field.file("model.bin", size)
    steady, killed = field.receive(host=1), field.receive(host=2)
    sender = field.send("--expect", "2", "--rate", "400Mbit", "model.bin")
    killed.wait_bytes(140 * MiB)
    killed.kill()
    field.nothing_visible(killed)
    again = field.receive(host=2, output=killed.output, state=killed.state)
    field.complete(steady, "model.bin")
    field.complete(again, "model.bin")
    sender.wait(10, 0)
    check(again.summary()["resumed_bytes"] >= 60 * MiB, "what it had was fetched again", again)   # the map is written every 64 MiB
    check(steady.summary()["seconds"] < size * 8 / 400e6 * 1.15 + 0.6, "the restart delayed the other", steady)


@case("26", receivers=1, changes=False)
def an_interrupted_receiver_says_so_and_resumes_later(field):
    size = 64 * MiB
    field.file("model.bin", size)
    receiver = field.receive()
    sender = field.send("--expect", "1", "--rate", "200Mbit", "model.bin")
    receiver.wait_bytes(size // 2)
    receiver.process.signal(signal.SIGINT)
    receiver.wait(3, 130)
    sender.wait(5, 5)
    sender.says("interrupted")
    field.nothing_visible(receiver)
    again = field.receive(output=receiver.output, state=receiver.state)
    sender = field.send("--expect", "1", "model.bin")
    field.complete(again, "model.bin")
    sender.wait(5, 0)
    check(again.summary()["resumed_bytes"] > size * 0.3, "it began from the start", again)


@case("26", receivers=1, changes=False)
def a_version_that_is_there_already_is_not_sent_again(field):
    field.file("model.bin", 32 * MiB)
    receiver = field.receive()
    field.send("--expect", "1", "model.bin", state=f"{field.directory}/published")
    field.complete(receiver, "model.bin")
    field.tools[-1].wait(5, 0)
    again = field.receive(output=receiver.output, state=receiver.state)
    sender = field.send("--expect", "1", "model.bin", state=f"{field.directory}/published")
    field.complete(again, "model.bin")
    sender.wait(5, 0)
    check(again.summary()["objects"][0]["encoding"] == "none", "it was sent again", again)
    check(sender.summary()["egress_ratio"] < 0.01, "it was sent again", sender)


@case(receivers=1, changes=False)
def an_interrupted_sender_tells_its_receivers_at_once(field):
    field.file("model.bin", 64 * MiB)
    receiver = field.receive()
    sender = field.send("--expect", "1", "--rate", "200Mbit", "model.bin")
    receiver.wait_bytes(8 * MiB)
    sender.process.signal(signal.SIGTERM)
    sender.wait(3, 130)
    receiver.wait(2, 1)
    receiver.says("interrupted at the sender")
    field.nothing_visible(receiver)


@case(receivers=2, changes=False)
def a_receiver_that_never_came_makes_the_exit_5_and_the_others_complete(field):
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "3", "--wait", "2s", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 5)
    sender.says("2 of 3 receivers are complete", "1 of the expected never joined")


@case(receivers=2, changes=False)
def a_quorum_is_enough(field):
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "3", "--wait", "1s", "--quorum", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)


@case(receivers=2, changes=False)
def a_quorum_is_reached_although_one_receiver_died(field):
    field.file("model.bin", 32 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--quorum", "1", "--rate", "400Mbit", "model.bin")
    receivers[1].wait_bytes(4 * MiB)
    receivers[1].kill()
    field.complete(receivers[0], "model.bin")
    sender.wait(10, 0)
    check(states(sender) == ["complete", "lost"], "it is still named", sender)


@case(receivers=2, mode="wire", backpressure=False)
def at_the_deadline_those_that_are_not_complete_are_named(field):
    field.net.cap(2, "10mbit")
    field.file("model.bin", 32 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--deadline", "4s", "model.bin")
    field.complete(receivers[0], "model.bin")
    sender.wait(6, 5)
    check(states(sender) == ["complete", "incomplete"], "one is incomplete", sender)
    sender.says("10.88.0.3", "not complete by the deadline")
    receivers[1].wait(8, 5)
    receivers[1].says("not complete by the deadline", "kept for a resume")
    field.nothing_visible(receivers[1])


@case(receivers=1, changes=False)
def without_a_sender_the_exit_is_3(field):
    receiver = field.receive(timeout="1s")
    receiver.wait(3, 3)
    receiver.says("no sender was heard", "239.77.", "eth0", "--group")


@case(receivers=1, changes=False)
def without_a_receiver_the_exit_is_3(field):
    field.file("model.bin", 1000)
    sender = field.send("--wait", "1s", "model.bin")
    sender.wait(3, 3)
    sender.says("no receiver joined", "--group", "IGMP snooping")
    field.send("--expect", "2", "--wait", "1s", "model.bin").wait(3, 3)


main()
