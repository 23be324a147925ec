"""What the tests in the virtual machine share: its hosts, the two tools on them (tests/e2e/_field.py), and cases.

    @case
    def a_case_is_a_sentence(field): ...

A case that cannot run raises Skip with the reason. Host 1 sends, the others receive.
"""
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent.parent
sys.path += [str(REPOSITORY / "tests" / "e2e"), str(HERE.parent / "inside")]   # behind this folder, some of whose names are there too
from _field import BIN, Field, MiB, OutOfTime, check  # noqa: E402,F401
import hosts  # noqa: E402
from lab import Process, Skip  # noqa: E402,F401

LIMIT_S = 60
_cases = []


def case(function=None, *, limit=LIMIT_S):
    def register(f):
        _cases.append((f, limit))
        return f
    return register(function) if function else register


class Wire:
    """The part of a lab that a field needs: where to put files, and processes."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(dir="/dev/shm")
        self.processes = []

    def start(self, host, argv, *, cwd=None, env=None):
        log = f"{self.directory}/{len(self.processes)}.log"
        process = Process(list(map(str, argv)), log, cwd or self.directory, env)
        self.processes.append(process)
        return process

    def stop_all(self):
        for process in self.processes:
            process.stop()


class RdmaField(Field):
    """A field whose tools name the interface of their host."""

    def host(self, number):
        return hosts.Host(number)

    def receive(self, *arguments, host, **options):
        return super().receive("--interface", self.host(host).interface, *arguments, host=host, **options)

    def send(self, *arguments, host=1, **options):
        return super().send("--interface", self.host(host).interface, *arguments, host=host, **options)

    def program(self, name):
        path = shutil.which(name, path=f"{BIN}:{os.environ['PATH']}")
        if not path:
            raise Skip(f"{name} is not here")
        return path


def packets(host, name="rcvd_pkts"):
    """How many RDMA packets the host's device has received (or another of its counters)."""
    return int(pathlib.Path(f"/sys/class/infiniband/{host.device}/ports/1/hw_counters/{name}").read_text())


def until(condition, limit=15, step=0.02):
    """Whether it came true in time."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def _out_of_time(*_):
    raise OutOfTime("the case took too long")


def _run(function, limit):
    """"ok", "FAIL", or why it was skipped."""
    wire = Wire()
    field = RdmaField(wire)
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(limit)
    try:
        function(field)
        field.end()
        return "ok"
    except Skip as reason:
        return str(reason)
    except (Exception, OutOfTime):
        signal.alarm(0)
        traceback.print_exc(limit=-3, file=sys.stdout)
        for tool in field.tools:
            lines = tool.text().splitlines()
            told = [line for line in lines if '"progress"' not in line and '"start"' not in line]
            print(f"--- {tool.title}: exit {tool.process.status}", *told[-20:], *lines[-1:], sep="\n")
        return "FAIL"
    finally:
        signal.alarm(0)
        wire.stop_all()
        for host in hosts.all_hosts():
            hosts.lose(host, 0)
        results = os.environ.get("DDF_RDMA_RESULTS")
        for number, process in enumerate(wire.processes) if results else ():
            shutil.copyfile(process.log, f"{results}/{function.__name__}.{number}.log")
        shutil.rmtree(wire.directory, ignore_errors=True)


def main(chosen):
    """All cases, or those whose name has one of the words `chosen` in it; the number of those that failed."""
    failed = ran = 0
    for function, limit in _cases:
        name = function.__name__
        if chosen and not any(word in name for word in chosen):
            continue
        begun = time.monotonic()
        said = _run(function, limit)
        failed += said == "FAIL"
        ran += said == "ok"
        took = f"{time.monotonic() - begun:.1f} s"
        print(f"{said if said in ('ok', 'FAIL') else 'skip':4} {name.replace('_', ' ')} {took}{'' if said in ('ok', 'FAIL') else f': {said}'}", flush=True)
    print(f"{ran} passed, {failed} failed")
    return failed
