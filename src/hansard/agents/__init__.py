"""Agents: how each is started, greeted, fed and stopped. One file per family, found by itself; other packages add theirs."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from hansard.agents.agent import Agent
from hansard.errors import UsageError, meant
from hansard.plugins import Plugins, is_kind


def agents() -> dict[str, Agent]:
    """Every agent that can be driven, by name."""
    return own() | {name: _from_elsewhere(name) for name in ELSEWHERE.loaded()}


@cache
def own() -> dict[str, Agent]:
    """The agents of this package, by name: all that can be driven without loading anybody else's code."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(__path__, __name__ + ".")
        if module.name != f"{__name__}.keeper"
    ]
    return {agent.name: agent for module in modules for agent in getattr(module, "AGENTS", ())}


def agent_for(name: str) -> Agent:
    """The agent of that name."""
    if name in own():
        return own()[name]
    if name in ELSEWHERE.names():
        return _from_elsewhere(name)
    names = sorted([*own(), *ELSEWHERE.names()])
    raise UsageError(f"no agent is called {name!r}{meant(name, names) or '; there are ' + ', '.join(names)}")


@cache
def _from_elsewhere(name: str) -> Agent:
    return ELSEWHERE.load(name)()


def _wrong(name: str, agent: Any) -> str | None:
    return is_kind(agent, Agent) or (None if agent().name == name else f"it calls itself {agent().name!r}")


ELSEWHERE = Plugins("agents", own, _wrong)
"""The agents of other packages, each a class under the agent's name."""
