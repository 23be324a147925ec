"""Links that fail, interfaces that are made again, memberships that a switch forgets: the transfer goes on."""
# timeout: 120
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, case, check, main  # noqa: E402


def deaf(sender):
    return [r["deaf"] for r in sender.summary()["receivers"]]


@case("11", receivers=2)
def a_link_that_goes_down_and_up_at_a_receiver_does_not_end_the_transfer(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    receivers[1].wait_bytes(8 * MiB)
    field.net.link(2, False)
    time.sleep(1)
    field.net.link(2, True)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)


@case("11", receivers=2)
def a_link_that_goes_down_and_up_at_the_sender_does_not_end_the_transfer(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    receivers[1].wait_bytes(8 * MiB)
    field.net.link(0, False, cable=False)
    time.sleep(1)
    field.net.link(0, True, cable=False)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)


@case("11", receivers=2)
def an_interface_that_is_deleted_and_made_again_at_a_receiver_is_joined_again(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    receivers[1].wait_bytes(8 * MiB)
    field.net.delete_interface(2)
    time.sleep(0.5)
    field.net.create_interface(2)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(not any(r["deaf"] for r in sender.summary()["receivers"]), "it stayed deaf", sender)


@case("11", receivers=2)
def an_interface_that_is_deleted_and_made_again_at_the_sender_is_used_again(field):
    field.file("model.bin", 64 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    receivers[1].wait_bytes(8 * MiB)
    field.net.delete_interface(0)
    time.sleep(0.5)
    field.net.create_interface(0)
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)


@case("13", receivers=2)
def a_membership_that_the_switch_forgets_is_noticed_and_the_transfer_ends_by_unicast(field):
    # As when snooping goes on without a querier and reports no longer help.
    field.file("model.bin", 96 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    receivers[1].wait_bytes(8 * MiB)
    field.net.loss(100, hosts=[2], kind="multicast")
    field.complete(receivers[0], "model.bin")
    check(receivers[0].summary()["seconds"] < 96 * 8 * 1.048576 / 200 * 1.25 + 0.5, "the forgotten one slowed the other", receivers[0])
    field.complete(receivers[1], "model.bin")
    sender.wait(5, 0)
    receivers[1].says("querier")
    check(sorted(deaf(sender)) == [False, True], "one of the two", sender)


@case("13 150", receivers=2, flood_unknown=False)
def a_membership_that_the_switch_forgets_is_renewed_before_unicast_is_needed(field):
    # The switch forgets a member after 2 s instead of 260, asks for none in that time, and floods nothing unknown.
    field.switch("link set br0 type bridge mcast_querier 0 mcast_membership_interval 200")
    field.net.set_querier(True)
    time.sleep(0.7)
    field.file("model.bin", 96 * MiB)
    receivers = [field.receive(host=h) for h in (1, 2)]
    sender = field.send("--expect", "2", "--rate", "200Mbit", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(5, 0)
    check(deaf(sender) == [False, False], "a membership was not renewed", sender)


main()
