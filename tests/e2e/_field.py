"""What the end-to-end scripts share: hosts around a switch, the two tools on them, and what must hold after every case.

    from _field import case, check, main

    @case("15", receivers=2)
    def a_receiver_that_comes_late_gets_everything(field):
        field.file("model.bin", 64 << 20)
        ...
        field.complete(late, "model.bin")

    main()

A case names the row of faults that it covers, is told which lab it wants, and may not take longer than LIMIT_S.
After it ends, whatever it was about: every tool has ended; what is visible below an output folder is, byte for byte,
something that was published; and a receiver that is not complete exits with something other than 0.
Names as arguments of a script choose cases; -v shows what the tools wrote.
"""
import contextlib
import functools
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
import lab  # noqa: E402

LIMIT_S = 60
PARTIAL = re.compile(r"^\..*\.ddf-[0-9a-f]{8}\.partial$")
NOBODY = 65534
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
BIN = os.environ.get("DDF_BIN", "")

_cases = []


def case(rows="", *, changes=True, limit=LIMIT_S, **lab_options):
    """A case. `rows`: which faults it covers. `changes`: it leaves the lab other than it found it. The rest: of the lab."""
    def register(function):
        _cases.append((function, rows, changes, limit, {"receivers": 1, **lab_options}))
        return function
    return register


def check(condition, message, *tools):
    if not condition:
        told = "".join(f"\n--- {tool.title}\n{tool.text()[-3000:]}" for tool in tools)
        raise AssertionError(f"{message}{told}")


class Tool:
    """A mcsend or mcrecv, running or ended."""

    def __init__(self, process, title, output=None, state=None):
        self.process, self.title, self.output, self.state = process, title, output, state
        self.killed = False

    @property
    def running(self):
        return self.process.running

    @property
    def seconds(self):
        return self.process.exit_time - self.process.start_time

    def text(self):
        return self.process.output()

    def events(self, kind=None):
        out = []
        for line in self.text().splitlines():
            if line.startswith("{"):
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if kind is None or event["event"] == kind:
                        out.append(event)
        return out

    def summary(self):
        found = self.events("summary")
        check(found, "there is no summary", self)
        return found[-1]

    def says(self, *words):
        text = self.text()
        for word in words:
            check(word in text, f"{self.title} does not say {word!r}", self)

    def wait(self, limit, exit=None):
        """Its exit status, which is `exit` when that is given, within `limit` seconds from now."""
        try:
            status = self.process.wait(limit)
        except TimeoutError:
            raise AssertionError(f"{self.title} still runs after {limit} s\n{self.text()[-3000:]}") from None
        check(exit is None or status == exit, f"{self.title} exited with {status}, not {exit}", self)
        return status

    def wait_for(self, pattern, limit=10):
        """Until it has written something that matches."""
        deadline = time.monotonic() + limit
        while not re.search(pattern, self.text()):
            check(time.monotonic() < deadline and self.running, f"{self.title} did not say {pattern!r}", self)
            time.sleep(0.01)

    def wait_bytes(self, amount, limit=20):
        """Until its partial files hold about so many bytes."""
        deadline = time.monotonic() + limit
        while self.partial_bytes() < amount:
            check(time.monotonic() < deadline and self.running, f"{self.title} did not receive {amount} bytes", self)
            time.sleep(0.005)

    def partial_bytes(self):
        total = 0
        for folder, folders, files in os.walk(self.output):
            inside = any(PARTIAL.match(part) for part in pathlib.Path(folder).relative_to(self.output).parts)
            for name in files:
                if inside or PARTIAL.match(name):
                    with contextlib.suppress(FileNotFoundError):
                        total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total

    def kill(self, number=signal.SIGKILL):
        self.killed = True
        self.process.signal(number)
        self.process.wait(5)

    def visible(self):
        """Relative paths of the files that somebody who looks at the output folder sees."""
        found = set()
        for folder, folders, files in os.walk(self.output):
            folders[:] = [f for f in folders if not PARTIAL.match(f)]
            found |= {os.path.relpath(os.path.join(folder, f), self.output) for f in files if not PARTIAL.match(f)}
        return found


def same_bytes(one, other):
    if os.path.getsize(one) != os.path.getsize(other):
        return False
    with open(one, "rb") as a, open(other, "rb") as b:
        while piece := a.read(MiB):
            if piece != b.read(MiB):
                return False
    return True


class Field:
    """One case's tools and files. Its group is its own, so that nothing of the case before is heard."""

    _numbers = itertools.count(1)

    def __init__(self, net):
        self.net, self.number = net, next(Field._numbers)
        self.directory = f"{net.directory}/{self.number}"
        self.source = f"{self.directory}/source"
        self.address = f"239.77.{100 + self.number}.7"
        self.group = f"{self.address}:7700"
        self.tools, self.published = [], {}
        self._outputs = itertools.count(1)
        os.makedirs(self.source)
        for folder in (net.directory, self.directory, self.source):
            os.chmod(folder, 0o755)

    # ---- files ---------------------------------------------------------------------------------------------

    def file(self, name, size, seed=1):
        """A file of noise below the source folder; its path."""
        path = f"{self.source}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        noise = random.Random(f"{name} {seed}").randbytes(min(size, MiB))
        with open(path, "wb") as f:
            for at in range(0, size, MiB):
                f.write(at.to_bytes(8, "little") + noise[8:size - at] if size - at > 8 else noise[:size - at])
        return path

    def also(self, name, path):
        """The object `name` was published from this file (too)."""
        self.published.setdefault(name, []).append(path)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self, host, argv, title, *, user=None, env=None, **places):
        if user is not None:
            argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("DDF_")}
        tool = Tool(self.net.start(host, argv, cwd=self.source, env={**clean, **(env or {})}), title, **places)
        self.tools.append(tool)
        return tool

    def receive(self, *arguments, host=1, group=None, output=None, state=None, user=None, program=None, timeout="20s"):
        number = next(self._outputs)
        output = output or f"{self.directory}/out{number}"
        state = state or f"{self.directory}/state{number}"
        for folder in (output, state):
            os.makedirs(folder, exist_ok=True)
            if user is not None:
                os.chown(folder, user, user)
        return self.start(host, [program or f"{BIN}/mcrecv", "--json", "-v", "--group", group or self.group, "--output", output, "--state", state,
                                 "--timeout", timeout, *arguments], f"mcrecv {number} on host {host}", user=user, output=output, state=state)

    def send(self, *arguments, host=0, group=None, user=None, state="none", program=None):
        return self.start(host, [program or f"{BIN}/mcsend", "--json", "-v", "--group", group or self.group, "--state", state, *arguments],
                          f"mcsend on host {host}", user=user)

    def switch(self, *lines):
        """Commands of `ip` inside the switch."""
        self.net._ip("switch", *lines)

    def joined(self, *hosts):
        self.net.wait_members(self.address, list(hosts) or None)

    # ---- what holds ----------------------------------------------------------------------------------------

    def originals(self, name):
        return [*self.published.get(name, []), *([f"{self.source}/{name}"] if os.path.isfile(f"{self.source}/{name}") else [])]

    def complete(self, receiver, *names, exit=0, limit=30):
        """The receiver ends well, and has exactly these files (and those inside, for a folder)."""
        receiver.wait(limit, exit)
        wanted = set()
        for name in names:
            top = f"{self.source}/{name}"
            if os.path.isdir(top):
                wanted |= {os.path.relpath(os.path.join(d, f), self.source) for d, _, files in os.walk(top) for f in files}
            else:
                wanted.add(name)
        check(receiver.visible() == wanted, f"{receiver.title}: there is {sorted(receiver.visible())[:20]}, not {sorted(wanted)[:20]}", receiver)
        self.true_to_source(receiver)

    def true_to_source(self, receiver):
        for name in receiver.visible():
            check(any(same_bytes(f"{receiver.output}/{name}", path) for path in self.originals(name)),
                  f"{receiver.title}: '{name}' is visible and is not what was published", receiver)

    def true_to_source_of(self, receiver, name):
        check(name in receiver.visible(), f"{receiver.title}: '{name}' is not there", receiver)
        check(any(same_bytes(f"{receiver.output}/{name}", path) for path in self.originals(name)), f"{receiver.title}: '{name}' is another version", receiver)

    def nothing_visible(self, receiver):
        check(not receiver.visible(), f"{receiver.title}: {receiver.visible()} is visible", receiver)

    def end(self):
        for tool in self.tools:
            check(not tool.running, f"{tool.title} was left running", tool)
            check(tool.killed or tool.process.status >= 0, f"{tool.title} was ended by signal {-(tool.process.status or 0)}", tool)
            if tool.output is None:
                continue
            self.true_to_source(tool)
            if tool.killed:
                continue
            summary = tool.events("summary")
            ok = tool.process.status == 0
            check(not summary or summary[-1]["ok"] == ok, f"{tool.title}: exit {tool.process.status} and ok {summary and summary[-1]['ok']}", tool)
            for o in summary[-1]["objects"] if summary and ok and "--follow" not in tool.process.argv else []:
                check(o["ok"] and os.path.lexists(o["path"]), f"{tool.title}: exit 0 and '{o['name']}' is not complete", tool)


# ---- running ------------------------------------------------------------------------------------------------


class OutOfTime(BaseException):
    pass


def _out_of_time(*_):
    raise OutOfTime("the case took too long")


def _run_case(net, function, limit, verbose):
    field = Field(net)
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(limit)
    try:
        function(field)
        field.end()
    except lab.Skip:
        raise
    except (Exception, OutOfTime) as problem:
        signal.alarm(0)
        traceback.print_exc(limit=-3, file=sys.stdout)
        if not isinstance(problem, AssertionError):
            verbose = True
        if verbose:
            for tool in field.tools:
                print(f"--- {tool.title}: exit {tool.process.status}\n{tool.text()[-3000:]}")
        return False
    finally:
        signal.alarm(0)
        net.stop_all()
        shutil.rmtree(field.directory, ignore_errors=True)
    if verbose:
        for tool in field.tools:
            print(f"--- {tool.title}: exit {tool.process.status}\n{tool.text()}")
    return True


def _leftovers(prefix):
    names = [n for n in (os.listdir("/run/netns") if os.path.isdir("/run/netns") else []) if n.startswith(prefix + "-")]
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"DDF_LAB={prefix}:".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                processes.append(pid)
    return names + processes


def _main():
    if not all(os.access(f"{BIN}/{program}", os.X_OK) for program in ("mcsend", "mcrecv")):
        raise lab.Skip("DDF_BIN names no folder with mcsend and mcrecv")
    lab.require("setpriv", "mount")
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]
    verbose = "-v" in sys.argv[1:]
    failed, net, now = [], None, None
    prefix = f"ddf{os.getpid()}"
    with contextlib.ExitStack() as cleanup:
        for function, rows, changes, limit, options in _cases:
            name = function.__name__
            if chosen and not any(c in name for c in chosen):
                continue
            if net is None or now != options:
                if net is not None:
                    net.down()
                    net = None
                net, now = lab.Lab(prefix=prefix, **options), options
                cleanup.callback(net.down)
                net.up()
            begun, skipped = time.monotonic(), ""
            try:
                ok = _run_case(net, function, limit, verbose)
            except lab.Skip as reason:
                ok, skipped = True, f" SKIPPED: {reason}"
            print(f"{'ok  ' if ok else 'FAIL'} {name.replace('_', ' ')}{f' [{rows}]' if rows else ''} {time.monotonic() - begun:.1f} s{skipped}", flush=True)
            if not ok:
                failed.append(name)
            if changes or not ok:
                net.down()
                net = None
    left = _leftovers(prefix)
    if left:
        print(f"FAIL left behind: {left}")
        failed.append("leftovers")
    return 1 if failed else 0


def main():
    lab.skip_or_run(_main)
