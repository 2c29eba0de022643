"""Start-up: the processor time of a whole process, beside that of a Python that only imports msgspec."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from benchmarks.table import Row, cost, figure, interleaved, main, process

BARE = "import msgspec"
COMMANDS = {
    BARE: ["-c", "import msgspec"],
    "python -c pass": ["-c", "pass"],
    "import hansard": ["-c", "import hansard"],
    "hansard --version": ["-m", "hansard", "--version"],
    "hansard --help": ["-m", "hansard", "--help"],
    "hansard schema": ["-m", "hansard", "schema"],
}
GOALS = {"hansard --version": 2.0}


def rows(short: bool) -> Iterable[Row]:
    """Each command beside the bare one."""
    taken = interleaved(
        1 if short else 31,
        {name: lambda command=command: process(sys.executable, *command).cpu for name, command in COMMANDS.items()},
    )
    for name in COMMANDS:
        if name != BARE:
            yield cost(name, BARE, taken[name], taken[BARE], at_most=GOALS.get(name))
    yield figure(f"{BARE}: CPU", [seconds * 1000 for seconds in taken[BARE]], "ms")


if __name__ == "__main__":
    main(rows)
