"""Every regular expression of the code reads a text in time proportional to its length."""

from __future__ import annotations

import ast
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from tests.proof import SEED, Figures, amount, proves
from tests.pumps import LINEAR, Expression, Pump, exponent

ROOT = Path(__file__).parents[1]
PARTS = 8
UNSEEN = [
    "hansard/events/tool_inputs.py: f'(?:mcp_{{1,2}})?{re.escape(call.server)}(?:__|[_-])'",
    "hansard/server/patterns.py: _receive(texts) or ''",
    "hansard/store/query.py: text",
    "hansard/testing/model_server.py: pattern",
    "hansard/testing/recorded_model.py: f'{re.escape(path)}(?![\\\\w.-])'",
]
"""What is made when a function is called: the expressions of a server's name, of a path, and of the ends of addresses, and the one that a
person searches for, which the server gives to a process that it can end."""
NO_END = 5
"""An expression that uses more seconds of processor time than this for one pump is ended."""


@cache
def seen() -> tuple[list[Expression], list[str]]:
    """Every regular expression of the code, and those that only a call makes."""
    printed = subprocess.run([sys.executable, "-m", "tests.pumps"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found, unseen = ast.literal_eval(printed)
    return [Expression(file, line, pattern, flags, frozenset(methods)) for file, line, pattern, flags, methods in found], unseen


@pytest.fixture
def watch() -> Iterator[None]:
    """Ends what would not end within a lifetime."""

    def end(signal: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def grows(one: Expression, pump: Pump) -> float:
    signal.setitimer(signal.ITIMER_VIRTUAL, NO_END)
    try:
        return exponent(lambda size: one.run(pump.text(size)), 4000, 0.003)
    except TimeoutError:
        return float("inf")


def test_every_expression_is_seen() -> None:
    found, unseen = seen()
    assert unseen == UNSEEN
    assert {"hansard/adapters/framing.py", "hansard/projections/redaction/contexts.py", "hansard/cli/options.py"} <= {
        one.file for one in found
    }


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("pattern", [r"\s*x", r"<b>(.*?)</b>", r"(\w+) as"])
def test_an_expression_that_is_not_linear_is_found(pattern: str) -> None:
    one = Expression("", 0, pattern, 16, frozenset({"search"}))
    assert any(grows(one, pump) >= LINEAR for pump in one.pumps())


@proves("S-06")
@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_expression_is_linear_in_its_text(part: int, figure: Figures) -> None:
    slow: list[tuple[str, str | bytes, Pump]] = []
    tried = 0
    for one in seen()[0][part::PARTS]:
        pumps = one.pumps()
        some = random.Random(f"{SEED} {one.pattern!r}").sample(pumps, min(len(pumps), amount(12, 1000, quick=1)))
        tried += len(some)
        slow += [(f"{one.file}:{one.line}", one.pattern, pump) for pump in some if grows(one, pump) >= LINEAR][:1]
    figure("pumps", tried)
    assert slow == []
