"""Start-up: the CPU time of a whole process, against that of Python alone. Interleaved; median and spread."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

ROUNDS = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import msgspec": ["-c", "import msgspec"],
    "import hansard": ["-c", "import hansard"],
    "hansard --version": ["-m", "hansard", "--version"],
    "hansard --help": ["-m", "hansard", "--help"],
    "hansard schema": ["-m", "hansard", "schema"],
}


def cpu(arguments: list[str]) -> float:
    """CPU milliseconds of one run."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> None:
    """Print the table."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            taken[name].append(cpu(arguments))
    bare = statistics.median(taken["python -c pass"])
    print(f"{'':20} {'CPU ms':>8} {'min':>6} {'max':>6} {'times bare Python':>18}")
    for name, values in taken.items():
        middle = statistics.median(values)
        print(f"{name:20} {middle:8.0f} {min(values):6.0f} {max(values):6.0f} {middle / bare:18.1f}")


if __name__ == "__main__":
    main()
