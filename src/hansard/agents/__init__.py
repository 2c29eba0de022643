"""Agents: how each is started, greeted, fed and stopped. One file per family, found by itself; other packages add theirs by entry point."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from hansard.agents.agent import Agent
from hansard.errors import UsageError, meant

ENTRY_POINT = "hansard.agents"


@cache
def agents() -> dict[str, Agent]:
    """Every agent that can be driven, by name."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(__path__, __name__ + ".")
        if module.name != f"{__name__}.keeper"
    ]
    return {agent.name: agent for module in modules for agent in getattr(module, "AGENTS", ())} | _from_elsewhere()


def agent_for(name: str) -> Agent:
    """The agent of that name."""
    found = agents().get(name)
    if found is None:
        raise UsageError(f"no agent is called {name!r}{meant(name, agents()) or '; there are ' + ', '.join(sorted(agents()))}")
    return found


def _from_elsewhere() -> dict[str, Agent]:
    from importlib.metadata import entry_points

    return {agent.name: agent for point in entry_points(group=ENTRY_POINT) for agent in point.load()}
