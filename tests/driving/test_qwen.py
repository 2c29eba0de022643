"""Qwen Code, both ways, against a scripted model."""

from __future__ import annotations

import pytest

from hansard import project
from hansard.agents.session import Decision, Session
from hansard.events import Event
from tests.driving.capabilities import shows
from tests.driving.model import SOON, Model, Step, Text, calls, model, says
from tests.driving.surroundings import idle, until
from tests.driving.test_oneshots import QWEN, ends, log, payloads, prompts, turn
from tests.driving.witness import Around

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def open_session(around: Around, server: Model) -> Session:
    return await QWEN.session(around, server, agent="qwen-io", permission_mode="default")


def native(events: list[Event], direction: str) -> bytes:
    return b"".join(project(events, "native", direction=direction))


@shows("text", "tools", "allowed", "denied", "resume", agent="qwen-io")
async def test_turns_permissions_and_another_process(around: Around) -> None:
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
        session = await open_session(around, server)
        await turn(session, "Which bird?")
        decisions: list[tuple[str, Decision]] = [("Make it.", "allow"), ("Remove it.", "deny")]
        for prompt, decision in decisions:
            await session.send(prompt)
            await until(session, lambda past: bool(past.asked))
            [(request, asked)] = session.state.asked.items()
            await session.decide(request, decision, input_hash=asked.payload.input_hash)
            await idle(session)
        await session.close()
        again = await Session.open(around.store, session.id, around.env | QWEN.variables())
        await turn(again, "Are you there?")
        await again.close()
    assert made.exists()
    assert prompts(again) == ["Which bird?", "Make it.", "Remove it.", "Are you there?"]
    assert [answer.decision for answer in payloads(again, "permission_response")] == ["allow", "deny"]
    assert [result.is_error for result in payloads(again, "tool_result")] == [False, True]
    assert len(ends(again)) == 4 and set(ends(again)) <= {"completed", "denied"}
    assert "Which bird?" in str(server.asked[-1]) and not session.state.asked
    sent = native(log(again), "out").splitlines()
    assert len(sent) == 2 + 4 + 2  # a greeting for each process, the messages, the decisions


@shows("interrupt", "setting", agent="qwen-io")
async def test_interrupts_and_settings(around: Around) -> None:
    with model(Step([Text("A very long answer about herons.")], hang=True), says("Shorter.")) as server:
        session = await open_session(around, server)
        await session.send("Tell me all.")
        await until(session, lambda _: any(chunk.text for chunk in payloads(session, "assistant_chunk")))
        await session.interrupt()
        await idle(session)
        await session.configure("set_permission_mode", permission_mode="yolo")
        await turn(session, "Shorter.")
        await session.close()
    assert ends(session) == ["interrupted", "completed"]
    assert session.state.permission_mode == "yolo"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(401, "provider_auth", marks=shows("401", agent="qwen-io")),
        pytest.param(429, "rate_limit", marks=shows("429", agent="qwen-io")),
    ],
)
async def test_an_error_of_the_api_is_the_end_of_the_turn(around: Around, status: int, code: str) -> None:
    with model(*[Step(status=status, headers=SOON)] * 12) as server:
        session = await open_session(around, server)
        await turn(session, "Hello?")
        await session.close()
    assert ends(session) == ["error"]
    assert payloads(session, "turn_end")[0].error.code == code
