"""UD multicast: one sender, three receivers."""
import subprocess

import hosts
from field import BIN, MiB, Skip, case, check, packets, until

GROUP = "239.66.0.1"
MESSAGES = 20
SIZE = 8 * MiB
RECEIVERS = (2, 3, 4)


@case
def the_switch_carries_ud_multicast_to_three_hosts(field):
    mckey = field.program("mckey")

    def start(number, *more):
        return field.start(number, [mckey, "-m", GROUP, "-b", field.host(number).address, "-C", MESSAGES, *more], f"mckey on host {number}")

    receivers = [start(number) for number in RECEIVERS]
    check(until(lambda: all(hosts.joined(field.host(n), GROUP) for n in RECEIVERS)), "not all have joined", *receivers)
    before = [hosts.crossed(field.host(n)) for n in RECEIVERS]
    start(1, "-s").wait(20, 0)
    for receiver in receivers:
        receiver.wait(20, 0)
    check(all(hosts.crossed(field.host(n)) - b >= MESSAGES for n, b in zip(RECEIVERS, before)), "they did not cross the switch", *receivers)


def need_transport_verbs(field):
    """Skips where this build has no transport of that name."""
    said = subprocess.run([f"{BIN}/mcsend", "--doctor", "--transport", "verbs", "--interface", field.host(1).interface],
                          capture_output=True, text=True, timeout=30)
    if said.returncode not in (0, 1):
        raise Skip((said.stderr.strip() or "mcsend knows no --transport verbs").splitlines()[0])


def over_verbs(field, percent):
    need_transport_verbs(field)
    field.file("model.bin", SIZE)
    for number in RECEIVERS:
        hosts.lose(field.host(number), percent)
    before = [packets(field.host(n)) for n in RECEIVERS]
    receivers = [field.receive("--transport", "verbs", host=n) for n in RECEIVERS]
    sender = field.send("--transport", "verbs", "--expect", str(len(RECEIVERS)), "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin", limit=50)
    sender.wait(10, 0)
    told = sender.summary()["bulk"]
    check(told["transport"] == "verbs", "it went by another transport", sender)
    least = told["segments"] * (1 - percent / 50)
    came = [packets(field.host(n)) - b for n, b in zip(RECEIVERS, before)]
    by_group = [r.summary()["bulk"]["bytes"] for r in receivers]
    check(min(by_group) > SIZE // 2, f"of the object came by the group: {by_group}", sender, *receivers)
    check(min(came) >= least, f"RDMA devices took in {came} packets, of {told['segments']}", sender)


@case
def mcsend_over_ud_multicast_brings_every_copy(field):
    over_verbs(field, 0)


@case
def mcsend_over_ud_multicast_repairs_what_is_lost(field):
    over_verbs(field, 10)


@case
def mcsend_over_ud_multicast_repairs_single_losses(field):
    over_verbs(field, 1)


@case
def a_receiver_without_rdma_is_served_by_unicast_and_one_on_the_senders_device_hears_the_group(field):
    need_transport_verbs(field)
    field.file("model.bin", 8 * MiB)
    by_udp = field.receive("--transport", "udp", host=2)
    others = [field.receive("--transport", "verbs", host=n) for n in (1, 3)]
    sender = field.send("--transport", "verbs", "--expect", "3", "model.bin")
    for receiver in (by_udp, *others):
        field.complete(receiver, "model.bin", limit=50)
    sender.wait(10, 0)
    check(by_udp.summary()["bulk"]["segments"] == 0, "DATA came by UDP multicast as well", by_udp)
    for receiver in others:
        check(receiver.summary()["repair"]["unicast_bytes"] < MiB, "it did not hear the group", receiver)


@case(limit=90)
def a_receiver_that_hears_nothing_for_a_while_joins_again_and_ends_whole(field):
    need_transport_verbs(field)
    field.file("model.bin", 16 * MiB)
    before = packets(field.host(2))
    cut_off, other = (field.receive("--transport", "verbs", host=n) for n in (2, 3))
    sender = field.send("--transport", "verbs", "--expect", "2", "--rate", "1500KB", "model.bin")
    check(until(lambda: packets(field.host(2)) > before + 500, limit=30), "nothing came", cut_off, sender)
    hosts.lose(field.host(2), 100, "all")
    check(until(lambda: "by rxe2:1 again" in cut_off.text(), limit=20), "it did not join again", cut_off, sender)
    hosts.lose(field.host(2), 0)
    for receiver in (cut_off, other):
        field.complete(receiver, "model.bin", limit=60)
    sender.wait(10, 0)


@case
def an_interface_or_a_device_that_cannot_is_an_error_that_says_why(field):
    need_transport_verbs(field)
    field.file("model.bin", 1000)
    for interface, device, exit, says in (("lo", "rxe1", 1, "no RDMA device has this address"),
                                          (field.host(1).interface, "^rxe1", 2, "the device selector rules out")):
        sender = field.start(1, [f"{BIN}/mcsend", "--transport", "verbs", "--interface", interface, "--device", device, "model.bin"], "mcsend without a device")
        sender.wait(20, exit)
        sender.says(says)
