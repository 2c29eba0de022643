"""Proofs: which test keeps which promise of docs/reliability.md, how long it tries, and what it counted.

`make test` runs every proof in its short form, `make soak` in its long one. A test names what it proves with `proves`, asks `amount` how
much to do, takes its luck from `SEED` and tells with the fixture `figure` what it found; both runs print the figures by id.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

TESTS = Path(__file__).parent
LAST = TESTS.parent / "docs/soak.json"
"""What the last long run found, by id: `make soak` writes it."""

LONG = "HANSARD_LONG" in os.environ
QUICK = "HANSARD_QUICK" in os.environ
"""`make check`: the least that still tells whether the core works."""
SEED = int(os.environ.get("HANSARD_SEED", "1"))
"""The same seed does the same: a failure is repeated with the HANSARD_SEED that the run has printed."""


LESS: dict[str, set[tuple[int, int]]] = defaultdict(set)
"""The amounts that this run did not do as in `make soak`, by file of tests: what it did, and what `make soak` does."""


def amount(short: int, long: int, quick: int | None = None) -> int:
    """How much to do: so much in `make test`, so much in `make soak`, and in `make check` where that does something else."""
    done = long if LONG else quick if QUICK and quick is not None else short
    file = Path(sys._getframe(1).f_code.co_filename)
    if done != long and TESTS in file.parents:
        LESS[file.relative_to(TESTS.parent).as_posix()].add((done, long))
    return done


def proves(*ids: str) -> pytest.MarkDecorator:
    """Mark a test: it keeps these promises."""
    return pytest.mark.proves(*ids)


class Promise(msgspec.Struct, forbid_unknown_fields=True):
    """What is promised about one thing that happens, and the limits of figures that tests report of it."""

    what: str
    must: str
    at_most: dict[str, int] = {}
    at_least: dict[str, int] = {}

    @property
    def limits(self) -> list[str]:
        """The limits in words."""
        most = [f"{name}: at most {limit:,}" for name, limit in self.at_most.items()]
        return most + [f"{name}: at least {limit:,}" for name, limit in self.at_least.items()]

    def misses(self, name: str, value: float | str) -> bool:
        """Return whether a figure is beyond its limit."""
        if isinstance(value, str):
            return False
        return not self.at_least.get(name, -math.inf) <= value <= self.at_most.get(name, math.inf)


_TIME = re.compile(r"\b(ms|seconds?|CPU)\b")
"""A word in the name of a figure that depends on the machine."""


class Figures:
    """What a test counted. Of several tests that prove one thing whole numbers add up; of other numbers the largest counts."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self.told: list[tuple[str, float | str]] = []
        self._promises = [promises()[name] for name in ids]

    def __call__(self, name: str, value: float | str) -> None:
        """One more. It is held to its limit, unless it is a time."""
        self.told.append((name, value))
        if not _TIME.search(name):
            assert not any(promise.misses(name, value) for promise in self._promises), (name, value)


@cache
def promises() -> dict[str, Promise]:
    """What is promised, by id."""
    return msgspec.convert(tomllib.loads((TESTS / "reliability.toml").read_text("utf-8")), dict[str, Promise])


@cache
def proofs() -> dict[str, list[str]]:
    """The tests of each promise, as the files say it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign):
                for name in _proved(node):
                    found[name].append(f"{path.relative_to(TESTS.parent).as_posix()}::{_name(node)}")
    return dict(found)


def _proved(node: ast.AST) -> Iterable[str]:
    marks = node.value if isinstance(node, ast.Assign) else ast.Module([ast.Expr(mark) for mark in getattr(node, "decorator_list", ())], [])
    for call in ast.walk(marks):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "proves":
            yield from (argument.value for argument in call.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str))


def _name(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


# --------------------------------------------------------------------------------------------------------------------
# What a run found


class Found(msgspec.Struct, omit_defaults=True):
    """What a run found about one promise."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    figures: dict[str, int | float | str] = {}
    date: str = ""
    seed: int = 0

    def take(self, name: str, value: float | str) -> None:
        """One more figure."""
        before = self.figures.get(name)
        if isinstance(before, int) and isinstance(value, int):
            value += before
        elif isinstance(before, int | float) and isinstance(value, int | float):
            value = max(before, value)
        self.figures[name] = value

    def summary(self, promise: Promise | None = None) -> str:
        """The figures in a line, each beyond a limit of the promise called missed."""
        tests = (
            f"{self.passed} passed"
            + (f", {self.failed} failed" if self.failed else "")
            + (f", {self.skipped} skipped" if self.skipped else "")
        )
        missed = {name: " (missed)" for name, value in self.figures.items() if promise is not None and promise.misses(name, value)}
        return "; ".join([tests, *(f"{name} {_spelled(value)}{missed.get(name, '')}" for name, value in self.figures.items())])


def _spelled(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.3g}" if isinstance(value, float) and abs(value) < 100 else f"{round(value):,}"


By = dict[str, dict[str, Found]]
"""What was found about each promise, by id and by file of tests."""


def collect_results(reports: Iterable[Any]) -> By:
    """What the tests of a run told."""
    results: By = defaultdict(lambda: defaultdict(Found))
    for report in reports:
        told = [value for name, value in getattr(report, "user_properties", ()) if name == "proof"]
        if not told or (report.when != "call" and report.outcome == "passed"):
            continue
        for ids, figures in map(json.loads, told):
            for name in ids:
                result = results[name][report.nodeid.partition("::")[0]]
                setattr(result, report.outcome, getattr(result, report.outcome) + 1)
                for figure in figures:
                    result.take(*figure)
    return {name: dict(sorted(files.items())) for name, files in sorted(results.items())}


def together(files: dict[str, Found]) -> Found:
    """What several files of tests found about one promise."""
    whole = Found()
    for one in files.values():
        whole.passed, whole.failed, whole.skipped = whole.passed + one.passed, whole.failed + one.failed, whole.skipped + one.skipped
        whole.date, whole.seed = max((whole.date, whole.seed), (one.date, one.seed))
        for figure in one.figures.items():
            whole.take(*figure)
    return whole


def keep(results: By) -> None:
    """Remember what a long run found. Who runs some of the files renews what is of them."""
    kept = _last()
    for name, files in results.items():
        for one in files.values():
            one.date, one.seed = time.strftime("%Y-%m-%d", time.gmtime()), SEED
        kept[name] = dict(sorted((kept.get(name, {}) | files).items()))
    LAST.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(kept.items()))), indent=1) + b"\n")


def last() -> dict[str, Found]:
    """What the last long run found."""
    return {name: together(files) for name, files in _last().items()}


def _last() -> By:
    return msgspec.json.decode(LAST.read_bytes(), type=By) if LAST.exists() else {}
