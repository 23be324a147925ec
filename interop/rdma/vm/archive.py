"""Archives that the kernel unpacks as its first file system (cpio, "newc": Documentation/driver-api/early-userspace)."""
import stat


def _entry(number, name, mode, content=b""):
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
    return b"".join(part + b"\0" * (-len(part) % 4) for part in (head, content))


def pack(files):
    """`files`: path -> content of programs and files, None for an empty folder. Folders stand before what they hold."""
    out = []
    for number, (name, content) in enumerate(files.items(), 1):
        mode = stat.S_IFDIR | 0o755 if content is None else stat.S_IFREG | 0o755
        out.append(_entry(number, name, mode, content or b""))
    out.append(_entry(0, "TRAILER!!!", 0))
    return b"".join(out)
