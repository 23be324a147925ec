"""mcsend to three mcrecv: multicast over UDP, and what is lost of it read from the sender's memory over verbs."""
import hosts
from field import MiB, Skip, case, check, packets, until

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


def too_slow(sender):
    """On a machine with much else to do a connection takes longer than a read may. Then UDP takes over, as it should."""
    return any("could not read" in line and "in time" in line for line in sender.text().splitlines())


def read_what_is_lost(field, percent):
    for _ in range(3):
        sender, receivers = transfer(field, percent)
        if not too_slow(sender):
            break
        print("     no connection came about in time: once more")
    repaired_by_reads(percent, sender, receivers)


def repaired_by_reads(percent, sender, receivers):
    """Every receiver read what it lacked, and both sides say so."""
    told = sender.summary()
    lanes = [r["lane"] for r in told["receivers"]]
    check(lanes == ["verbs"] * len(RECEIVERS), f"the lanes are {lanes}", sender)
    check(told["repair"]["read_bytes"] > 0, "the sender knows of no read", sender)
    read = [r.summary()["repair"]["read_bytes"] for r in receivers]
    check(min(read) > 0, f"not every receiver read: {read}", *receivers)
    by_udp = told["repair"]["unicast_bytes"] - told["repair"]["read_bytes"]
    check(by_udp == 0, f"{by_udp} bytes were sent by UDP to one alone, although reads were asked for", sender)
    print(f"     {percent} % lost: the receivers read {', '.join(f'{r / SIZE:.3f}' for r in read)} of the object, and the sender says {told['repair']['read_bytes'] / SIZE:.3f}")


@case
def three_receivers_get_equal_copies_without_loss(field):
    transfer(field, 0)


@case(limit=150)
def one_percent_of_loss_is_repaired_by_reads(field):
    read_what_is_lost(field, 1)


@case(limit=150)
def ten_percent_of_loss_is_repaired_by_reads(field):
    read_what_is_lost(field, 10)


@case(limit=120)
def a_receiver_that_is_killed_while_it_reads_does_not_hold_up_the_others(field):
    field.file("model.bin", SIZE)
    for number in RECEIVERS:
        hosts.lose(field.host(number), 40)   # so that there is much to read
    receivers = [field.receive("--repair", "verbs", host=number) for number in RECEIVERS]
    victim, others = receivers[0], receivers[1:]
    before = packets(field.host(RECEIVERS[0]))
    sender = field.send("--repair", "verbs", "--expect", str(len(RECEIVERS)), "model.bin")
    reads = until(lambda: packets(field.host(RECEIVERS[0])) > before + 100, limit=40)
    if not reads and too_slow(sender):
        raise Skip("no connection came about in time: this machine has too much else to do")
    check(reads, "the victim does not read", victim, sender)
    victim.kill()
    for receiver in others:
        field.complete(receiver, "model.bin", limit=50)
    sender.wait(40)
    states = sorted(r["state"] for r in sender.summary()["receivers"])
    check(states.count("complete") == len(others), f"the states are {states}", sender)
