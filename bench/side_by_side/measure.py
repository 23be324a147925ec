"""One transfer of one peer: start, clock, counters, comparison. And the lab it runs in."""
import contextlib
import dataclasses
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lab"))
import lab  # noqa: E402

FIELDS = ["peer", "n", "mtu", "mode", "link_mbit", "loss", "size", "rep", "ok", "failed", "t_last", "t_first", "mbit_s",
          "egress_ratio", "cpu_s", "cpu_s_per_gib", "busy_cpu_s", "ksoftirqd_s", "foreign", "rcvbuf_errors",
          "softnet_drops", "note"]
FOREIGN_MAX = 0.2  # a run during which more of the machine than this worked on other things is repeated


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """What is held constant while peers are compared."""
    n: int
    mtu: int
    mode: str
    link_mbit: int  # 0: uncapped
    loss: float     # percent per receiver
    size: int

    @property
    def network(self):
        return self.n, self.mtu, self.mode, self.link_mbit

    def __str__(self):
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size >> 10} KiB"
        return (f"{self.n} receiver{'s' if self.n > 1 else ''}, {size}, MTU {self.mtu}, {self.mode}"
                + (f", link {self.link_mbit} Mbit/s" if self.link_mbit else "") + (f", loss {self.loss:g} %" if self.loss else ""))


class Run:
    """What a peer's commands are made from; one per transfer."""

    def __init__(self, net, cell, obj, setup):
        self.net, self.cell, self.object, self.setup = net, cell, obj, setup
        self.n, self.mtu, self.size = cell.n, cell.mtu, cell.size
        self.receivers = range(1, cell.n + 1)
        self.timeout_s = setup.timeout_s or 60 + 120 * cell.size / 2**30
        self.directory = f"{net.directory}/run"
        shutil.rmtree(self.directory, ignore_errors=True)
        for i in self.receivers:
            os.makedirs(self.directory_of(i))

    def directory_of(self, i):
        return f"{self.directory}/r{i}"

    def own(self, program):
        return f"{self.setup.programs}/{program}"

    def ddf(self, program):
        return f"{self.setup.binaries}/{program}"

    def option(self, name, default):
        return self.setup.options.get(name, default)

    def options(self, name):
        return self.setup.options.get(name, "").split()

    def ledger(self):
        path = f"{self.directory}/ledger"
        if not os.path.exists(path):
            with open(path, "wb") as f:
                f.write(bytes(64 * (1 + self.n)))
        return path


@dataclasses.dataclass
class Setup:
    programs: str
    binaries: str
    options: dict
    timeout_s: float = 0
    quiet_wait_s: float = 10


@contextlib.contextmanager
def open_lab(cell):
    """IPv4 only, and with the backpressure of a plain bridge; see README.md for what that means."""
    with lab.Lab(cell.n, prefix=f"sbs{os.getpid()}", mtu=cell.mtu, mode=cell.mode, ipv6=False) as net:
        for host in net.hosts:
            net.sysctl(host, "net.ipv4.tcp_congestion_control=cubic")
        if cell.link_mbit:
            net.cap(0, f"{cell.link_mbit}mbit")
        yield net


# ---- the machine -----------------------------------------------------------------------------------------

TICKS = os.sysconf("SC_CLK_TCK")


def busy_cpu_s():
    with open("/proc/stat") as f:
        user, nice, system, _idle, _iowait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def _ksoftirqds():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().startswith("ksoftirqd/"):
                    yield pid
        except OSError:
            pass


KSOFTIRQDS = list(_ksoftirqds())


def ksoftirqd_s():
    total = 0
    for pid in KSOFTIRQDS:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def wait_quiet(patience_s):
    """Waits until little else runs. Returns the share of the machine that still works on something."""
    deadline = time.monotonic() + patience_s
    while True:
        before, at = busy_cpu_s(), time.monotonic()
        time.sleep(0.15)
        share = (busy_cpu_s() - before) / ((time.monotonic() - at) * os.cpu_count())
        if share < 0.1 or time.monotonic() > deadline:
            return share


# ---- a transfer ------------------------------------------------------------------------------------------


def make_object(path, size):
    with open(path, "wb") as f:
        while size:
            size -= f.write(os.urandom(min(size, 1 << 24)))
    return path


def touch_memory(folder, size):
    """Makes the host of a virtual machine back as much memory as transfers will use. Else the first pays for it."""
    with open("/proc/meminfo") as f:
        available = next(int(line.split()[1]) << 10 for line in f if line.startswith("MemAvailable"))
    path, zeros = f"{folder}/touch", bytes(1 << 24)
    with open(path, "wb") as f:
        for _ in range(min(size, available // 2) >> 24):
            f.write(zeros)
    os.unlink(path)


def identical(a, b):
    try:
        if os.path.getsize(a) != os.path.getsize(b):
            return False
        with open(a, "rb") as x, open(b, "rb") as y:
            while piece := x.read(1 << 20):
                if piece != y.read(1 << 20):
                    return False
        return True
    except OSError:
        return False


def start_receivers(peer, run):
    """Starts the receivers and waits until they are ready. Returns them and a note."""
    receivers = [run.net.start(i, peer.receive(run, i), log=f"{run.directory}/r{i}.log", cwd=run.directory_of(i))
                 for i in run.receivers]
    return receivers, wait_ready(peer, run)


def wait_ready(peer, run, hosts=None):
    note = ""
    if peer.group:
        try:
            run.net.wait_members(peer.group, hosts)
        except TimeoutError as problem:
            note = str(problem)
    time.sleep(peer.settle_s)
    return note


class Watch:
    """When each receiver had the object, in seconds since `start`; None: not yet; infinity: it failed."""

    def __init__(self, peer, run, receivers, start):
        self.peer, self.run, self.receivers, self.start = peer, run, receivers, start
        self.outputs = [peer.output(run, i) for i in run.receivers]
        self.times = [None] * run.n

    def look(self):
        for k, process in enumerate(self.receivers):
            if self.times[k] is not None or process is None:
                continue
            if self.peer.done == "file":
                try:
                    if os.stat(self.outputs[k]).st_size == self.run.size:
                        self.times[k] = time.monotonic() - self.start
                        continue
                except OSError:
                    pass
            if not process.running:
                good = self.peer.done == "exit" and process.status == 0
                self.times[k] = process.exit_time - self.start if good else float("inf")

    @property
    def open(self):
        return None in self.times

    def until_done(self, sender):
        """Ends early when nothing can follow: some time after the sender has ended."""
        deadline = self.start + self.run.timeout_s
        while self.open and time.monotonic() < deadline:
            self.look()
            if sender and not sender.running:
                deadline = min(deadline, sender.exit_time + (2 if sender.status else 5))
            time.sleep(0.001)
        self.look()


def transfer(name, peer, run, rep):
    """Runs one peer once and returns its row."""
    net = run.net
    quiet = wait_quiet(run.setup.quiet_wait_s)
    drops = sum(net.receive_buffer_errors(i) for i in run.receivers), net.softnet_drops()
    receivers, sender, daemon, note = [], None, None, ""
    if peer.serve:
        daemon = net.start(0, peer.serve(run), log=f"{run.directory}/daemon.log")
        time.sleep(peer.settle_s)
    elif not peer.whole:
        receivers, note = start_receivers(peer, run)
    egress, busy, softirq, start = net.bytes_sent(0), busy_cpu_s(), ksoftirqd_s(), time.monotonic()
    if peer.whole:
        seconds, cpu, note = peer.whole(run)
        times = [seconds] * run.n
    else:
        if peer.serve:
            receivers = [net.start(i, peer.receive(run, i), log=f"{run.directory}/r{i}.log") for i in run.receivers]
            start = receivers[0].start_time
        else:
            sender = net.start(0, peer.send(run), log=f"{run.directory}/sender.log", cwd=run.directory)
            start = sender.start_time
        watch = Watch(peer, run, receivers, start)
        watch.until_done(sender)
        times = watch.times
    wall = time.monotonic() - start
    egress, busy, softirq = net.bytes_sent(0) - egress, busy_cpu_s() - busy, ksoftirqd_s() - softirq
    if sender:
        try:
            if sender.wait(3):
                note = f"sender ended with {sender.status} {note}"
        except TimeoutError:
            note = f"sender did not end {note}"
    processes = [p for p in (*receivers, sender, daemon) if p]
    net.stop_all()
    if not peer.whole:
        cpu = sum(p.cpu_s for p in processes)
    had = [t is not None and t != float("inf") for t in times]
    for k, i in enumerate(run.receivers):
        if had[k] and peer.compare and not identical(run.object, peer.output(run, i)):
            had[k] = False
            note = f"receiver {i}: not the same bytes {note}"
    good = [t for t, h in zip(times, had) if h]
    ok, gib = len(good) == run.n, len(good) * run.size / 2**30
    foreign = quiet
    if wall > 0.2 and not peer.whole:  # MPI's start-up is not in its CPU time
        foreign = max(0.0, busy - cpu - softirq) / (wall * os.cpu_count())
    after = sum(net.receive_buffer_errors(i) for i in run.receivers), net.softnet_drops()
    cell = run.cell
    return dict(peer=name, n=cell.n, mtu=cell.mtu, mode=cell.mode, link_mbit=cell.link_mbit, loss=cell.loss, size=cell.size,
                rep=rep, ok=int(ok), failed=run.n - len(good), t_last=round(max(good), 5) if ok else "",
                t_first=round(min(good), 5) if good else "", mbit_s=round(run.size * 8e-6 / max(good), 1) if ok else 0,
                egress_ratio=round(egress / run.size, 4), cpu_s=round(cpu, 3),
                cpu_s_per_gib=round(cpu / gib, 3) if gib else "", busy_cpu_s=round(busy, 2), ksoftirqd_s=round(softirq, 2),
                foreign=round(foreign, 3), rcvbuf_errors=after[0] - drops[0], softnet_drops=after[1] - drops[1],
                note=note.strip())


def launch_s(net, count=9):
    """How long it takes to start a program that does nothing in a host and to see its end: the median."""
    times = []
    for _ in range(count):
        process = net.run(0, ["true"])
        times.append(process.exit_time - process.start_time)
    net.processes.clear()
    return sorted(times)[count // 2]
