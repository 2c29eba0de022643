"""docs/bench.md: the ratios of the last run of every benchmark."""

from __future__ import annotations

from benchmarks.results import SCRIPTS, about, last
from benchmarks.table import HEAD, cells
from tools.features import NOTICE, table

INTRO = """# Benchmarks

What `make bench` found in its last run. Every ratio is taken round by round, by turns within one run, on a machine that others use, too:
the middle of the rounds, and the lowest and highest of them. Figures without something beside them say as much about the machine.
[performance.md](performance.md) says how it came to this and what was tried.

"""


GROWTH = """
## How cost grows

![Cost at 1, 10 and 100 times the work](growth.svg)

What is on the dashed line or below it grows with the work or less. Anything above it is a bug.
"""


def bench() -> str:
    """The page."""
    known = {name: found for name, found in last().items() if name in SCRIPTS}
    goals = [row.holds for found in known.values() for row in found.rows if row.holds is not None]
    rows = [[name, *cells(row)] for name, found in known.items() for row in found.rows]
    scripts = [
        [f"`bench_{name}.py`", about(name), f"{known[name].date}, {known[name].machine}" if name in known else "**not run yet**"]
        for name in SCRIPTS
    ]
    return "".join(
        [
            NOTICE + INTRO,
            f"{sum(goals)} of {len(goals)} goals are reached.\n\n" + table(["", *HEAD], rows),
            GROWTH,
            "\n## What is measured\n\n" + table(["script", "what", "last run"], scripts),
        ]
    )
