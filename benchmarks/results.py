"""The results of the last run of each benchmark: docs/bench.json, from which docs/performance.md is generated."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.table import Row

ROOT = Path(__file__).parent.parent
LAST = ROOT / "docs/bench.json"
SCRIPTS = {path.stem.removeprefix("bench_"): path for path in sorted((ROOT / "benchmarks").glob("bench_*.py"))}


class Result(Struct, frozen=True):
    """What one script found, when and on what."""

    date: str
    machine: str
    rows: list[Row]


def last() -> dict[str, Result]:
    """What is known."""
    return msgspec.json.decode(LAST.read_bytes(), type=dict[str, Result]) if LAST.exists() else {}


def keep(name: str, result: Result) -> None:
    """Remember it; what the other scripts found stays."""
    known = dict(sorted((last() | {name: result}).items()))
    LAST.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")
