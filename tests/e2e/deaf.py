"""Receivers that no multicast reaches are served by unicast and told why; --multicast says what is allowed."""
# timeout: 180
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402

DEAF_SWITCH = {"querier": False, "flood_unknown": False}   # forwards no group to anybody


def deaf(sender):
    return [r["deaf"] for r in sender.summary()["receivers"]]


@case("46", receivers=2)
def a_receiver_whose_firewall_drops_multicast_is_served_by_unicast_and_told_why(field):
    field.net.firewall(2, "multicast")
    field.file("model.bin", 16 * MiB)
    hears, hears_not = field.receive(host=1), field.receive("--source", field.net.address(0), host=2)
    sender = field.send("--expect", "2", "model.bin")
    field.complete(hears, "model.bin")
    field.complete(hears_not, "model.bin")
    sender.wait(5, 0)
    hears_not.says("no multicast", "firewall", "IGMP snooping")
    check(sorted(deaf(sender)) == [False, True], "one of the two is deaf", sender)
    check(hears.summary()["repair"]["unicast_bytes"] == 0, "the other was served by unicast too", hears)
    check(hears_not.summary()["warnings"], "the summary has no warning", hears_not)


@case("46", receivers=2)
def without_source_a_deaf_receiver_finds_the_sender_by_asking_the_group(field):
    field.net.firewall(2, "multicast")   # what it sends still leaves
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sorted(deaf(sender)) == [False, True], "one of the two is deaf", sender)


@case("46", receivers=2, **DEAF_SWITCH)
def on_a_switch_that_forwards_nothing_all_are_served_by_unicast(field):
    field.file("model.bin", 8 * MiB)
    receivers = [field.receive("--source", field.net.address(0), host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
        receiver.says("no multicast", "querier")
    sender.wait(5, 0)
    check(deaf(sender) == [True, True], "both are deaf", sender)


@case("46", receivers=1, **DEAF_SWITCH)
def without_source_on_such_a_switch_the_error_says_what_to_check(field):
    field.file("model.bin", MiB)
    receiver = field.receive(timeout="2s")
    sender = field.send("--wait", "2s", "model.bin")
    receiver.wait(5, 3)
    sender.wait(5, 3)
    receiver.says("IGMP snooping", "--source", "firewall", "eth0")
    sender.says("IGMP snooping", "--group", "--interface")


@case("46", receivers=2)
def a_firewall_that_drops_unicast_is_named_where_all_arrived(field):
    field.net.firewall(2, "unicast")
    field.file("model.bin", 4 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--wait", "1s", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    receivers[1].says("did not confirm", "firewall")
    sender.wait(20, 5)
    check("complete" in [r["state"] for r in sender.summary()["receivers"]], "the other one is complete", sender)


@case("46", receivers=2, mode="wire")
def a_firewall_that_drops_unicast_is_an_error_where_something_was_lost(field):
    field.net.firewall(2, "unicast")
    field.net.loss(2, hosts=[2], kind="multicast")
    field.file("model.bin", 4 * MiB)
    hears, half = field.receive(host=1), field.receive(host=2)
    sender = field.send("--wait", "1s", "model.bin")
    field.complete(hears, "model.bin")
    half.wait(30, 1)
    half.says("firewall", "unicast")
    sender.wait(20, 5)


@case("138", receivers=2)
def multicast_required_fails_clearly_where_none_arrives(field):
    field.net.firewall(2, "multicast")
    field.file("model.bin", 4 * MiB)
    hears = field.receive("--multicast", "require", host=1)
    hears_not = field.receive("--multicast", "require", "--source", field.net.address(0), host=2)
    sender = field.send("--expect", "1", "--linger", "3s", "model.bin")
    field.complete(hears, "model.bin")
    hears_not.wait(10, 1)
    hears_not.says("multicast is required", "firewall")
    check(hears_not.summary()["outcome"]["code"] == "no_multicast", "another code", hears_not)
    sender.wait(10, 5)
    sender.says("multicast is required")
    field.nothing_visible(hears_not)


@case("138", receivers=2)
def a_sender_that_requires_multicast_refuses_the_deaf(field):
    field.net.firewall(2, "multicast")
    field.file("model.bin", 4 * MiB)
    hears, hears_not = field.receive(host=1), field.receive("--source", field.net.address(0), host=2)
    hears_not.wait_for("listening on")
    sender = field.send("--multicast", "require", "--wait", "3s", "model.bin")
    field.complete(hears, "model.bin")
    hears_not.wait(10, 1)
    hears_not.says("the sender requires it")
    sender.wait(10, 5)
    check([r["state"] for r in sender.summary()["receivers"] if r["deaf"]] == ["refused"], "the deaf one is refused", sender)


@case(receivers=2, changes=False)
def multicast_off_at_the_sender_serves_everyone_by_unicast(field):
    field.file("model.bin", 8 * MiB)
    receivers = [field.receive("--source", field.net.address(0), host=1), field.receive(host=2)]
    sender = field.send("--multicast", "off", "--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sender.summary()["bulk"]["segments"] == 0, "data went to the group", sender)
    check(1.9 < sender.summary()["egress_ratio"] < 2.3, "two copies", sender)


@case(receivers=2, changes=False)
def multicast_off_at_a_receiver_serves_this_one_by_unicast(field):
    field.file("model.bin", 8 * MiB)
    receivers = [field.receive("--source", field.net.address(0), "--multicast", "off", host=1), field.receive(host=2)]
    sender = field.send("--expect", "2", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(sorted(deaf(sender)) == [False, True], "one of the two", sender)
    check(sender.summary()["bulk"]["segments"] > 5000, "the other one by multicast", sender)


main()
