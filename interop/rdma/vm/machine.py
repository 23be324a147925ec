"""A virtual machine that runs one command: with this machine's files, which it cannot change, and RDMA."""
import contextlib
import ctypes
import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from vm import archive, needs

INSIDE = pathlib.Path(__file__).resolve().parent.parent / "inside"
MODULES = ("virtio_pci virtio_console virtio_rng 9p 9pnet_virtio overlay "                       # to get to the root
           "crc32c_generic crc32_generic crc32_pclmul rdma_rxe ib_uverbs rdma_ucm veth bridge "   # hosts
           "nf_tables nft_numgen sch_netem sch_tbf").split()                                      # what may go wrong
STREAMS = ("out", "err", "talk")
KVM_S, BOOT_S = 25, 120     # until it tells that it is up
PASSED_ON = ("PATH", "HOME", "LANG", "TERM")
PASSED_ON_STARTS = ("DDF_", "FI_", "RDMAV_", "IBV_", "PYTHON")

FAILED, OUT_OF_TIME = 125, 124


def environment():
    return {k: v for k, v in os.environ.items() if k in PASSED_ON or k.startswith(PASSED_ON_STARTS)}


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG


def may_use_kvm():
    """Without these flags of the processor /dev/kvm is there at most in name, or slower than emulation."""
    with open("/proc/cpuinfo") as f:
        flags = {flag for line in f if line.startswith("flags") for flag in line.split()}
    return bool(flags & {"vmx", "svm"}) and os.access("/dev/kvm", os.R_OK | os.W_OK)


class Machine:
    """Runs `argv` in `cwd` under a `kernel` with MODULES, with `hosts` soft-RoCE hosts, in at most `limit_s` from now on.

    with Machine(...) as m: status = m.run()        the folder m.folder holds the console's text and, in results/, what was put there
    """

    def __init__(self, argv, *, kernel, hosts, limit_s, cwd, memory_mib=1536, processors=None, log=lambda text: None):
        self.argv, self.kernel, self.hosts, self.cwd, self.log = argv, kernel, hosts, cwd, log
        self.memory_mib, self.processors = memory_mib, processors or min(4, os.cpu_count() or 1)
        self.deadline = time.monotonic() + limit_s
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddf-rdma-"))
        self.keep = False
        (self.folder / "results").mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def left(self):
        return self.deadline - time.monotonic()

    def run(self):
        """The command's status; OUT_OF_TIME, or FAILED when there was no machine to run it."""
        (self.folder / "initrd").write_bytes(self._initrd())
        if may_use_kvm():
            status = self._run("kvm", KVM_S)
            if status is not None:
                return status
            self.log(f"KVM is there and the machine did not come up in {KVM_S} s: emulating")
        status = self._run("tcg", BOOT_S)
        if status is None:
            self.log(f"the machine did not come up; the end of its console:\n{self.console()}")
            return FAILED
        return status

    def console(self, lines=30):
        said = []
        for name in ("console", "qemu"):
            with contextlib.suppress(OSError):
                said += (self.folder / name).read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(said)

    def _initrd(self):
        folders = dict.fromkeys("dev proc sys modules root below above".split())
        modules = {f"modules/{i:03}-{name}": content for i, (name, content) in enumerate(self.kernel.modules)}
        busybox = pathlib.Path(needs.find_program("busybox")).read_bytes()
        return archive.pack({**folders, **modules, "busybox": busybox, "init": (INSIDE / "init").read_bytes()})

    def _command(self, accelerator, writers):
        kernel = ("console=ttyS0 quiet panic=-1 oops=panic mitigations=off random.trust_cpu=on no_timer_check "   # ticks may come late here
                  f"ddf_python={os.path.realpath(sys.executable)} ddf_boot={INSIDE / 'boot.py'} ddf_run={self.folder}")
        accel = ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        argv = [needs.find_program("qemu-system-x86_64"), *accel, "-smp", str(self.processors), "-m", str(self.memory_mib),
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", self.kernel.image, "-initrd", self.folder / "initrd", "-append", kernel,
                "-chardev", f"file,id=console,path={self.folder / 'console'}", "-serial", "chardev:console",
                "-device", "virtio-rng-pci", "-device", "virtio-serial-pci"]
        for tag, path, more in (("root", "/", ",readonly=on"), ("results", self.folder / "results", "")):
            argv += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{more}",
                     "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for name, writer in writers.items():
            argv += ["-chardev", f"file,id={name},path=/dev/fd/{writer}", "-device", f"virtserialport,chardev={name},name=ddf.{name}"]
        return list(map(str, argv))

    def _run(self, accelerator, boot_s):
        """The status, or None when it did not come up."""
        self.log(f"starting ({accelerator})")
        (self.folder / "plan").write_text(json.dumps({
            "argv": self.argv, "cwd": str(self.cwd), "env": environment(), "hosts": self.hosts, "results": str(self.folder / "results"),
            "limit_s": max(1.0, self.left())}))
        pipes = {name: os.pipe() for name in STREAMS}
        try:
            writers = {name: pipe[1] for name, pipe in pipes.items()}
            with open(self.folder / "qemu", "wb") as said:
                qemu = subprocess.Popen(self._command(accelerator, writers), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                        pass_fds=writers.values(), preexec_fn=_die_with_parent)
            for writer in writers.values():
                os.close(writer)
            try:
                return self._listen({name: pipe[0] for name, pipe in pipes.items()}, time.monotonic() + boot_s)
            finally:
                qemu.kill()
                qemu.wait()
        finally:
            for reader, _ in pipes.values():
                os.close(reader)

    def _listen(self, readers, up_by):
        """Passes on what it writes until all three streams end, which QEMU's end brings about."""
        up, status, talk = False, None, b""
        began = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for name, reader in readers.items():
                selector.register(reader, selectors.EVENT_READ, name)
            while selector.get_map():
                if self.left() <= 0:
                    return OUT_OF_TIME
                if not up and time.monotonic() > up_by:
                    return None
                for key, _ in selector.select(min(1.0, max(0.01, self.left()))):
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        selector.unregister(key.fd)
                    elif key.data == "out":
                        sys.stdout.buffer.write(data)
                        sys.stdout.buffer.flush()
                    elif key.data == "err":
                        sys.stderr.buffer.write(data)
                        sys.stderr.buffer.flush()
                    else:
                        *lines, talk = (talk + data).split(b"\n")
                        for line in map(json.loads, lines):
                            up = True
                            status = line.get("status", status)
                            if "says" in line:
                                self.log(f"{line['says']} after {time.monotonic() - began:.1f} s")
        if up and status is None:
            self.log(f"the machine ended without a result; the end of its console:\n{self.console()}")
            return FAILED
        return status
