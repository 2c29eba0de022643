"""Qwen Code, both ways, against a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard import project
from hansard.events import Event
from hansard.session import Session
from hansard.session.session import Decision
from tests.driving.model import Model, Step, Text, calls, model, says
from tests.driving.surroundings import Surroundings, idle, until
from tests.driving.test_oneshots import QWEN, ends, log, of, said, turn

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path)


def open_session(around: Surroundings, server: Model) -> Session:
    return QWEN.session(around, server, agent="qwen-io", permission_mode="default")


def native(events: list[Event], direction: str) -> bytes:
    return b"".join(project(events, "native", direction=direction))


async def test_turns_permissions_and_another_process(around: Surroundings) -> None:
    made = around.work / "made"
    script = [
        says("A heron it is."),
        calls(QWEN.shell, {"command": f"touch {made}", "description": "Make it"}),
        says("Made."),
        calls(QWEN.shell, {"command": f"rm {made}", "description": "Remove it"}),
        says("Not removed."),
        says("Still here."),
    ]
    with model(*script) as server:
        session = open_session(around, server)
        await turn(session, "Which bird?")
        decisions: list[tuple[str, Decision]] = [("Make it.", "allow"), ("Remove it.", "deny")]
        for prompt, decision in decisions:
            await session.say(prompt)
            await until(session, lambda past: bool(past.asked))
            [(request, asked)] = session.past.asked.items()
            await session.decide(request, decision, input_hash=asked.payload.input_hash)
            await idle(session)
        await session.close()
        again = Session.open(around.store, session.id, around.env | QWEN.env)
        await turn(again, "Are you there?")
        await again.close()
    assert made.exists()
    assert said(again) == ["Which bird?", "Make it.", "Remove it.", "Are you there?"]
    assert [answer.decision for answer in of(again, "permission_response")] == ["allow", "deny"]
    assert [result.is_error for result in of(again, "tool_result")] == [False, True]
    assert len(ends(again)) == 4 and set(ends(again)) <= {"completed", "denied"}
    assert "Which bird?" in str(server.asked[-1]) and not session.past.asked
    sent = native(log(again), "out").splitlines()
    assert len(sent) == 2 + 4 + 2  # a greeting for each process, the messages, the decisions


async def test_interrupts_and_settings(around: Surroundings) -> None:
    with model(Step([Text("A very long answer about herons.")], hang=True), says("Shorter.")) as server:
        session = open_session(around, server)
        await session.say("Tell me all.")
        await until(session, lambda _: any(chunk.text for chunk in of(session, "assistant_chunk")))
        await session.interrupt()
        await idle(session)
        await session.set("set_permission_mode", permission_mode="yolo")
        await turn(session, "Shorter.")
        await session.close()
    assert ends(session) == ["interrupted", "completed"]
    assert session.past.state.permission_mode == "yolo"
