"""A log ten times as long is exported in the same memory, in every form that is not one document."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench_export import EXPORT, measured, write_log
from hansard.projections import FORMATS
from tests.proof import amount

SHORT, LONG = amount(4_000, 20_000), amount(40_000, 200_000)
WHOLE = {"atif", "usage"}
"""Forms that are one document with something of every turn in it: they can only be written when all of it is known."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    made = {size: tmp_path_factory.mktemp(str(size)) for size in (SHORT, LONG)}
    for size, folder in made.items():
        write_log(folder, size)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(FORMATS.keys() - WHOLE))
def test_memory_does_not_grow_with_the_log(logs: dict[int, Path], form: str) -> None:
    (_, short), (_, long) = (measured(EXPORT, str(logs[size]), "--to", form) for size in (SHORT, LONG))
    assert long < 1.2 * short + 4096, f"{short} kB for {SHORT} events, {long} kB for {LONG}"
