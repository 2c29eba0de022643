"""An interrupt while the agent waits for an answer, and a stop while messages wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.store import JsonlStore
from tests.driving.surroundings import idle, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(tmp_path: Path) -> Session:
    return await Session.create(JsonlStore(tmp_path / "store"), "demo", Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0"}))


@pytest.mark.parametrize("word", ["run", "ask"])
async def test_what_the_agent_asks_is_withdrawn_with_an_interrupt(session: Session, word: str) -> None:
    await session.send(word)
    await until(session, lambda past: bool(past.asked))
    await session.interrupt()
    await idle(session)
    assert not session.state.asked
    await session.send("still there?")
    await idle(session)
    ends = [event.payload.status for event in session.recorder.log.read(types=["turn_end"])]
    assert ends[-1] == "completed"
    await session.close()


async def test_what_waits_goes_on_waiting_when_the_agent_is_stopped(session: Session) -> None:
    await session.send("run")
    await until(session, lambda past: bool(past.asked))
    await session.send("later")
    await session.stop()
    assert [waiting.text for waiting in session.state.queue.values()] == ["later"]
    assert not session.running
    await session.close()
