"""Every benchmark, or those that are named, each in a process of its own: one table, kept in docs/bench.json. ``make bench``."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time

import msgspec

from benchmarks.results import ROOT, SCRIPTS, Result, keep
from benchmarks.table import Row, printed


def main() -> int:
    """Run them, print the table, keep it; what did not run fails it all, and the rest is kept."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="name", help=", ".join(SCRIPTS))
    names: list[str] = options.parse_args().names or list(SCRIPTS)
    if unknown := set(names) - set(SCRIPTS):
        options.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    failed: list[str] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        found = run(name)
        if found is None:
            failed.append(name)
        else:
            keep(name, Result(time.strftime("%Y-%m-%d", time.gmtime()), machine(), found))
            rows += found
    print(printed(rows))
    if failed:
        print(f"did not run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(name: str) -> list[Row] | None:
    """The rows of a script; None if it fails."""
    told = subprocess.run([sys.executable, "-m", f"benchmarks.{SCRIPTS[name].stem}", "--json"], cwd=ROOT, stdout=subprocess.PIPE)
    return None if told.returncode else msgspec.json.decode(told.stdout, type=list[Row])


def machine() -> str:
    """What it ran on, and how busy that was."""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}"


if __name__ == "__main__":
    sys.exit(main())
