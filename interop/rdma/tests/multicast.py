"""UD multicast: one sender, three receivers."""
import json
import subprocess

import hosts
from field import BIN, MiB, Skip, case, check, until

GROUP = "239.66.0.1"
MESSAGES = 20


@case
def the_switch_carries_ud_multicast_to_three_hosts(field):
    mckey = field.program("mckey")

    def start(number, *more):
        return field.start(number, [mckey, "-m", GROUP, "-b", field.host(number).address, "-C", MESSAGES, *more], f"mckey on host {number}")

    receivers = [start(number) for number in (2, 3, 4)]
    check(until(lambda: all(hosts.joined(field.host(n), GROUP) for n in (2, 3, 4))), "not all have joined", *receivers)
    before = [hosts.crossed(field.host(n)) for n in (2, 3, 4)]
    start(1, "-s").wait(20, 0)
    for receiver in receivers:
        receiver.wait(20, 0)
    check(all(hosts.crossed(field.host(n)) - b >= MESSAGES for n, b in zip((2, 3, 4), before)), "they did not cross the switch", *receivers)


def need_transport_verbs(field):
    """Skips where this build has no transport of that name."""
    said = subprocess.run([f"{BIN}/mcsend", "--doctor", "--json", "--transport", "verbs", "--interface", field.host(1).interface],
                          capture_output=True, text=True, timeout=30)
    if said.returncode not in (0, 1) or "unsupported" in said.stderr:
        raise Skip(f"this build cannot send over verbs ({said.stderr.strip().splitlines()[-1:] or said.returncode})")
    return json.loads(said.stdout.strip().splitlines()[-1])


@case
def mcsend_over_ud_multicast_brings_every_copy(field):
    need_transport_verbs(field)
    field.file("model.bin", 8 * MiB)
    receivers = [field.receive("--transport", "verbs", host=h) for h in (2, 3, 4)]
    sender = field.send("--transport", "verbs", "--expect", "3", "model.bin")
    for receiver in receivers:
        field.complete(receiver, "model.bin")
    sender.wait(10, 0)
