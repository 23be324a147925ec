"""One-sided reads by transports/fabric over verbs, between two hosts: what is read is what is there, or an error in time."""
import re
import signal

import hosts
from field import MiB, case, check, packets, until

READER, LENDER = 1, 2
SIZES = (1, 2, 63, 4095, 4096, 4097, 65537, MiB - 1, MiB, MiB + 1, 8 * MiB, 8 * MiB + 1, 16 * MiB)
LARGE = 64 * MiB   # some seconds
GRACE_MS = 1500   # beyond the deadline: 250 ms of silence, cutting the connection, and an emulated machine


def lend(field, bytes=16 * MiB, lane="verbs"):
    peer = field.start(LENDER, [field.program("rdma_peer"), "lend", lane, field.host(LENDER).address, bytes], "lender")
    peer.wait_for(r"(?m)^[0-9a-f]+ \d+ \d+$", limit=20)
    return peer


def read(field, lender, *sizes, deadline_ms=20000, lane="verbs"):
    where = re.search(r"(?m)^([0-9a-f]+) (\d+) (\d+)$", lender.text()).groups()
    return field.start(READER, [field.program("rdma_peer"), "read", lane, field.host(READER).address, *where, deadline_ms, *sizes], "reader")


def outcomes(reader):
    """[(bytes, outcome, milliseconds)] of the reads that were answered."""
    return [(int(b), o, int(ms)) for b, o, ms in re.findall(r"(?m)^(\d+) (\w+) (\d+)", reader.text())]


@case
def reads_of_all_sizes_bring_equal_bytes_over_the_wire(field):
    lender = lend(field)
    before = packets(field.host(READER)), hosts.crossed(field.host(READER))
    reader = read(field, lender, *SIZES)
    reader.wait(50, 0)
    check([o for _, o, _ in outcomes(reader)] == ["ok"] * len(SIZES), "not all were read", reader)
    reader.says("verbs;ofi_rxm")
    needed = sum(SIZES) // 4096
    check(packets(field.host(READER)) - before[0] >= needed and hosts.crossed(field.host(READER)) - before[1] >= needed, "they did not cross the switch", reader)
    lender.kill()


@case
def reads_bring_equal_bytes_where_packets_are_lost(field):
    lender = lend(field)
    for h in (READER, LENDER):
        hosts.lose(field.host(h), 0.5, "unicast")
    reader = read(field, lender, 100, 4 * MiB, 4 * MiB + 1, deadline_ms=25000)
    reader.wait(50, 0)
    check(hosts.lost(field.host(READER)) > 0, "nothing was lost", reader)
    lender.kill()


@case
def memory_of_a_process_that_was_stopped_is_read_all_the_same(field):
    lender = lend(field)
    reader = read(field, lender, 1, 4 * MiB, 4 * MiB)
    reader.wait_for(r"(?m)^1 ok", limit=20)
    lender.process.signal(signal.SIGSTOP)
    reader.wait(30, 0)
    lender.kill()


@case
def a_lender_that_is_killed_while_it_is_read_costs_a_typed_error_by_the_deadline(field):
    lender = lend(field, LARGE)
    reader = read(field, lender, 1, LARGE, deadline_ms=6000)
    reader.wait_for(rf"(?m)^{LARGE} begun", limit=30)
    begun = packets(field.host(READER))
    check(until(lambda: packets(field.host(READER)) > begun + 500), "the read does not begin", reader)
    lender.kill()
    reader.wait(20, 1)
    (_, first, _), (_, outcome, ms) = outcomes(reader)
    check(first == "ok" and outcome in ("network", "refused"), f"the outcome is {outcome}", reader)
    check(ms <= 6000 + GRACE_MS, f"it took {ms} ms", reader)


@case
def a_lender_that_is_gone_costs_a_typed_error_by_the_deadline(field):
    lender = lend(field)
    lender.kill()
    reader = read(field, lender, 4096, deadline_ms=4000)
    reader.wait(20, 1)
    (_, outcome, ms), = outcomes(reader)
    check(outcome == "network" and ms <= 4000 + GRACE_MS, f"{outcome} after {ms} ms", reader)


@case
def a_wire_that_falls_silent_costs_the_deadline_and_later_reads_come_through(field):
    lender = lend(field, LARGE)
    reader = read(field, lender, 1, LARGE, 4 * MiB, 4 * MiB, deadline_ms=6000)
    reader.wait_for(rf"(?m)^{LARGE} begun", limit=30)
    begun = packets(field.host(READER))
    check(until(lambda: packets(field.host(READER)) > begun + 500), "the read does not begin", reader)
    hosts.lose(field.host(READER), 100, "all")
    reader.wait_for(rf"(?m)^{LARGE} [a-z]+ \d+", limit=15)
    hosts.lose(field.host(READER), 0)
    reader.wait(30)
    (_, _, _), (_, outcome, ms), *later = outcomes(reader)
    check(outcome == "network" and ms <= 6000 + GRACE_MS, f"{outcome} after {ms} ms", reader)
    check(later[-1][1] == "ok", "the last read fails too", reader)
    lender.kill()
