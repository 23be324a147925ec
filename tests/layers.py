"""Layers include only what stands above them, and values and engines neither block nor do I/O, nor read a clock.

usage: layers.py REPOSITORY
"""
import pathlib
import re
import sys

# From the top: each may include itself and those before it. The runtime opens the transports that it is built with.
ORDER = [["include/ddf"], ["lib/model"], ["lib/wire"], ["codecs"], ["lib/session"], ["lib/plan"], ["lib/store"],
         ["lib/directory"], ["lib/runtime", "transports"], ["tools", "tests", "bench", "interop"]]
RANK = {folder: rank for rank, folders in enumerate(ORDER) for folder in folders}
PURE = {"include/ddf", "lib/model", "lib/wire", "codecs", "lib/session", "lib/plan"}
IMPURE = re.compile(r"<(asio|sys/socket|sys/mman|unistd|fcntl|fstream|thread|mutex|random|iostream)")
CLOCK = re.compile(r"(steady_clock|system_clock|high_resolution_clock)::now|std::random_device|\bclock_gettime\(")


def layer_of(path):
    return next((folder for folder in RANK if path.startswith(folder + "/")), None)


def faults(root):
    tops = ["include", "lib", "codecs", "transports", "tools", "tests", "bench", "interop"]
    for file in sorted(f for top in tops for f in (root / top).rglob("*.[hc]pp")):
        path = file.relative_to(root).as_posix()
        layer = layer_of(path)
        if layer is None:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s+(["<])([^">]+)', line)
            if include:
                name = include[2]
                target = layer_of("include/" + name if name.startswith("ddf/") else name)
                if target and RANK[target] > RANK[layer]:
                    yield f"{path}:{number}: {layer} must not include {name}"
                if include[1] == '"' and not (root / name).exists():
                    yield f"{path}:{number}: {name}: write it from the repository root"
                if layer == "include/ddf" and target not in (None, layer):
                    yield f"{path}:{number}: a public header includes {name}, which is not installed"
            if layer in PURE and layer != "include/ddf" and (IMPURE.search(line) or CLOCK.search(line)):
                yield f"{path}:{number}: {layer} is pure: {line.strip()}"


found = list(faults(pathlib.Path(sys.argv[1])))
print("\n".join(found) or "every include points up")
sys.exit(1 if found else 0)
