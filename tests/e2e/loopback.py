"""No fabric, no problem: on one machine over loopback, without root, daemon or configuration."""
# timeout: 90
import contextlib
import filecmp
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _field import MiB, NOBODY, lab  # noqa: E402

BIN = os.environ.get("DDF_BIN", "")
PROGRAMS = ("mcsend", "mcrecv")


def as_nobody(argv):
    """As a user without rights, when this one has them."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv] if os.geteuid() == 0 else argv


def alone(argv):
    """In a network of its own, which has nothing but a loopback interface."""
    return ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *argv]


def run(argv, folder, limit=30):
    """Runs it with a home of its own; what it printed. Its whole process group is gone after."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DDF_", "XDG_"))}
    child = subprocess.Popen(argv, cwd=folder, env={**environment, "HOME": folder, "PATH": f"{folder}/bin:{os.environ['PATH']}"}, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        text, _ = child.communicate(timeout=limit)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
        child.wait()
    return child.returncode, text


# Two receivers and a sender with nothing but a group of their own, so that no other test on this machine is heard.
THREE = """
mcrecv --group {group} --output one --state state-one model.bin > one.log 2>&1 & one=$!
mcrecv --group {group} --output two --state state-two model.bin > two.log 2>&1 & two=$!
mcsend --group {group} --expect 2 model.bin > send.log 2>&1; sent=$?
wait $one; first=$?
wait $two; second=$?
cat send.log one.log two.log
echo "exits $sent $first $second"
"""


def transfer(folder, wrap, group, multicast=True):
    code, text = run(wrap(["sh", "-c", THREE.format(group=group)]), folder)
    assert "exits 0 0 0" in text, text
    for output in ("one", "two"):
        assert os.listdir(f"{folder}/{output}") == ["model.bin"], text
        assert filecmp.cmp(f"{folder}/model.bin", f"{folder}/{output}/model.bin", shallow=False), text
        shutil.rmtree(f"{folder}/{output}")
    assert not multicast or "no multicast" not in text and "heard no multicast" not in text, text
    return text


def a_user_without_rights_sends_to_two_receivers_on_this_machine(folder, group):
    text = transfer(folder, as_nobody, group)
    assert re.search(r"interfaces +\S", text), text


def loopback_is_enough_where_there_is_no_other_interface(folder, group):
    text = transfer(folder, lambda argv: alone(as_nobody(argv)), group)
    assert re.search(r"interfaces +lo$", text, re.MULTILINE), text


def over_ipv6_loopback_too_where_linux_routes_no_multicast(folder, group):
    transfer(folder, lambda argv: alone(as_nobody(argv)), "[ff15::77:9]:7709", multicast=False)


def with_multicast_off_it_works_by_unicast(folder, group):
    script = THREE.format(group=group).replace("mcrecv ", "mcrecv --multicast off --source 127.0.0.1 --interface lo ").replace("mcsend ", "mcsend --interface lo ")
    code, text = run(as_nobody(["sh", "-c", script]), folder)
    assert "exits 0 0 0" in text, text
    for output in ("one", "two"):
        assert filecmp.cmp(f"{folder}/model.bin", f"{folder}/{output}/model.bin", shallow=False), text
        shutil.rmtree(f"{folder}/{output}")


def main():
    if not all(os.access(f"{BIN}/{program}", os.X_OK) for program in PROGRAMS):
        raise lab.Skip("DDF_BIN names no folder with mcsend and mcrecv")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise lab.Skip("missing: setpriv")
    namespaces = shutil.which("ip") and subprocess.run(alone(["true"]), capture_output=True).returncode == 0
    failed = 0
    cases = [a_user_without_rights_sends_to_two_receivers_on_this_machine, with_multicast_off_it_works_by_unicast,
             loopback_is_enough_where_there_is_no_other_interface, over_ipv6_loopback_too_where_linux_routes_no_multicast]
    for number, case in enumerate(cases):
        if case in cases[2:] and not namespaces:
            print(f"ok   {case.__name__.replace('_', ' ')} SKIPPED: network namespaces are not allowed here")
            continue
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            os.mkdir(f"{folder}/bin")
            for program in PROGRAMS:   # where a user without rights can run them
                shutil.copy(f"{BIN}/{program}", f"{folder}/bin/{program}")
                os.chmod(f"{folder}/bin/{program}", 0o755)
            with open(f"{folder}/model.bin", "wb") as f:
                f.write(random.Random(number).randbytes(16 * MiB))
            os.chmod(f"{folder}/bin", 0o755)
            if os.geteuid() == 0:
                for path in (folder, f"{folder}/model.bin"):
                    os.chown(path, NOBODY, NOBODY)
            begun = time.monotonic()
            try:
                case(folder, f"239.77.{os.getpid() % 200 + 20}.{number + 1}:{20000 + os.getpid() % 20000}")
                verdict = "ok  "
            except (AssertionError, subprocess.TimeoutExpired) as problem:
                print(problem)
                verdict, failed = "FAIL", failed + 1
            print(f"{verdict} {case.__name__.replace('_', ' ')} {time.monotonic() - begun:.1f} s", flush=True)
    return 1 if failed else 0


lab.skip_or_run(main)
