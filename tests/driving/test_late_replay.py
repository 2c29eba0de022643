"""An agent that replays its history after the handshake: what it is told next waits for the end of that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import session as session_module
from hansard.agents.session import Session
from hansard.errors import AgentGone
from hansard.store import JsonlStore
from tests.driving.puppet import AcpChild, Puppet
from tests.driving.surroundings import idle

pytestmark = pytest.mark.anyio

GEMINI = {"protocolVersion": 1, "agentInfo": {"name": "gemini-cli", "version": "0.61.0"}, "agentCapabilities": {"loadSession": True}}


async def resumed(puppet: Puppet, root: Path) -> tuple[Session, asyncio.Task[Any]]:
    """A session with one turn whose agent loads it again, and the second prompt on its way."""
    name, options = puppet.agent()
    options.cwd = str(root)
    session = await Session.create(JsonlStore(root / "store"), name, options)
    asking = asyncio.create_task(session.send("first"))
    await puppet.begins()
    await puppet.answers("initialize", result=GEMINI)
    await puppet.answers("session/new", result={"sessionId": "puppet"})
    await prompted(puppet, "first answer")
    await asking
    await idle(session)
    await session.close()
    session = await Session.open(JsonlStore(root / "store"), session.id)
    asking = asyncio.create_task(session.send("second"))
    await puppet.begins()
    await puppet.answers("initialize", result=GEMINI)
    await puppet.answers("session/load", result={})
    return session, asking


async def update(puppet: Puppet, kind: str, **fields: Any) -> None:
    await puppet.says(jsonrpc="2.0", method="session/update", params={"sessionId": "puppet", "update": {"sessionUpdate": kind, **fields}})


async def says(puppet: Puppet, kind: str, text: str) -> None:
    await update(puppet, kind, content={"type": "text", "text": text})


async def prompted(puppet: Puppet, answer: str) -> None:
    """The agent hears its prompt, and answers."""
    asked = await puppet.hears(lambda frame: frame.get("method") == "session/prompt")
    await says(puppet, "agent_message_chunk", answer)
    await puppet.says(jsonrpc="2.0", id=asked["id"], result={"stopReason": "end_turn"})


def speech_in(session: Session) -> list[tuple[str, bool]]:
    events = session.recorder.log.read(types=["user_message", "assistant_done"])
    return [(event.payload.text, bool(event.replay)) for event in events]


AFTER = [("first", False), ("first answer", False), ("first", True), ("first answer", True), ("second", False), ("second answer", False)]


async def test_a_prompt_waits_for_the_end_of_a_replay(tmp_path: Path) -> None:
    async with Puppet(tmp_path, AcpChild) as puppet:
        session, asking = await resumed(puppet, tmp_path)
        await says(puppet, "user_message_chunk", "first")
        await says(puppet, "agent_message_chunk", "first answer")
        while [text for text, _ in speech_in(session)].count("first") < 2:  # the replay is under way
            await asyncio.sleep(0.01)
        assert not [frame for frame in puppet.heard if frame.get("method") == "session/prompt"]
        await update(puppet, "available_commands_update", availableCommands=[])
        await prompted(puppet, "second answer")
        await asking
        await idle(session)
        await session.close()
    assert speech_in(session) == AFTER


async def test_a_replay_of_which_nothing_comes_for_a_while_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Puppet(tmp_path, AcpChild) as puppet:
        monkeypatch.setattr(session_module, "CONFIRM_SECONDS", 0.5)
        session, asking = await resumed(puppet, tmp_path)
        await says(puppet, "user_message_chunk", "first")
        await says(puppet, "agent_message_chunk", "first answer")
        await prompted(puppet, "second answer")
        await asking
        await idle(session)
        await session.close()
    assert speech_in(session) == AFTER


async def test_an_agent_that_ends_in_its_replay_is_not_waited_for(tmp_path: Path) -> None:
    async with Puppet(tmp_path, AcpChild) as puppet:
        session, asking = await resumed(puppet, tmp_path)
        puppet.exits(3)
        with pytest.raises(AgentGone):
            await asking
        await session.close()
