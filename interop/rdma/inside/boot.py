"""Process 1 of the virtual machine, after init: makes the hosts, runs the command, tells its status, and turns the machine off."""
import ctypes
import glob
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hosts  # noqa: E402

POWER_OFF = 0x4321FEDC


def power_off():
    os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


def port(name):
    """The device behind a stream of the machine we run on."""
    for folder in glob.glob("/sys/class/virtio-ports/*"):
        if pathlib.Path(folder, "name").read_text().strip() == f"ddf.{name}":
            return f"/dev/{os.path.basename(folder)}"
    raise FileNotFoundError(f"no stream {name}")


def mount(kind, source, target, options=""):
    os.makedirs(target, exist_ok=True)
    subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), source, target], check=True)


def furnish(plan):
    for kind, source, target, options in (("tmpfs", "run", "/run", "mode=755"), ("tmpfs", "shm", "/dev/shm", "mode=1777"),
                                          ("devpts", "devpts", "/dev/pts", ""),
                                          ("9p", "results", plan["results"], "trans=virtio,version=9p2000.L,msize=512000")):
        mount(kind, source, target, options)
    for name, where in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        if not os.path.lexists(f"/dev/{name}"):
            os.symlink(where, f"/dev/{name}")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def reap(wanted):
    """Waits for children, ours and orphans, until this one has ended; its status as a shell has it."""
    while True:
        pid, status = os.wait()
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def run(plan, env):
    child = subprocess.Popen(plan["argv"], cwd=plan["cwd"], env=env, stdin=subprocess.DEVNULL, start_new_session=True)
    return reap(child.pid)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    plan = json.loads(pathlib.Path(os.environ["ddf_run"], "plan").read_text())
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(port(name), os.O_WRONLY), descriptor)
    talk = open(port("talk"), "w", buffering=1)

    def tell(**what):
        talk.write(json.dumps(what) + "\n")

    tell(says="up")
    # Who started us ends us in time; this is for the case that nobody is there any more.
    threading.Thread(target=lambda: (time.sleep(plan["limit_s"] + 10), power_off()), daemon=True).start()
    furnish(plan)
    made = hosts.make(plan["hosts"])
    tell(says=f"{len(made)} hosts are made")
    env = {**plan["env"], **hosts.describe(made), "DDF_RDMA_RESULTS": plan["results"]}
    env["PATH"] = env.get("PATH", "") + ":" + os.environ["PATH"]
    status = run(plan, env)
    sys.stdout.flush()
    tell(says="the command ended", status=status)
    time.sleep(0.2)   # until what is in the ports has been taken


try:
    main()
except BaseException:
    with open("/dev/console", "w") as console:
        traceback.print_exc(file=console)
finally:
    power_off()
