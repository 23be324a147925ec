"""One sender, three receivers, RDMA multicast, and losses at each receiver's own port.

Runs on a machine with four RoCE hosts h1..h4 whose switch ports p1..p4 are in network namespace sw; each host's address is in
RDMA_VM_ADDRS and its interface is hN. DDF_BIN: where mcsend and mcrecv are. Prints a line for each loss; exit status 0: all well.

usage: verbs_multicast.py [MIB [LOSS_PERCENT...]]
"""
import filecmp
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

bin_folder = pathlib.Path(os.environ.get("DDF_BIN", ".")).resolve()
hosts = len(os.environ.get("RDMA_VM_ADDRS", "").split())
if hosts < 2:
    print("SKIP: no RDMA hosts (RDMA_VM_ADDRS is not set)")
    sys.exit(77)
mib = int(sys.argv[1]) if len(sys.argv) > 1 else 16
losses = [float(text) for text in sys.argv[2:]] or [0, 1, 10]
limit = 150


def run(program, host, *arguments):
    command = [str(bin_folder / program), "--transport", "verbs", "--interface", f"h{host}", "--json", "--repair", "udp",
               "-vv", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def device_packets(host):   # that its RDMA device has taken in
    return int(pathlib.Path(f"/sys/class/infiniband/rxe{host}/ports/1/hw_counters/rcvd_pkts").read_text())


def summary(text):
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return next((line for line in reversed(lines) if line.get("event") == "summary"), lines[-1] if lines else {})


def attempt(folder, source, loss):
    for host in range(2, hosts + 1):
        subprocess.run(["tc", "-n", "sw", "qdisc", "replace", "dev", f"p{host}", "root", "netem", "loss", f"{loss}%",
                        "limit", "10000"], check=True)
    outputs = [folder / f"{loss}-{host}" for host in range(2, hosts + 1)]
    for output in outputs:
        output.mkdir()
    state = ["--state", str(folder / f"state-{loss}")]
    receivers = [run("mcrecv", host, "--output", str(output), "--state", str(folder / f"state-{loss}-{host}"))
                 for host, output in zip(range(2, hosts + 1), outputs)]
    time.sleep(1)
    before = [device_packets(host) for host in range(2, hosts + 1)]
    started = time.monotonic()
    sender = run("mcsend", 1, "--expect", str(hosts - 1), *state, str(source))
    ended = []
    for process in [sender, *receivers]:
        try:
            ended.append(process.communicate(timeout=limit))
        except subprocess.TimeoutExpired:
            process.kill()
            ended.append(process.communicate())
    took = time.monotonic() - started
    problems = []
    for process, (out, err) in zip([sender, *receivers], ended):
        said = summary(out)
        if process.returncode != 0:
            problems.append(f"exit status {process.returncode}")
        if said.get("bulk", {}).get("transport") != "verbs":
            problems.append("the summary does not say verbs")
        if process.returncode != 0 or os.environ.get("VERBOSE"):
            print(f"--- {' '.join(process.args)}\n{err}\n{json.dumps(said)}")
    for output in outputs:
        if not filecmp.cmp(source, output / source.name, shallow=False) if (output / source.name).exists() else True:
            problems.append(f"{output.name}: not the same bytes")
    by_device = min(device_packets(host) - n for host, n in zip(range(2, hosts + 1), before))
    said = summary(ended[0][0])
    if by_device < said.get("bulk", {}).get("segments", 0) * (1 - loss / 50):
        problems.append("fewer packets came by the RDMA devices than were sent")
    repair = said.get("repair", {})
    by_group = min((summary(out).get("bulk", {}).get("bytes", 0) for out, _ in ended[1:]), default=0)
    if by_group < source.stat().st_size // 2:
        problems.append(f"only {by_group} bytes came by the group")
    print(f"loss {loss}%: {mib} MiB to {hosts - 1} receivers in {took:.1f} s; by the group at least {by_group} bytes, "
          f"{by_device} packets by the RDMA device each; "
          f"repair: multicast {repair.get('multicast_bytes')}, unicast {repair.get('unicast_bytes')}, NACKs {repair.get('nacks')}"
          f"; {'; '.join(problems) or 'all well'}", flush=True)
    return not problems


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    source = folder / "object.bin"
    source.write_bytes(os.urandom(mib << 20))
    sys.exit(0 if all([attempt(folder, source, loss) for loss in losses]) else 1)
