"""The benchmarks run, each with hardly any work. How fast anything is nobody asserts here: `make bench` says it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterable

import msgspec
import pytest

from benchmarks.bench_import import long_session, recorded
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


def test_each_message_and_each_call_of_a_long_session_has_an_id_of_its_own() -> None:
    lines = recorded()
    once, often = (ids(long_session(lines, times * len(lines), 0)) for times in (1, 20))
    assert {kind: len(found) for kind, found in often.items()} == {kind: 20 * len(found) for kind, found in once.items()}
    assert len(once["toolu"]) == 3 and len(once["msg"]) > 1


def ids(lines: Iterable[bytes]) -> dict[str, set[str]]:
    """The ids of messages, calls, and lines."""
    data = b"".join(lines).decode()
    return {kind: set(re.findall(rf'"(?:id|uuid)":"({kind}[^"]+)"', data)) for kind in ("msg", "toolu", "[0-9a-f]{8}-")}


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
