"""Real agents that search the record with `hansard mcp`, added to them as their own commands add it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.events import AssistantDone
from tests.driving.model import Model, Step, conversation, is_conversation, model, says
from tests.driving.real_agents import execute_options, hansard_call
from tests.driving.surroundings import Surroundings, idle, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FACT = "The kingfisher nests under the old bridge."
GUIDE = Path(__file__).parents[2] / "docs/agents.md"
COMMAND = re.compile(r"`(\w+) (mcp add .*) hansard mcp`")
IN_TIME = ["--config", "mcp_servers.hansard.required=true"]
"""Codex may ask its model before a server is there, unless it requires the server."""


@pytest.mark.parametrize(
    ("asking", "other"),
    [
        ("claude", "codex"),
        ("codex", "claude"),
        pytest.param("gemini", "claude", marks=pytest.mark.all_agents),
        pytest.param("opencode", "codex", marks=pytest.mark.all_agents),
    ],
)
async def test_an_agent_finds_what_another_agent_did(asking: str, other: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(says(FACT), is_step=is_conversation) as served:
        earlier = await talk(other, "What nests here?", options_of(other, served, around), around)
    query = hansard_call(asking, "search_sessions", {"query": "kingfisher bridge"})
    with model(Step([query]), says("Under the bridge."), is_step=is_conversation) as served:
        given = options_of(asking, served, around)
        await asyncio.to_thread(add_server, asking, given, around)
        asked = await talk(asking, "Where does the kingfisher nest?", given, around)
    (said,) = [event for event in earlier.recorder.log.read() if isinstance(event, AssistantDone)]
    row = f"{earlier.id} §{said.seq} · "
    (answer,) = {text[text.index(row) :] for text in texts(conversation(served.asked[1])) if row in text}
    assert f" · {other} · assistant_done\n    {FACT}" in answer and asked.id not in answer
    assert not [finding for finding in around.store[asked.id].verify() if finding.is_damage]


async def talk(agent: str, prompt: str, options: Options, around: Surroundings) -> Session:
    """One turn with an agent, on the record."""
    session = await Session.create(around.store, agent, options)
    await session.send(prompt)
    await until(session, lambda past: bool(past.asked) or not past.busy)
    for request in list(session.state.asked):  # some ask before each use of a tool
        await session.decide(request, "allow")
    await idle(session)
    await session.close()
    return session


def options_of(agent: str, served: Model, around: Surroundings) -> Options:
    given = {name: value for name, value in execute_options(agent, served, around).items() if name != "store"}
    return Options(**given)


def add_server(agent: str, options: Options, around: Surroundings) -> None:
    """Runs the command of the guide in the folder of the project, for the record of the test."""
    ((_, words),) = [found for found in COMMAND.findall(GUIDE.read_text()) if found[0] == agent]
    server = [sys.executable, "-m", "hansard", "mcp", "--store", str(around.store.root)]
    command = [options.program or "", *words.split(), *server]
    subprocess.run(command, cwd=around.work, env=around.env | options.env, check=True, capture_output=True, timeout=60)
    options.arguments = [*options.arguments, *(IN_TIME if agent == "codex" else [])]


def texts(value: Any) -> Iterator[str]:
    """Every text in the request, those that are JSON inside a text included."""
    if isinstance(value, str):
        yield value
        try:
            inner = json.loads(value)
        except ValueError:
            return
        yield from texts(inner) if not isinstance(inner, str) else ()
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
