"""What this machine needs for a virtual machine with RDMA, and what of it is missing."""
import glob
import os
import platform
import shutil

# What the name of the program or the pattern of the file is; the Debian package it comes with.
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "dpkg-deb": "dpkg",
            "ip": "iproute2", "rdma": "iproute2", "tc": "iproute2", "nft": "nftables", "ethtool": "ethtool"}
FILES = {"/etc/libibverbs.d/rxe.driver": "ibverbs-providers", "/usr/lib/*/libfabric.so.1": "libfabric1"}
USEFUL = {"mckey": "rdmacm-utils"}   # without them some tests say that they were skipped


class Missing(Exception):
    """The machine cannot run here; the text says why, and the cure where there is one."""


def find_program(name):
    """Its path; what only root usually has on the path is found too."""
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def missing_packages(programs=PROGRAMS, files=FILES):
    packages = [package for name, package in programs.items() if not find_program(name)]
    return sorted({*packages, *(package for pattern, package in files.items() if not glob.glob(pattern))})


def check():
    """Raises Missing with everything that is missing, but for the kernel, which is fetched."""
    if platform.machine() != "x86_64":
        raise Missing(f"the virtual machine is an x86_64 and this is {platform.machine()}")
    packages = missing_packages()
    if packages:
        raise Missing(f"packages are missing: {' '.join(packages)}; cure: apt-get install --no-install-recommends {' '.join(packages)}")
    if is_dynamic(find_program("busybox")):
        raise Missing("busybox is linked to libraries; cure: apt-get install --no-install-recommends busybox-static")


def is_dynamic(program):
    """Whether an ELF64 program names an interpreter, without which it cannot start."""
    with open(program, "rb") as f:
        head = f.read(64)
        f.seek(int.from_bytes(head[32:40], "little"))
        size, count = int.from_bytes(head[54:56], "little"), int.from_bytes(head[56:58], "little")
        return any(f.read(size)[:4] == b"\x03\0\0\0" for _ in range(count))
