"""Medians of rows, and the Markdown made from them."""
import os
import platform
import statistics
import subprocess

import peers
from measure import FOREIGN_MAX, ROOT, Cell


class Medians:
    """The median of each figure of a peer in a cell. Disturbed runs count only where there are no others."""

    def __init__(self, rows):
        self._rows = {}
        for row in rows:
            cell = Cell(*(row[k] for k in ("n", "mtu", "mode", "link_mbit", "loss", "size")))
            self._rows.setdefault(cell, {}).setdefault(row["peer"], []).append(row)

    @property
    def cells(self):
        return list(self._rows)

    def peers(self, cell):
        return list(self._rows.get(cell, {}))

    def runs(self, cell, peer):
        return self._rows.get(cell, {}).get(peer, [])

    def _good(self, cell, peer):
        good = [r for r in self.runs(cell, peer) if r["ok"]]
        return [r for r in good if r["foreign"] <= FOREIGN_MAX] or good

    def disturbed(self, cell, peer):
        return any(r["foreign"] > FOREIGN_MAX for r in self._good(cell, peer))

    def value(self, cell, peer, field):
        """None when no run of it was complete."""
        values = [r[field] for r in self._good(cell, peer) if r[field] != ""]
        return statistics.median(values) if values else None

    def speed(self, cell, peer):
        return self.value(cell, peer, "mbit_s")

    def best(self, cell, kind):
        """(speed, name) of the fastest peer of a kind, or None."""
        speeds = [(self.speed(cell, p), p) for p in self.peers(cell) if peers.PEERS[p].kind == kind]
        return max((s for s in speeds if s[0]), default=None)


def ratio(a, b):
    return a / b if a and b else None


def shown(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def markdown(m):
    """A table for each cell, fastest first, with each peer's speed relative to the references."""
    out = []
    for cell in m.cells:
        raw, tcp, multicast = m.speed(cell, "raw-file"), m.best(cell, "tcp"), m.best(cell, "multicast")
        out += [f"### {cell}", "",
                "| peer | complete | t_last s | Mbit/s | min..max | ÷ raw-file | ÷ best TCP | ÷ best other multicast "
                "| egress | CPU s/GiB | receivers failed |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
        for p in sorted(m.peers(cell), key=lambda p: -(m.speed(cell, p) or 0)):
            runs, speed = m.runs(cell, p), m.speed(cell, p)
            speeds = [r["mbit_s"] for r in runs if r["ok"]]
            mark = "~" if m.disturbed(cell, p) else ""
            out.append(f"| {p} | {len(speeds)}/{len(runs)} | {mark}{shown(m.value(cell, p, 't_last'), 3)} | {mark}{shown(speed, 0)} | "
                       + (f"{min(speeds):.0f}..{max(speeds):.0f}" if speeds else "-")
                       + f" | {shown(ratio(speed, raw))} | {shown(ratio(speed, tcp and tcp[0]))} | "
                       f"{shown(ratio(speed, multicast and multicast[0]), 1)} | {shown(m.value(cell, p, 'egress_ratio'))} | "
                       f"{shown(m.value(cell, p, 'cpu_s_per_gib'))} | {sum(r['failed'] for r in runs)} |")
        best = [f"best TCP: {tcp[1]}"] if tcp else []
        best += [f"best other multicast: {multicast[1]}"] if multicast else []
        notes = sorted({f"{p}: {r['note']}" for p in m.peers(cell) for r in m.runs(cell, p) if r["note"]})
        out += ["", "; ".join(best) + "." if best else "", *(f"- {n}" for n in notes[:12]), ""]
    return "\n".join(out)


def _line_of(path, start):
    with open(path) as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith(start)), "?")


def _version(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "?"


def machine(absent):
    lines = [f"Machine: {os.cpu_count()} × {_line_of('/proc/cpuinfo', 'model name')}, "
             f"{int(_line_of('/proc/meminfo', 'MemTotal').split()[0]) >> 20} GiB, {platform.system()} {platform.release()}; "
             f"{_version([os.environ.get('CXX', 'g++'), '--version'])}; "
             f"ddf at {_version(['git', '-C', ROOT, 'describe', '--always', '--dirty'])}."]
    lines += [f"Not measured: {name} ({why})." for name, why in absent.items()]
    return "\n".join(lines)
