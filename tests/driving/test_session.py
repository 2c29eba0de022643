"""A session with the demo agent: the queue, commands that are done once, settings, and what another process finds in the log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.agents.session_state import Launch, SessionState
from hansard.errors import AgentGone, Refused
from hansard.events import session_init, session_lifecycle
from hansard.events.content import AudioBlock, TextBlock
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.store import JsonlStore
from tests.driving.surroundings import idle, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(tmp_path: Path) -> Session:
    return await Session.create(JsonlStore(tmp_path / "store"), "demo", Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0"}))


def payloads(session: Session, *kinds: str) -> list[Any]:
    return [event.payload for event in session.recorder.log.read(types=kinds)]


async def question(session: Session) -> str:
    await until(session, lambda past: bool(past.asked))
    return next(iter(session.state.asked))


async def test_messages_wait_in_order_and_can_be_changed_and_taken_back(session: Session) -> None:
    await session.send("run")
    asked = await question(session)
    for text in ("first", "second", "third"):
        await session.send(text)
    one, two, three = session.state.queue
    await session.edit(two, "second, changed")
    await session.cancel(three)
    await session.decide(asked, "deny")
    await idle(session)
    assert [said.text for said in payloads(session, "user_message")] == ["run", "first", "second, changed"]
    assert [change.action for change in payloads(session, "queue_update")] == ["queued"] * 3 + ["edited", "cancelled", "sent", "sent"]
    with pytest.raises(Refused, match=one):
        await session.cancel(one)
    await session.close()


async def test_what_waits_is_there_in_another_process(session: Session, tmp_path: Path) -> None:
    await session.send("run")
    await question(session)
    await session.send("later", [TextBlock("later"), TextBlock("with more")])
    await session.close()
    again = await Session.open(JsonlStore(tmp_path / "store"), session.id, {"DEMO_AGENT_PACE": "0"})
    assert [(item.text, len(item.content or [])) for item in again.state.queue.values()] == [("later", 2)]
    await again.start()
    await idle(again)
    assert [said.text for said in payloads(again, "user_message")] == ["run", "later"]
    assert [life.subtype for life in payloads(again, "session_lifecycle") if life.subtype == "resumed"] == ["resumed"]
    await again.close()


async def test_the_same_command_twice_is_done_once(session: Session, tmp_path: Path) -> None:
    first, second = await asyncio.gather(session.send("hello", command_id="c1"), session.send("hello", command_id="c1"))
    await idle(session)
    assert first.id == second.id == (await session.send("hello", command_id="c1")).id
    assert len(payloads(session, "user_message")) == 1
    await session.close()
    again = await Session.open(JsonlStore(tmp_path / "store"), session.id)
    assert (await again.send("hello", command_id="c1")).id == first.id
    assert len(payloads(session, "user_message")) == 1
    await again.close()


async def test_a_setting_is_confirmed_or_refused_and_the_log_says_which(session: Session) -> None:
    await session.configure("set_mode", mode_id="auto")
    assert session.state.mode == "auto"
    with pytest.raises(Refused, match="no mode") as refused:
        await session.configure("set_mode", mode_id="nonsense")
    assert refused.value.code == "refused"
    assert session.state.mode == "auto"
    assert [reply.ok for reply in payloads(session, "control_response") if reply.method == "session/set_mode"] == [True, False]
    await session.close()


async def test_what_the_wire_has_no_words_for_is_refused_visibly(session: Session) -> None:
    with pytest.raises(Refused) as refused:
        await session.send("listen", [AudioBlock(blob="00")])
    assert refused.value.code == "unsupported"
    assert payloads(session, "error")[-1].error_source == "hansard"
    await session.send("hello")
    await idle(session)
    assert [end.status for end in payloads(session, "turn_end")] == ["completed"]
    await session.close()


async def test_an_agent_that_dies_is_started_again_for_its_queue_and_not_for_ever(session: Session) -> None:
    await session.send("run")
    asked = await question(session)
    for _ in range(6):
        await session.send("crash")
    await session.decide(asked, "deny")
    async with asyncio.timeout(60):
        while not any("not started again" in error.message for error in payloads(session, "error")):
            await asyncio.sleep(0.05)
    assert [news.event for news in payloads(session, "process")].count("relaunched") == 3
    assert not session.running
    assert session.state.queue  # what was not said is still there to be said
    await session.close()


async def test_a_question_of_an_agent_that_is_gone_cannot_be_answered(session: Session) -> None:
    await session.send("run")
    asked = await question(session)
    await session.stop()
    with pytest.raises((Refused, AgentGone)):
        await session.decide(asked, "allow")
    assert [closed.request_id for closed in payloads(session, "permission_cancelled")] == [asked]
    await session.close()


async def test_what_is_said_after_a_restart_comes_after_what_waited(session: Session, tmp_path: Path) -> None:
    await session.send("run")
    await question(session)
    await session.send("earlier")
    await session.close()
    again = await Session.open(JsonlStore(tmp_path / "store"), session.id, {"DEMO_AGENT_PACE": "0"})
    waits = await again.send("later")
    assert waits.type == "queue_update"
    await idle(again)
    assert [said.text for said in payloads(again, "user_message")] == ["run", "earlier", "later"]
    await again.close()


async def test_a_setting_holds_in_the_next_process(session: Session, tmp_path: Path) -> None:
    await session.configure("set_mode", mode_id="auto")
    await session.close()
    again = await Session.open(JsonlStore(tmp_path / "store"), session.id, {"DEMO_AGENT_PACE": "0"})
    await again.send("run")
    await idle(again)
    assert not payloads(again, "permission_request")
    assert again.state.mode == "auto"
    await again.close()


def test_the_agents_own_word_for_its_session_counts() -> None:
    """Whoever starts a session may name one to resume; the one that goes on is the one that the agent names."""
    wanted = Launch(agent="demo", options=Options(resume="what a client said"), restart_count=0)
    launched = session_lifecycle(subtype=LAUNCHED_SUBTYPE, detail=msgspec.to_builtins(wanted))
    init = session_init(agent_id="demo", provider_session_id="what the agent said")
    init.session_id, init.source = "ours", "demo"
    past = SessionState.from_events([launched, init])
    assert (past.agent_session_id, past.launch and past.launch.options.resume) == ("what the agent said", "what a client said")
