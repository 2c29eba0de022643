"""The demo agent: every word it knows, and what is on the record of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.demo.agent import DEEDS, HELP
from hansard.errors import Refused
from hansard.events import (
    AssistantDone,
    ConfigurationChange,
    Event,
    PermissionRequest,
    PlanUpdate,
    Process,
    Question,
    ThinkingDone,
    ToolCall,
    ToolResult,
    TurnEnd,
)
from hansard.events.content import DiffBlock
from hansard.projections import project
from hansard.store import JsonlStore
from hansard.testing import check_closed, check_questions, check_tools, check_turns
from tests.driving.surroundings import idle, until

Answered = Callable[[Session, Event], Any]


async def allow(session: Session, asked: Event) -> None:
    await session.decide(asked.payload.request_id, "allow")


async def deny(session: Session, asked: Event) -> None:
    await session.decide(asked.payload.request_id, "deny")


async def blue(session: Session, asked: Event) -> None:
    await session.answer(asked.payload.request_id, {"colour": "blue"})


@pytest.fixture
async def session(tmp_path: Path) -> Session:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("one\ntwo\n")
    return await Session.create(JsonlStore(tmp_path / "store"), "demo", Options(cwd=str(work), env={"DEMO_AGENT_PACE": "0"}))


async def turn(session: Session, text: str, answered: Answered | None = None) -> list[Event]:
    """What is on the record of a turn, whole and closed."""
    begin = session.state.seq
    await session.send(text)
    if answered is not None:
        await until(session, lambda past: bool(past.asked))
        await answered(session, next(iter(session.state.asked.values())))
    await idle(session)
    await session.close()
    events = list(session.recorder.log.read())
    for check in (check_turns, check_closed, check_tools, check_questions):
        check(events)
    assert b"".join(project(events, "native"))
    return [event for event in events if event.seq > begin]


def payloads(events: list[Event], kind: type[Event]) -> list[Any]:
    return [event.payload for event in events if isinstance(event, kind)]


def text(events: list[Event]) -> str:
    return "".join(said.text for said in payloads(events, AssistantDone))


def status(events: list[Event]) -> list[str]:
    return [end.status for end in payloads(events, TurnEnd)]


def test_help_names_every_word():
    assert [word for word in DEEDS if word != "help" and f"**{word}**" not in HELP] == []


async def test_think(session: Session):
    events = await turn(session, "think")
    assert [thought.text for thought in payloads(events, ThinkingDone)] == ["The question is short. The answer can be too."]
    assert (text(events), status(events)) == ("I thought about it: **yes**.", ["completed"])


async def test_say_and_anything_else(session: Session):
    assert text(await turn(session, "say it again")) == "it again"


async def test_help_and_what_it_does_not_know(session: Session):
    assert text(await turn(session, "Good morning")).startswith("You said: Good morning")


async def test_run_allowed(session: Session):
    events = await turn(session, "run", allow)
    assert [call.kind for call in payloads(events, ToolCall)] == ["execute"]
    assert not payloads(events, ToolResult)[0].is_error
    assert "notes.txt" in str(payloads(events, ToolResult)[0].result) and status(events) == ["completed"]


async def test_run_denied(session: Session):
    events = await turn(session, "run", deny)
    assert payloads(events, ToolResult)[0].is_error and "You did not let me" in text(events)
    assert status(events) == ["completed"]


async def test_edit(session: Session, tmp_path: Path):
    events = await turn(session, "edit", allow)
    (result,) = payloads(events, ToolResult)
    (diff,) = result.content
    assert isinstance(diff, DiffBlock) and diff.new_text == (tmp_path / "work" / "answer.py").read_text()
    assert (len(payloads(events, PermissionRequest)), text(events)) == (1, "Now it is 42.")


@pytest.mark.parametrize(("name", "says"), [("notes.txt", "notes.txt has 2 lines."), ("../store", "I cannot read ../store: ")])
async def test_read(session: Session, name: str, says: str):
    events = await turn(session, f"read {name}")
    assert text(events).startswith(says)
    assert bool(payloads(events, ToolResult)[0].is_error) == name.startswith("..")


async def test_plan(session: Session):
    plans = [[entry.status for entry in plan.entries] for plan in payloads(await turn(session, "plan"), PlanUpdate)]
    assert plans[0] == ["in_progress", "pending", "pending"] and plans[-1] == ["completed"] * 3


async def test_ask(session: Session):
    events = await turn(session, "ask", blue)
    assert (len(payloads(events, Question)), text(events)) == (1, "You like blue.")


async def test_count_until_it_is_interrupted(session: Session):
    await session.send("count 1000000")
    await until(session, lambda past: any(block.text.startswith("1 2 3 ") for block in past.blocks.values()))
    await session.interrupt()
    await idle(session)
    await session.close()
    events = list(session.recorder.log.read())
    check_turns([event for event in events if getattr(event.payload, "subtype", "") != "checkpoint"])  # that is the store's own
    (said,) = payloads(events, AssistantDone)
    assert said.text.startswith("1 2 3 ") and status(events) == ["interrupted"]


@pytest.mark.parametrize(("word", "end", "said"), [("fail", "error", "I try…"), ("refuse", "refused", "I would rather not.")])
async def test_a_bad_end(session: Session, word: str, end: str, said: str):
    events = await turn(session, word)
    assert (status(events), text(events)) == ([end], said)


async def test_crash(session: Session):
    events = await turn(session, "crash")
    assert (status(events), text(events)) == (["error"], "Goodbye")
    about = payloads(events, Process)
    assert [(news.event, news.exit_code) for news in about] == [("started", None), ("stderr", None), ("exited", 3)]
    assert payloads(events, TurnEnd)[0].error.details == {"stderr": "the demo agent crashed, as you asked"}


async def test_model_and_mode_can_be_changed_or_not(session: Session):
    await session.configure("set_model", model="cuckoo")
    await session.configure("set_mode", mode_id="auto")
    with pytest.raises(Refused, match="no model"):
        await session.configure("set_model", model="ostrich")
    events = await turn(session, "run")
    assert payloads(events, PermissionRequest) == [] and status(events) == ["completed"]
    changes = payloads(list(session.recorder.log.read()), ConfigurationChange)
    assert [(change.subtype, change.model) for change in changes if change.subtype == "refused"] == [("refused", "cuckoo")]


async def test_an_agent_that_would_not_hear_of_a_changed_input_is_not_told_one(session: Session) -> None:
    await session.send("run")
    await until(session, lambda past: bool(past.asked))
    asked = next(iter(session.state.asked.values()))
    with pytest.raises(Refused, match="does not take a changed input"):
        await session.decide(asked.payload.request_id, "allow", updated_input={"command": "ls -l"})
    assert list(session.state.asked) == [asked.payload.request_id]
    await deny(session, asked)
    await idle(session)
    await session.close()
