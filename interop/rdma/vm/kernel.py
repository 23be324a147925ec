"""Debian's kernel and the modules that are wanted of it, out of its package and into a cache, not installed.

    boot = Kernel.fetch("rdma_rxe veth".split())
    boot.image            a file that QEMU boots
    boot.modules          [(name, bytes)], each after those it depends on
"""
import contextlib
import fcntl
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile

from vm.needs import Missing

PACKAGE = "linux-image-amd64"    # depends on the newest kernel; linux-image-cloud-amd64 is smaller and has no soft-RoCE
FETCH_S = 150                    # 70 MB


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "ddf-rdma"


def _apt(*argv, **options):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=FETCH_S, **options)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Missing(f"no kernel could be fetched: {problem}") from None


def newest_package():
    """The package of the kernel that this Debian has now."""
    said = _apt("apt-cache", "depends", "--important", PACKAGE).stdout
    found = re.search(r"Depends: (linux-image-[0-9]\S+)", said)
    if not found:
        raise Missing(f"apt knows no {PACKAGE}; cure: apt-get update")
    return found[1]


class Kernel:
    def __init__(self, folder):
        self.folder, self.image = folder, folder / "vmlinux"
        order = (folder / "order").read_text().split()
        self.modules = [(name, (folder / f"{name}.ko").read_bytes()) for name in order]

    @classmethod
    def cached(cls, wanted):
        """The newest that is there and has these modules, or None."""
        folders = sorted(cache_folder().glob("linux-image-*/order"), key=lambda f: f.stat().st_mtime)
        for order in reversed(folders):
            if set(wanted) <= set(order.read_text().split()) | set((order.parent / "builtin").read_text().split()):
                return cls(order.parent)
        return None

    @classmethod
    def fetch(cls, wanted, log=lambda text: None):
        """From the cache, or else by apt-get, which takes at most FETCH_S. Raises Missing."""
        cache_folder().mkdir(parents=True, exist_ok=True)
        with open(cache_folder() / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return cls.cached(wanted) or cls._fetch(wanted, log)

    @classmethod
    def _fetch(cls, wanted, log):
        package = newest_package()
        log(f"fetching {package} into {cache_folder()}")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
            done = _apt("apt-get", "-q", "-o", "Acquire::Retries=2", "download", package, cwd=scratch)
            archives = list(pathlib.Path(scratch).glob("*.deb"))
            if done.returncode or len(archives) != 1:
                said = (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]
                raise Missing(f"apt-get download {package}: {said}; cure: apt-get update, and a network")
            fresh = pathlib.Path(scratch) / "kernel"
            fresh.mkdir()
            _unpack(archives[0], wanted, fresh)
            final = cache_folder() / package
            shutil.rmtree(final, ignore_errors=True)
            fresh.rename(final)
        return cls(final)


def _unpack(archive, wanted, into):
    """Streams the package once: 400 MB of modules, of which some 6 are kept."""
    image, modules, builtin = None, {}, set()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as unpacking:
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as files:
            for file in files:
                name = file.name.rsplit("/", 1)[-1]
                if name.startswith("vmlinuz-"):
                    image = files.extractfile(file).read()
                elif name == "modules.builtin":
                    builtin = {module_name(line) for line in files.extractfile(file).read().decode().split()}
                elif re.search(r"\.ko(\.xz)?$", name) and ("/kernel/" in file.name):
                    modules[module_name(name)] = _expand(name, files.extractfile(file).read())
    if image is None:
        raise Missing(f"{archive.name} holds no kernel")
    order = in_order(wanted, modules, builtin)
    (into / "vmlinux").write_bytes(unpacked_image(image))
    for name in order:
        (into / f"{name}.ko").write_bytes(modules[name])
    (into / "builtin").write_text(" ".join(sorted(builtin)))
    (into / "order").write_text(" ".join(order))


def module_name(path):
    return re.sub(r"\.ko(\.xz)?$", "", path.rsplit("/", 1)[-1]).replace("-", "_")


def _expand(name, content):
    return lzma.decompress(content) if name.endswith(".xz") else content


def in_order(wanted, modules, builtin):
    """The names of what is to be loaded, each after what it needs; `modules`: name -> content."""
    order = []

    def take(name):
        if name in order or name in builtin:
            return
        if name not in modules:
            raise Missing(f"this kernel has no module {name}")
        for needed in needs_of(modules[name]):
            take(needed)
        order.append(name)

    for name in wanted:
        take(name)
    return order


def needs_of(module):
    """Modules keep what they depend on as text: "depends=a,b"."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [n.replace("-", "_") for n in found[1].decode().split(",") if n] if found else []


def unpacked_image(image):
    """The ELF inside a bzImage (Documentation/x86/boot.rst), which starts seconds sooner where the processor is emulated; where it
    cannot be unpacked, the image as it is."""
    sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    with contextlib.suppress(lzma.LZMAError):
        elf = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start:start + length])
        if elf.startswith(b"\x7fELF"):
            return elf
    return image
