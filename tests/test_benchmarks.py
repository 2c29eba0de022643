"""The benchmarks run, each with hardly any work. How fast anything is nobody asserts here: `make bench` says it."""

from __future__ import annotations

import math
import subprocess
import sys

import msgspec
import pytest

from benchmarks.results import ROOT, SCRIPTS
from benchmarks.table import Row, cost, figure, interleaved, printed, speed


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_gives_rows(name: str) -> None:
    told = subprocess.run([sys.executable, "-m", f"benchmarks.bench_{name}", "--short", "--json"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    rows = msgspec.json.decode(told.stdout, type=list[Row])
    assert rows
    for row in rows:
        assert 0 <= row.low <= row.median <= row.high < math.inf, row


def test_contenders_take_turns() -> None:
    taken: list[str] = []
    found = interleaved(3, {name: lambda name=name: taken.append(name) or len(taken) for name in "ab"})
    assert [sorted(taken[at : at + 2]) for at in (0, 2, 4)] == [["a", "b"]] * 3
    assert sorted(found["a"] + found["b"]) == [1, 2, 3, 4, 5, 6]


def test_ratios_are_taken_round_by_round() -> None:
    ours, theirs = [2.0, 8.0, 3.0], [1.0, 2.0, 1.0]
    row = cost("ours", "theirs", ours, theirs, at_most=2.5)
    assert (row.low, row.median, row.high, row.rounds, row.holds) == (2.0, 3.0, 4.0, 3, False)
    assert speed("ours", "theirs", theirs, ours, at_least=2.5).holds is True


def test_a_figure_without_a_goal_neither_holds_nor_fails() -> None:
    row = figure("heap", [41.0, 40.0], "MB")
    assert row.holds is None
    assert "40.5 MB" in printed([row])
