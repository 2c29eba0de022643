"""Fuzzing: each door of tests/fuzz for a while. `make fuzz` tries longer."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from hansard.adapters.framing import Lines
from tests.fuzz import DOORS, framing
from tests.mutants import insert, structured
from tests.proof import SEED, Figures, amount, proves

every_door = pytest.mark.parametrize("door", DOORS)


@pytest.mark.slow
@every_door
@proves("P-10")
def test_fuzzing_a_door_finds_nothing(door: str, tmp_path: Path, figure: Figures) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed: there is none for this system")
    limits = [f"-runs={amount(300, 10_000_000)}", f"-max_total_time={amount(10, 60)}", f"-seed={SEED}", f"-artifact_prefix={tmp_path}/"]
    run = subprocess.run([sys.executable, "-m", "tests.fuzz", door, *limits], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    crashes = [path.read_bytes() for path in tmp_path.iterdir()]
    assert run.returncode == 0 and not crashes, f"{run.stderr[-3000:]}\n{crashes!r:.3000}"
    runs, edges = re.findall(r"#(\d+)\tDONE\s+cov: (\d+)", run.stderr)[-1]
    assert int(edges) > 20, "it sees nothing of what it tries"
    figure("inputs", int(runs))
    figure(f"{door} edges", int(edges))


@every_door
@proves("P-10")
def test_a_door_takes_what_it_is_sown_with_and_changes_of_it(door: str, figure: Figures) -> None:
    """Without a look at the coverage, and so everywhere."""
    chance = random.Random(f"{SEED}/{door}")
    there = import_module(f"tests.fuzz.{door}")
    seeds = list(there.seeds())
    for data in chance.sample(seeds, min(len(seeds), amount(40, 10_000))):
        there.check(data)
        for _ in range(amount(2, 50)):
            head, line, tail = cut(data, chance)
            there.check(head + (structured(line, chance) or insert(line, chance)) + tail)
        figure("inputs without coverage", 1 + amount(2, 50))


def cut(data: bytes, chance: random.Random) -> tuple[bytes, bytes, bytes]:
    """What is before, in and after one of its lines."""
    start = chance.choice([place for place in range(len(data)) if place == 0 or data[place - 1] == 10] or [0])
    start += max(data[start : start + 100].find(b"{"), 0)
    end = data.find(b"\n", start) % (len(data) + 1)
    return data[:start], data[start:end], data[end:]


def test_a_framer_that_loses_the_last_line_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the doors are no formality."""
    framing.check(b"\x80no line end")
    monkeypatch.setattr(Lines, "end", lambda self: [])
    with pytest.raises(AssertionError):
        framing.check(b"\x80no line end")
