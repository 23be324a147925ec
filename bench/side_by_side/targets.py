"""What ddf must reach and what it aims at, beside its peers in the same run: the cells to measure and the verdicts."""
import dataclasses
from typing import Callable, Optional

import summary
from measure import Cell

TINY = 64 << 10
MULTICAST = ["uftp", "norm", "udpcast"]
TCP = ["tcp-cubic", "tcp-bbr", "socat"]


@dataclasses.dataclass(frozen=True)
class Target:
    case: str
    figure: str
    value: Callable  # of (Medians, launch seconds) -> number or None
    must: float
    stretch: Optional[float] = None
    at_most: bool = False
    above: bool = False  # strictly

    def reaches(self, value, bound):
        return value <= bound if self.at_most else value > bound if self.above else value >= bound

    def verdict(self, value):
        if value is None:
            return "no figure"
        if not self.reaches(value, self.must):
            return "not met"
        return "met, stretch too" if self.stretch is not None and self.reaches(value, self.stretch) else "met"


def cell(size, n=4, mtu=1500, mode="offload", link=0, loss=0.0):
    return Cell(n, mtu, mode, link, loss, size)


def plan(size):
    """[(cell, peers)] of the matrix at one object size."""
    yield from ((cell(size, n), ["ddf", "raw-file", *TCP]) for n in (1, 2))
    yield from ((cell(size, n), ["ddf", "raw-file", "raw-discard", *TCP, *MULTICAST]) for n in (4, 8))
    yield cell(size, mtu=9000), ["ddf", "raw-file", *TCP]
    yield cell(size, mode="wire"), ["ddf", "raw-file", "tcp-cubic"]
    yield from ((cell(size, mode="wire", loss=loss), ["ddf", "tcp-cubic"]) for loss in (1.0, 5.0))
    yield cell(size, mode="wire", link=1000), ["ddf", "raw-file", "tcp-cubic"]
    yield cell(size, mode="wire", link=1000, loss=1.0), ["ddf"]


def tiny_plan():
    return [(cell(TINY), ["ddf", "raw-file", "tcp-cubic"])]


def targets(size):
    label = f"{size >> 20} MiB"

    def speed_over(c, other, base=None):
        def value(m, _launch):
            against = m.best(base or c, "tcp") if other == "tcp" else m.best(base or c, "multicast") if other == "multicast" \
                else (m.speed(base or c, other),)
            return summary.ratio(m.speed(c, "ddf"), against and against[0])
        return value

    def of(c, field):
        return lambda m, _launch: m.value(c, "ddf", field)

    def add(case, figure, value, must, stretch=None, **how):
        return Target(f"{label}, {case}", figure, value, must, stretch, **how)

    for n in (1, 2):
        yield add(f"new files, n={n}", "speed ÷ best TCP copies", speed_over(cell(size, n), "tcp"), 0.8, 1.0)
    for n in (4, 8):
        c = cell(size, n)
        yield add(f"new files, n={n}", "speed ÷ raw-file", speed_over(c, "raw-file"), 0.8, 0.95)
        yield add(f"new files, n={n}", "speed ÷ best TCP copies", speed_over(c, "tcp"),
                  *((0.9, 1.0) if n == 4 else (1.0, None)), above=n == 8)
        yield add(f"new files, n={n}", "speed ÷ best of uftp, NORM, udpcast", speed_over(c, "multicast"), 5)
    yield add("MTU 9000, n=4", "speed ÷ best TCP copies", speed_over(cell(size, mtu=9000), "tcp"), 0.9, 1.1)
    lossless = cell(size, mode="wire")
    yield add("wire, no loss, n=4", "speed ÷ raw-file", speed_over(lossless, "raw-file"), 0.85, 0.9)
    for loss, must, stretch in ((1.0, 0.85, 0.9), (5.0, 0.65, 0.75)):
        yield add(f"wire, loss {loss:g} %, n=4", "speed ÷ own without loss",
                  speed_over(cell(size, mode="wire", loss=loss), "ddf", lossless), must, stretch)
    capped = cell(size, mode="wire", link=1000)
    yield add("link 1 Gbit/s, n=4", "speed ÷ raw-file", speed_over(capped, "raw-file"), 0.9, 0.95)
    yield add("link 1 Gbit/s, loss 1 %, n=4", "speed ÷ own without loss",
              speed_over(cell(size, mode="wire", link=1000, loss=1.0), "ddf", capped), 0.8, 0.9)
    for loss, must, stretch in ((0.0, 1.05, 1.03), (1.0, 1.10, 1.07), (5.0, 1.32, 1.26)):
        yield add(f"wire, loss {loss:g} %, n=4", "egress ÷ object", of(cell(size, mode="wire", loss=loss), "egress_ratio"),
                  must, stretch, at_most=True)
    yield add("offload, n=4", "CPU s per GiB delivered", of(cell(size), "cpu_s_per_gib"), 2.0, 1.5, at_most=True)
    yield add("wire, n=4", "CPU s per GiB delivered", of(lossless, "cpu_s_per_gib"), 6.0, 5.0, at_most=True)


def tiny_targets():
    def fixed_ms(m, launch):
        t = m.value(cell(TINY), "ddf", "t_last")
        return None if t is None else (t - launch) * 1e3

    yield Target(f"{TINY >> 10} KiB, n=4", "fixed cost in ms, without starting a program", fixed_ms, 50, 10, at_most=True)


def table(found, medians, launch):
    out = ["| case | figure | must | stretch | measured | verdict |", "|---|---|--:|--:|--:|---|"]
    met = judged = 0
    for t in found:
        value = t.value(medians, launch)
        sign = "≤" if t.at_most else ">" if t.above else "≥"
        judged, met = judged + (value is not None), met + t.verdict(value).startswith("met")
        out.append(f"| {t.case} | {t.figure} | {sign} {t.must:g} | {'' if t.stretch is None else f'{sign} {t.stretch:g}'} | "
                   f"{summary.shown(value)} | {t.verdict(value)} |")
    out += ["", f"{met} of {judged} figures met; starting a program in a host takes {launch * 1e3:.1f} ms."]
    return "\n".join(out)
