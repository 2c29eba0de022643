"""Agents: how each is started, greeted, fed and stopped. One file per family, found by itself; other packages add theirs."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from hansard.agents import drivers
from hansard.agents.base import Agent
from hansard.errors import UsageError, did_you_mean
from hansard.plugins import Plugins, subclass_problem


def agents() -> dict[str, Agent]:
    """Every agent that can be driven, by name."""
    return own() | {name: _from_elsewhere(name) for name in PLUGINS.loaded()}


@cache
def own() -> dict[str, Agent]:
    """The agents of this package, by name: all that can be driven without loading anybody else's code."""
    modules = [importlib.import_module(module.name) for module in pkgutil.iter_modules(drivers.__path__, drivers.__name__ + ".")]
    return {agent.name: agent for module in modules for agent in getattr(module, "AGENTS", ())}


def agent_for(name: str) -> Agent:
    """The agent of that name."""
    if name in own():
        return own()[name]
    if name in PLUGINS.names():
        return _from_elsewhere(name)
    names = sorted([*own(), *PLUGINS.names()])
    raise UsageError(f"no agent is called {name!r}{did_you_mean(name, names) or '; there are ' + ', '.join(names)}")


@cache
def _from_elsewhere(name: str) -> Agent:
    return PLUGINS.load(name)()


def _wrong(name: str, agent: Any) -> str | None:
    return subclass_problem(agent, Agent) or (None if agent().name == name else f"it calls itself {agent().name!r}")


PLUGINS = Plugins("agents", own, _wrong)
"""The agents of other packages, each a class under the agent's name."""
