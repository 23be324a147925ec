"""mcsend to three mcrecv: multicast over UDP, and what is lost of it read from the sender's memory over verbs."""
import hosts
from field import MiB, case, check, packets, until

RECEIVERS = (2, 3, 4)
SIZE = 16 * MiB


def transfer(field, percent, size=SIZE):
    """Sends one file, losing so much of the multicast at each receiver; the sender and the receivers, all ended well."""
    field.file("model.bin", size)
    for number in RECEIVERS:
        hosts.lose(field.host(number), percent)
    receivers = [field.receive("--repair", "verbs", host=number) for number in RECEIVERS]
    sender = field.send("--repair", "verbs", "--expect", str(len(RECEIVERS)), "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin", limit=50)
    sender.wait(10, 0)
    return sender, receivers


def repaired_by_reads(sender, size):
    """The share of the object that was read, where every receiver read."""
    told = sender.summary()
    read = told["repair"]["read_bytes"]
    check(read > 0, "nothing was repaired by a read", sender)
    lanes = [r["lane"] for r in told["receivers"]]
    check(lanes == ["verbs"] * len(RECEIVERS), f"the lanes are {lanes}", sender)
    return read / size


@case
def three_receivers_get_equal_copies_without_loss(field):
    sender, _ = transfer(field, 0)
    check(sender.summary()["repair"]["unicast_bytes"] == 0 or sender.summary()["repair"]["read_bytes"] > 0, "repaired by UDP", sender)


@case
def one_percent_of_loss_is_repaired_by_reads(field):
    sender, _ = transfer(field, 1)
    share = repaired_by_reads(sender, SIZE)
    print(f"     read: {share:.3f} of the object, for {len(RECEIVERS)} receivers")


@case
def ten_percent_of_loss_is_repaired_by_reads(field):
    sender, _ = transfer(field, 10)
    share = repaired_by_reads(sender, SIZE)
    print(f"     read: {share:.3f} of the object, for {len(RECEIVERS)} receivers")


@case
def a_receiver_that_is_killed_while_it_reads_does_not_hold_up_the_others(field):
    field.file("model.bin", 48 * MiB)
    for number in RECEIVERS:
        hosts.lose(field.host(number), 20)
    receivers = [field.receive("--repair", "verbs", host=number) for number in RECEIVERS]
    victim, others = receivers[0], receivers[1:]
    before = packets(field.host(RECEIVERS[0]))
    sender = field.send("--repair", "verbs", "--expect", str(len(RECEIVERS)), "model.bin")
    check(until(lambda: packets(field.host(RECEIVERS[0])) > before + 100, limit=30), "the victim does not read", victim, sender)
    victim.kill()
    for receiver in others:
        field.complete(receiver, "model.bin", limit=50)
    sender.wait(40)
    states = sorted(r["state"] for r in sender.summary()["receivers"])
    check(states.count("complete") == len(others), f"the states are {states}", sender)
