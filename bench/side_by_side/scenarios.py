"""What a user meets when something goes wrong in the middle. The result is a table of what happened, not a verdict."""
import os
import signal
import time

import measure
import peers

LINK_MBIT = 500  # caps the sender, so that "half way" is a time to act in
SILENCE_S = 15   # how long the end is watched when somebody never ends
DEFAULT_PEERS = ["ddf", "uftp", "udpcast", "norm", "tcp-cubic"]

SCENARIOS = {
    "plain": "nothing goes wrong",
    "late join": "the last receiver starts half way; the sender does not count on it where it can be told so",
    "killed receiver": "the last receiver is killed half way (SIGKILL)",
    "killed sender": "the sender is killed half way (SIGKILL)",
    "missing receiver": "the sender counts on a receiver that never starts",
    "two interfaces": "another interface of the sender owns the default route and no interface is named",
}


def _partial(watch, run):
    """How many outputs stand under their final name and are not the object."""
    return sum(os.path.exists(o) and not measure.identical(run.object, o) for o in watch.outputs)


def play(scenario, name, net, cell, obj, setup, half_s):
    """Runs one scenario; returns (row of the table, seconds until the last complete receiver)."""
    peer, run = peers.PEERS[name], measure.Run(net, cell, obj, setup)
    absent = {run.n} if scenario in ("late join", "missing receiver") else set()

    def start_receiver(i):
        return net.start(i, peer.receive(run, i), log=f"{run.directory}/r{i}.log", cwd=run.directory_of(i))

    receivers = [None if i in absent else start_receiver(i) for i in run.receivers]
    measure.wait_ready(peer, run, [i for i in run.receivers if i not in absent])
    command = peer.anywhere if scenario == "two interfaces" and peer.anywhere else peer.send
    starts_when_all_are_there = name in ("ddf", "udpcast")
    run.n -= scenario == "late join" and starts_when_all_are_there
    argv = command(run)
    run.n = cell.n
    sender = net.start(0, argv, log=f"{run.directory}/sender.log", cwd=run.directory)
    watch = measure.Watch(peer, run, receivers, sender.start_time)

    acted, named_half, limit = False, "", max(SILENCE_S, 3 * half_s)
    while time.monotonic() < sender.start_time + limit:
        if not acted and time.monotonic() >= sender.start_time + half_s:
            acted = True
            if scenario != "plain":  # whose half time is not known yet
                named_half = sum(map(os.path.exists, watch.outputs))
            if scenario == "late join":
                receivers[-1] = start_receiver(run.n)
            elif scenario == "killed receiver":
                receivers[-1].signal(signal.SIGKILL)
            elif scenario == "killed sender":
                sender.signal(signal.SIGKILL)
        watch.look()
        waiting = [p for p in receivers if p and p.running]
        ended = not sender.running and (not waiting or peer.done == "file")
        if acted and ended and (not watch.open or scenario == "missing receiver" and watch.times.count(None) == 1):
            break
        time.sleep(0.002)
    watched = time.monotonic() - sender.start_time
    sender_says = f"ended {sender.status} at {sender.exit_time - sender.start_time:.1f} s" if not sender.running else \
        f"still runs at {watched:.0f} s"
    waiting = sum(p is not None and p.running for p in receivers) if peer.done == "exit" else \
        sum(t is None for t, p in zip(watch.times, receivers) if p)
    killed = receivers[-1] if scenario == "killed receiver" else None
    failed = sorted({p.status for p in receivers if p and p is not killed and not p.running and p.status})
    net.stop_all()
    intact = [measure.identical(run.object, o) for o in watch.outputs]
    done = [t for t, whole in zip(watch.times, intact) if whole and t not in (None, float("inf"))]
    row = (f"| {name} | {scenario} | {''.join('Y' if w else 'n' for w in intact)} | {f'{max(done):.2f}' if done else '-'} | "
           f"{named_half} | {_partial(watch, run)} | {waiting} | {', '.join(map(str, failed))} | {sender_says} |")
    return row, max(done, default=0)


def table(names, setup, size, n):
    out = [f"{n} receivers, {size >> 20} MiB, MTU 1500, offload, sender's link capped at {LINK_MBIT} Mbit/s.", "",
           "| peer | scenario | intact | last at s | under the final name half way | partial there at the end "
           "| still waiting | error exits | sender |", "|---|---|---|--:|--:|--:|--:|---|---|"]
    cell = measure.Cell(n, 1500, "offload", LINK_MBIT, 0.0, size)
    for name in names:
        if not peers.PEERS[name].send:
            print(f"{name}: no scenarios for a tool that receivers start")
            continue
        with measure.open_lab(cell) as net:
            obj, half_s = measure.make_object(f"{net.directory}/object", size), 0.5
            for scenario in SCENARIOS:
                if scenario == "two interfaces":
                    net.decoy(0)
                row, seconds = play(scenario, name, net, cell, obj, setup, half_s)
                if scenario == "plain" and seconds:
                    half_s = seconds / 2
                print(row, flush=True)
                out.append(row)
    return "\n".join(out + ["", *(f"- {k}: {v}" for k, v in SCENARIOS.items())])
