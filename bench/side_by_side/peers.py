"""The peers, one entry each. To add a tool, add an entry: how a receiver and the sender are called."""
import dataclasses
import os
import re
import shlex
import shutil
from typing import Callable, Optional

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Peer:
    """One tool. The functions take the run (measure.Run: n, mtu, object, size, net, ...) and return a command line.

    kind      "limit", "tcp", "mpi", "multicast" or "ddf": the columns of ratios go by it
    receive   command of receiver i (1..n), started before the clock
    send      command of the sender; the clock starts just before it
    serve     instead of `send`: a daemon at the sender, started before the clock, which starts with the receivers
    output    where receiver i's object lands
    done      "exit": the receiver ends with 0 when it has the object; "file": the output reaches the object's size
    group     the group receivers join; the sender starts when the switch knows all of them
    settle_s  then, or without a group, how long receivers get to be ready
    compare   False: it keeps no file
    whole     instead of all of the above: does the transfer itself and returns (seconds, CPU seconds, note)
    anywhere  the sender's command without an interface named, for the scenario with two of them
    needs     programs on PATH; `own`: a program built from this folder; `package`: of Debian
    slow      hundreds of Mbit/s at best: one repetition is enough for a large object
    """
    kind: str
    receive: Optional[Callable] = None
    send: Optional[Callable] = None
    serve: Optional[Callable] = None
    output: Callable = lambda run, i: f"{run.directory_of(i)}/out"
    done: str = "exit"
    group: Optional[str] = None
    settle_s: float = 0.1
    compare: bool = True
    whole: Optional[Callable] = None
    anywhere: Optional[Callable] = None
    needs: tuple = ()
    own: Optional[str] = None
    package: tuple = ()
    slow: bool = False
    prepare: Optional[Callable] = None


def _raw(store="file", calls="batched", digest="none"):
    def common(run, role, host):
        return [run.own("raw_multicast"), role, "--ledger", run.ledger(), "--interface", run.net.address(host),
                "--group", "239.88.0.1", "--payload", run.mtu - 28 - 8, "--calls", calls]

    return Peer("limit", group="239.88.0.1", own="raw_multicast", compare=store != "discard",
                receive=lambda run, i: [*common(run, "receive", i), "--size", run.size, "--index", i - 1,
                                        "--output", f"{run.directory_of(i)}/out", "--store", store, "--digest", digest],
                send=lambda run: [*common(run, "send", 0), "--object", run.object, "--receivers", run.n])


def _tcp(congestion):
    return Peer("tcp", own="tcp_copies", settle_s=0.3,
                receive=lambda run, i: [run.own("tcp_copies"), "receive", "--output", f"{run.directory_of(i)}/out",
                                        "--congestion", congestion],
                send=lambda run: [run.own("tcp_copies"), "send", "--object", run.object, "--congestion", congestion,
                                  "--to", ",".join(run.net.address(i) for i in run.receivers)])


def _uftp_send(run, *interface):
    ids = ",".join("0x0A5800%02X" % (i + 1) for i in run.receivers)
    return ["uftp", *interface, "-R", run.option("uftp_rate", "-1"), "-b", min(run.mtu - 100, 8800), "-B", 8 * MIB,
            "-r", "0.02:0.01:1", "-s", 20, "-H", ids, run.object]


def _uftp_receive(run, i):
    d = run.directory_of(i)
    os.makedirs(f"{d}/tmp", exist_ok=True)
    return ["uftpd", "-d", "-I", "eth0", "-D", d, "-T", f"{d}/tmp", "-B", 8 * MIB, "-L", f"{d}/log", "-P", f"{d}/pid",
            "-F", f"{d}/status"]


def _udpcast_send(run, *interface):
    return ["udp-sender", "--nokbd", "--no-progress", *interface, "--file", run.object, "--min-receivers", run.n,
            "--full-duplex", "--blocksize", 1456, "--slice-size", 1024]


def _norm_send(run, interface):
    rate = run.option("norm_rate", "800" if run.mtu > 1500 else "400")
    return [run.own("norm_file"), "send", "--object", run.object, "--receivers", run.n, "--interface", interface,
            "--rate", rate, "--segment", run.mtu - 100]


def _socat_send(run):
    copies = (f"socat -u -b {MIB} OPEN:{shlex.quote(run.object)},rdonly TCP:{run.net.address(i)}:5997 &"
              for i in run.receivers)
    return ["sh", "-c", "\n".join(copies) + "\nwait"]


def _rsync_serve(run):
    config = f"{run.directory}/rsyncd.conf"
    with open(config, "w") as f:
        f.write(f"use chroot = no\nuid = root\ngid = root\nmax connections = 256\nlock file = {run.directory}/rsync.lock\n"
                f"[objects]\npath = {os.path.dirname(run.object)}\nread only = yes\n")
    return ["rsync", "--daemon", "--no-detach", "--port", 8730, "--config", config]


def _mpi(run):
    """mpirun starts its daemons through an agent that enters the namespace of the address it is given."""
    agent = f"{run.directory}/agent"
    with open(agent, "w") as f:
        f.write("#!/bin/bash\nhost=$1; shift; i=$(( ${host##*.} - 1 ))\n"
                f"exec ip netns exec {run.net.prefix}-h$i unshare --uts bash -c "
                f"\"hostname h$i; export TMPDIR={run.directory}/mpi$i; mkdir -p \\$TMPDIR; $*\"\n")
    os.chmod(agent, 0o755)
    hosts = ",".join(f"{run.net.address(i)}:1" for i in run.net.hosts)
    settings = {"plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": 1, "btl": "tcp,self", "pml": "ob1",
                "btl_tcp_if_include": "10.88.0.0/24", "oob_tcp_if_include": "10.88.0.0/24", "mpi_yield_when_idle": 1}
    argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--leave-session-attached", "-np", run.n + 1,
            "--host", hosts]
    for name, value in settings.items():
        argv += ["--mca", name, value]
    argv += [run.own("mpi_bcast"), run.object, f"{run.directory}/mpi"]
    script = f"hostname h0; export TMPDIR={run.directory}/mpi0; mkdir -p $TMPDIR; exec {shlex.join(map(str, argv))}"
    process = run.net.start(0, ["unshare", "--uts", "bash", "-c", script])
    try:
        process.wait(run.timeout_s)
    except TimeoutError:
        process.stop(5)
        return None, 0.0, "timed out"
    found = re.search(r"seconds=([\d.]+) cpu=([\d.]+)", process.output())
    if not found:
        return None, 0.0, process.output()[-160:].replace("\n", " ")
    return float(found[1]), float(found[2]), "start-up not counted"


GROUP = "239.99.0.9"

PEERS = {
    "ddf": Peer("ddf", group=GROUP, needs=("mcsend", "mcrecv"),
                receive=lambda run, i: [run.ddf("mcrecv"), "--group", f"{GROUP}:7700", "--interface", "eth0",
                                        "--output", run.directory_of(i), "--state", f"{run.directory_of(i)}/state",
                                        "--once", *run.options("ddf_receive")],
                send=lambda run: [run.ddf("mcsend"), "--group", f"{GROUP}:7700", "--interface", "eth0",
                                  "--expect", run.n, *run.options("ddf_send"), run.object],
                anywhere=lambda run: [run.ddf("mcsend"), "--group", f"{GROUP}:7700", "--expect", run.n,
                                      *run.options("ddf_send"), run.object],
                output=lambda run, i: f"{run.directory_of(i)}/{os.path.basename(run.object)}"),
    "raw-file": _raw(),
    "raw-digest": _raw(digest="xxh3"),
    "raw-prefault": _raw(store="prefault"),
    "raw-discard": _raw(store="discard"),
    "raw-single": dataclasses.replace(_raw(calls="single"), slow=True),
    "tcp-cubic": _tcp("cubic"),
    "tcp-bbr": _tcp("bbr"),
    "socat": Peer("tcp", needs=("socat",), package=("socat",), settle_s=0.3, send=_socat_send,
                  receive=lambda run, i: ["socat", "-u", "-b", MIB, "TCP-LISTEN:5997,reuseaddr",
                                          f"CREATE:{run.directory_of(i)}/out"]),
    "rsync": Peer("tcp", needs=("rsync",), package=("rsync",), settle_s=0.5, serve=_rsync_serve,
                  receive=lambda run, i: ["rsync", "-W", "--inplace", f"rsync://{run.net.address(0)}:8730/objects/"
                                          + os.path.basename(run.object), f"{run.directory_of(i)}/out"]),
    "mpi": Peer("mpi", whole=_mpi, own="mpi_bcast", needs=("mpirun",), package=("openmpi-bin", "libopenmpi-dev"),
                output=lambda run, i: f"{run.directory}/mpi.{i}"),
    "uftp": Peer("multicast", needs=("uftp", "uftpd"), package=("uftp",), group="230.4.4.1", settle_s=0.3, slow=True,
                 receive=_uftp_receive, done="file", send=lambda run: _uftp_send(run, "-I", "eth0"),
                 anywhere=_uftp_send, output=lambda run, i: f"{run.directory_of(i)}/{os.path.basename(run.object)}"),
    "udpcast": Peer("multicast", needs=("udp-sender", "udp-receiver"), package=("udpcast",), settle_s=0.5, slow=True,
                    done="file", send=lambda run: _udpcast_send(run, "--interface", "eth0"), anywhere=_udpcast_send,
                    receive=lambda run, i: ["udp-receiver", "--nokbd", "--no-progress", "--interface", "eth0", "--file",
                                            f"{run.directory_of(i)}/out", "--rcvbuf", 4 * MIB]),
    "norm": Peer("multicast", own="norm_file", package=("libnorm-dev",), group="239.88.0.3", settle_s=0.2, slow=True,
                 done="file", send=lambda run: _norm_send(run, "eth0"), anywhere=lambda run: _norm_send(run, ""),
                 receive=lambda run, i: [run.own("norm_file"), "receive", "--output", f"{run.directory_of(i)}/out",
                                         "--id", i, "--interface", "eth0"]),
}

SETS = {
    "all": [p for p in PEERS if p not in ("raw-single", "raw-prefault", "raw-digest")],
    "core": ["ddf", "raw-file", "raw-discard", "tcp-cubic"],
    "limit": ["raw-file", "raw-digest", "raw-prefault", "raw-discard", "raw-single"],
    "tcp": ["tcp-cubic", "tcp-bbr", "socat", "rsync"],
    "multicast": ["uftp", "udpcast", "norm"],
}


def chosen(text):
    names = [name for word in text.split(",") for name in SETS.get(word, [word])]
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise ValueError(f"no such peer: {', '.join(unknown)}; there are {', '.join([*PEERS, *SETS])}")
    return list(dict.fromkeys(names))


def missing(name, programs, binaries):
    """Why a peer cannot run here, or None."""
    peer = PEERS[name]
    if peer.own and not os.access(f"{programs}/{peer.own}", os.X_OK):
        return f"{peer.own} was not built"
    if peer.kind == "ddf":
        absent = [p for p in peer.needs if not os.access(f"{binaries}/{p}", os.X_OK)]
        return f"no {' and no '.join(absent)} in {binaries}" if absent else None
    absent = [p for p in peer.needs if not shutil.which(p)]
    if absent:
        return f"no {' and no '.join(absent)}" + (f" (Debian: {' '.join(peer.package)})" if peer.package else "")
    if name == "tcp-bbr":
        with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as f:
            if "bbr" not in f.read().split():
                return "this kernel has no bbr"
    return None
