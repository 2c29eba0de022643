"""One table for all benchmarks. A row says how one thing does beside another, by turns within one run, and whether that is good enough.

Every ``bench_*.py`` has ``rows(short)`` and ends with ``main(rows)``: run alone it prints its rows. ``python -m benchmarks`` runs all of
them. A shared machine is never the same twice: so ratios count, taken round by round, and processor time where it says enough.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct


class Row(Struct, frozen=True, omit_defaults=True):
    """A figure over some rounds: the middle one, the lowest and the highest, and what was aimed at."""

    what: str
    beside: str
    """What it stands beside; nothing if it is a figure of its own, which says as much about the machine."""
    median: float
    low: float
    high: float
    rounds: int
    unit: str = ""
    """Of a figure of its own; a ratio has none."""
    at_most: float | None = None
    at_least: float | None = None
    points: list[tuple[float, float]] = []
    """What is to be drawn: how much work, and what it cost."""

    @property
    def holds(self) -> bool | None:
        """Whether the middle of the rounds reaches the goal; None if there is none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or self.median <= self.at_most) and (self.at_least is None or self.median >= self.at_least)


T = TypeVar("T")
Rows = Callable[[bool], Iterable[Row]]
"""What a script is: its rows, of hardly any work if only to see that it runs."""


# --------------------------------------------------------------------------------------------------------------------
# Measuring


def cpu(work: Callable[[], object]) -> float:
    """Seconds of processor time of this process."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def wall(work: Callable[[], object]) -> float:
    """Seconds by the clock."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


class Process(Struct, frozen=True):
    """What a process and those that it started took."""

    cpu: float
    wall: float
    megabytes: float
    """The highest resident memory of one of them."""


MEASURE = """
import resource, subprocess, sys, time
begin = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
wall, used = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)
"""


def process(*command: str) -> Process:
    """Run a program to its end; what it says is not read. If it fails, so does this.

    A small process stands in between: what a child begins with counts as its memory, and that is ours.
    """
    told = subprocess.run([sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    if told[0] != "0":
        raise subprocess.CalledProcessError(int(told[0]), command)
    return Process(*map(float, told[1:]))


def interleaved(rounds: int, contenders: dict[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Every contender once in every round, in any order; what each of them measured, round by round."""
    luck = random.Random(1)
    taken: dict[str, list[T]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in luck.sample(list(contenders), len(contenders)):
            taken[name].append(contenders[name]())
    return taken


# --------------------------------------------------------------------------------------------------------------------
# Rows


def figure(what: str, values: Sequence[float], unit: str, *, at_most: float | None = None, at_least: float | None = None) -> Row:
    """A figure of its own."""
    return _row(what, "", values, unit, at_most, at_least)


def cost(what: str, beside: str, ours: Sequence[float], theirs: Sequence[float], *, at_most: float | None = None) -> Row:
    """How many times what the other took we took, round by round: less is better."""
    return _row(what, beside, [one / other for one, other in zip(ours, theirs, strict=True)], "", at_most, None)


def speed(what: str, beside: str, ours: Sequence[float], theirs: Sequence[float], *, at_least: float | None = None) -> Row:
    """How many times as fast as the other we were, from what both took for the same, round by round: more is better."""
    return _row(what, beside, [other / one for one, other in zip(ours, theirs, strict=True)], "", None, at_least)


def _row(what: str, beside: str, values: Sequence[float], unit: str, at_most: float | None, at_least: float | None) -> Row:
    return Row(what, beside, statistics.median(values), min(values), max(values), len(values), unit, at_most, at_least)


# --------------------------------------------------------------------------------------------------------------------
# Showing


HEAD = ["what", "beside", "median", "low to high", "goal", "holds"]


def cells(row: Row) -> list[str]:
    """A row in words."""
    unit = f" {row.unit}" if row.unit else ""
    goal = (
        f"≤ {number(row.at_most)}{unit}"
        if row.at_most is not None
        else f"≥ {number(row.at_least)}{unit}"
        if row.at_least is not None
        else ""
    )
    holds = {None: "", True: "yes", False: "**no**"}[row.holds]
    return [row.what, row.beside, number(row.median) + unit, f"{number(row.low)} to {number(row.high)}", goal, holds]


def number(value: float) -> str:
    """As many digits as say something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def printed(rows: Iterable[Row]) -> str:
    """The table for a terminal."""
    lines = [HEAD, *([cell.replace("*", "") for cell in cells(row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def main(rows: Rows) -> None:
    """A script that is run alone."""
    options = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--short", action="store_true", help="hardly any work: only to see that it runs")
    options.add_argument("--json", action="store_true", help="the rows as JSON")
    given = options.parse_args()
    found = list(rows(given.short))
    print(msgspec.json.encode(found).decode() if given.json else printed(found))
