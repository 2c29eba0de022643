"""Which capability of an agent is tested with the real program: the table in docs/agents.md.

A test is marked with the capabilities that it `shows`; the agent is its parameter. pytest collects the marks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agents
from tools.features import table

ROOT = Path(__file__).parents[2]
CAPABILITIES = ("text", "tools", "allowed", "denied", "interrupt", "setting", "401", "429", "resume")
"""The names that a mark may use."""
COLUMNS = {
    "Messages": ("text",),
    "Tools": ("tools",),
    "Allow and deny": ("allowed", "denied"),
    "Interrupt": ("interrupt",),
    "Change model or mode": ("setting",),
    "Report errors": ("401", "429"),
    "Resume": ("resume",),
}
"""The columns of the table, and the capabilities that each of them stands for."""
OURS = {name: agent for name, agent in agents().items() if type(agent).__module__.startswith("hansard.")}
"""The agents of the package: tests add others."""
UNTESTED = {"acp", "cursor-oneshot", "demo"}
"""Agents without a real program and a scripted model: docs/agents.md has the reasons."""
CANNOT = {
    *((name, capability) for name, agent in OURS.items() if not agent.capabilities.permissions for capability in ("allowed", "denied")),
    *((name, "tools") for name in ("openai-chat", "openai-responses")),
}
"""Capabilities that an agent does not have: docs/agents.md has the reasons."""


def shows(*capabilities: str, agent: str | None = None) -> pytest.MarkDecorator:
    """Mark a test: it shows these capabilities of its agent."""
    assert set(capabilities) <= set(CAPABILITIES)
    return pytest.mark.shows(*capabilities, agent=agent)


def capability_table() -> str:
    """Every agent with the capabilities that a test shows."""
    seen = capabilities_under_test()
    rows = [[f"`{name}`", *(_cell(seen, name, needed) for needed in COLUMNS.values())] for name in sorted({name for name, _ in seen})]
    return table(["Agent", *COLUMNS], rows)


def _cell(seen: set[tuple[str, str]], name: str, needed: tuple[str, ...]) -> str:
    wanted = {(name, capability) for capability in needed}
    return "✓" if wanted <= seen else "–" if wanted <= CANNOT else "**missing**"


def capabilities_under_test() -> set[tuple[str, str]]:
    """Every agent with every capability that a test shows, as pytest collects them."""
    everything = os.environ | {"HANSARD_ALL_AGENTS": "1"}
    found = subprocess.run([sys.executable, "-m", "tests.driving.capabilities"], cwd=ROOT, env=everything, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return {(name, capability) for name, capability in json.loads(found.stdout.splitlines()[-1])}


class Collector:
    """A pytest plugin that keeps the marks of the collected tests."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("shows"):
                self.seen += [(mark.kwargs["agent"] or _agent(item), capability) for capability in mark.args]


def _agent(item: Any) -> str:
    given = item.callspec.params
    return given["agent"] if "agent" in given else given["actor"].agent if "actor" in given else given["real"].name


if __name__ == "__main__":
    collector = Collector()
    imported = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hansard is imported above, and it has a pytest plugin
    code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *imported, "tests/driving"], plugins=[collector])
    print("\n" + json.dumps(collector.seen))
    sys.exit(code)
