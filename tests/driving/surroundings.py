"""Where a real agent runs in a test: a home and a folder of its own, an environment that knows nothing else, and a model on loopback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.agents.session_state import SessionState
from hansard.store import JsonlStore

PROGRAMS = Path(os.environ.get("HANSARD_AGENTS", Path(__file__).parents[2] / "build/agents")) / "node_modules"
PATIENCE = 60


def missing(words: str) -> NoReturn:
    """A play without its agent is left out; but `make test-agents` leaves none out."""
    if "HANSARD_ALL_AGENTS" in os.environ:
        pytest.fail(words)
    pytest.skip(words)


def program(pattern: str) -> str:
    """The full path of a real program that npm installed: `make test` brings some, `make test-agents` all."""
    found = next(iter(sorted(PROGRAMS.glob(pattern))), None)
    if found is None:
        missing(f"{pattern} is not installed: `make test-agents` brings it")
    return str(found)


def claude_program() -> str:
    """Claude Code, as it comes with the Agent SDK."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        missing("Claude Code is not installed: `make test` brings it")
    return str(Path(found.origin).parent / "_bundled/claude")


QUIET_CLAUDE = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-dummy",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
"""So that Claude Code talks to its model and to nobody else, and asks it once."""


class Surroundings:
    """A store, a home and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.store = JsonlStore(folder / "store")
        self.env = {"HOME": str(self.home), "LANG": "C.UTF-8"}

    async def session(self, agent: str, options: Options) -> Session:
        """A session in these surroundings."""
        options.cwd = str(self.work)
        options.env = self.env | options.env
        return await Session.create(self.store, agent, options)


async def until(session: Session, holds: Callable[[SessionState], bool]) -> None:
    """Wait for something, not for ever: a test that hangs says nothing."""
    await _in_time(session, session.until(holds))
    assert holds(session.state), "the agent is gone"


async def idle(session: Session) -> None:
    """Wait for the end of the turn."""
    await _in_time(session, session.idle())


async def _in_time(session: Session, waiting: Coroutine[Any, Any, None]) -> None:
    try:
        await asyncio.wait_for(waiting, PATIENCE)
    except TimeoutError:
        last = [(event.seq, event.type, event.direction, event.payload) for event in session.recorder.log.tail(20)]
        raise AssertionError(f"nothing happened for {PATIENCE} seconds after {last}") from None
