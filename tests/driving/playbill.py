"""Which agent is seen in which play: docs/plays.md. A test says with `plays` what it shows; its agent is its parameter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agents
from tools.features import NOTICE, table

ROOT = Path(__file__).parents[2]
PLAYS = {
    "text": "text",
    "tools": "tools",
    "allowed": "allowed",
    "denied": "denied",
    "interrupt": "interrupt in mid-stream",
    "setting": "model or mode changed",
    "401": "401",
    "429": "429",
    "resume": "resumed in a new process",
}
"""The plays, and what they are called in the table."""
OURS = {name: agent for name, agent in agents().items() if type(agent).__module__.startswith("hansard.")}
"""The agents of the package: tests add others."""
ASKS_NOBODY = "asks nobody: what its permission mode does not allow it refuses itself"
CANNOT = {
    **{(name, play): ASKS_NOBODY for name, agent in OURS.items() if not agent.can.permissions for play in ("allowed", "denied")},
    **{(name, "tools"): "is offered no tools: a call is answered with an error" for name in ("openai-chat", "openai-responses")},
}
"""What an agent does not do, and why."""
ELSEWHERE = {
    "acp": "is whatever program the user names: the demo agent and every ACP agent of the table speak the same wire",
    "cursor-oneshot": "cannot be installed without an account: a player of its recording stands in for it",
    "demo": "has no model: it is driven through the same plays in `tests/driving/test_demo.py` and `test_session.py`",
}
"""Agents that are in no play, and why."""


def plays(*names: str, agent: str | None = None) -> pytest.MarkDecorator:
    """Mark a test: it shows these plays of its agent."""
    assert set(names) <= set(PLAYS)
    return pytest.mark.plays(*names, agent=agent)


def page() -> str:
    """docs/plays.md."""
    seen = bill()
    rows = [[f"`{name}`", *(_cell(seen, name, play) for play in PLAYS)] for name in sorted({name for name, _ in seen})]
    reasons = [[f"`{name}`", PLAYS[play], why] for (name, play), why in sorted(CANNOT.items()) if name not in ELSEWHERE]
    reasons += [[f"`{name}`", "all", why] for name, why in sorted(ELSEWHERE.items())]
    return NOTICE + HEAD + table(["agent", *PLAYS.values()], rows) + GAPS + table(["agent", "play", "it"], reasons)


def _cell(seen: set[tuple[str, str]], name: str, play: str) -> str:
    return "✓" if (name, play) in seen else "–" if (name, play) in CANNOT else "**missing**"


HEAD = """# Real agents, and what they are driven through

Each mark is a test that runs the real program (or, for `openai-*`, the API) with a scripted model: in `make test-agents` none is skipped.
In every play the log must hold what was said and done, every byte of both sides, and the right end.

"""
GAPS = """
## What is not played

"""


def bill() -> set[tuple[str, str]]:
    """Every agent with every play that a test shows, as pytest collects them."""
    everything = os.environ | {"HANSARD_ALL_AGENTS": "1"}
    found = subprocess.run([sys.executable, "-m", "tests.driving.playbill"], cwd=ROOT, env=everything, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return {(name, play) for name, play in json.loads(found.stdout.splitlines()[-1])}


class Collector:
    """A plugin that keeps what is collected."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("plays"):
                self.seen += [(mark.kwargs["agent"] or _agent(item), play) for play in mark.args]


def _agent(item: Any) -> str:
    given = item.callspec.params
    return given["agent"] if "agent" in given else given["actor"].agent if "actor" in given else given["real"].name


if __name__ == "__main__":
    collector = Collector()
    imported = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hansard is, above, and it has a plugin for pytest
    code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *imported, "tests/driving"], plugins=[collector])
    print("\n" + json.dumps(collector.seen))
    sys.exit(code)
