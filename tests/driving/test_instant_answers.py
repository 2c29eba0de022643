"""Whoever answers a question the moment it is in the log is never told that nobody asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.errors import Refused
from hansard.events import PermissionRequest, Question
from hansard.store import JsonlStore
from tests.driving.claude_stage import stage as claude_stage
from tests.driving.model import Step, calls, is_conversation, model, says
from tests.driving.real_agents import AGENTS, STOPS_AT_DENIAL, execute_options, shell_call
from tests.driving.surroundings import PATIENCE, Surroundings
from tests.driving.test_codex import ASKING, Stage
from tests.proof import amount

pytestmark = pytest.mark.anyio

Answering = Callable[[Session, Question | PermissionRequest, bool], Any]


class Answerer:
    """Reads the log as another process does, and answers as soon as it sees a question: every other one with no."""

    def __init__(self, session: Session, root: Path, answer: Answering) -> None:
        self._session, self._log, self._answer = session, JsonlStore(root)[session.id], answer
        self.answered = {"permission": 0, "question": 0}
        self.refused: list[str] = []
        self._seen: set[str] = set()

    async def follow(self) -> None:
        async for event in self._log.follow():
            if isinstance(event, PermissionRequest | Question) and event.payload.request_id not in self._seen:
                self._seen.add(event.payload.request_id)  # a question of Claude Code is also a permission request
                kind = "question" if isinstance(event, Question) or event.payload.tool_name == "AskUserQuestion" else "permission"
                yes = self.answered[kind] % 2 == 0
                self.answered[kind] += 1
                try:
                    await (self._decide(event, yes) if kind == "permission" else self._answer(self._session, event, yes))
                except Refused as problem:
                    self.refused.append(f"{event.type}: {problem}")

    async def _decide(self, event: Any, yes: bool) -> None:
        await self._session.decide(event.payload.request_id, "allow" if yes else "deny", input_hash=event.payload.input_hash)


@asynccontextmanager
async def answering(session: Session, root: Path, answer: Answering, count: int, questions: int | None = None):
    """Answer what is asked meanwhile, and look at the end whether all of it was asked and none refused."""
    answerer = Answerer(session, root, answer)
    task = asyncio.create_task(answerer.follow())
    yield
    task.cancel()
    await session.close()
    assert answerer.refused == []
    assert answerer.answered == {"permission": count, "question": count if questions is None else questions}


async def say(session: Session, text: str) -> None:
    await session.send(text)
    await asyncio.wait_for(session.idle(), PATIENCE)


async def test_the_demo_agent(tmp_path: Path) -> None:
    async def answer(session: Session, asked: Any, yes: bool) -> None:
        await session.answer(asked.payload.request_id, {"colour": "blue"} if yes else None, "accept" if yes else "decline")

    session = await Session.create(JsonlStore(tmp_path / "store"), "demo", Options(cwd=str(tmp_path), env={"DEMO_AGENT_PACE": "0"}))
    async with answering(session, tmp_path / "store", answer, 50):
        for _ in range(50):
            await say(session, "run")
            await say(session, "ask")


COUNT = amount(10, 50)


async def test_claude_code(tmp_path: Path) -> None:
    async def answer(session: Session, asked: Any, yes: bool) -> None:
        if yes:
            await session.answer(asked.payload.request_id, {"Which colour?": "Blue"})
        else:
            await session.decide(asked.payload.request_id, "deny")

    options = [{"label": "Red", "description": "like fire"}, {"label": "Blue", "description": "like ice"}]
    choice = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": options}
    script: list[Step] = []
    for number in range(COUNT):
        path = str(tmp_path / "work" / f"{number}.txt")
        script += [calls("Write", {"file_path": path, "content": "a note"}, f"w{number}"), says("So be it.")]
        script += [calls("AskUserQuestion", {"questions": [choice]}, f"q{number}"), says("So be it.")]
    async with claude_stage("claude", tmp_path, *script) as play, answering(play.session, tmp_path / "store", answer, COUNT):
        for _ in range(2 * COUNT):
            await say(play.session, "Go on.")


async def test_codex(tmp_path: Path) -> None:
    async def answer(session: Session, asked: Any, yes: bool) -> None:
        await session.answer(asked.payload.request_id, {"how": {"answers": ["Near"]}} if yes else {})

    options = [{"label": "Near", "description": "n"}, {"label": "Far", "description": "f"}]
    questions = [{"id": "how", "header": "How", "question": "How far?", "options": options}]
    script: list[Step] = []
    for number in range(COUNT):
        script += [calls("exec_command", {"cmd": f"echo {number} > made{number}", **ASKING}, f"c{number}")]
        script += [says("So be it.")]
    for number in range(COUNT):
        script += [calls("request_user_input", {"questions": questions}, f"q{number}"), says("So be it.")]
    with model(*script) as scripted:
        session = await Stage(tmp_path, scripted).codex("codex", permission_mode="read-only")
        async with answering(session, tmp_path / "store", answer, COUNT):
            for _ in range(COUNT):
                await say(session, "Make it.")
            await session.configure("set_mode", mode_id="plan")
            for _ in range(COUNT):
                await say(session, "Plan it.")


OTHERS = sorted({name for name in AGENTS if agent_for(name).capabilities.permissions} - {"claude", "codex"})
"""Agents that ask for permissions and have no questions for the user."""


@pytest.mark.all_agents
@pytest.mark.parametrize("agent", OTHERS)
async def test_agents_that_ask_for_permissions_alone(agent: str, tmp_path: Path) -> None:
    around, times = Surroundings(tmp_path), amount(6, 100)
    script: list[Step] = []
    for number in range(times):
        script.append(Step([shell_call(agent, f"mkdir note{number}")]))
        if agent not in STOPS_AT_DENIAL or number % 2 == 0:  # allowed, or the model hears of the denial
            script.append(says("So be it."))
    with model(*script, is_step=is_conversation) as scripted:
        given = execute_options(agent, scripted, around)
        session = await Session.create(given.pop("store"), agent, Options(**given))
        async with answering(session, around.store.root, no_question, times, 0):
            for _ in range(times):
                await say(session, "Make it.")


async def no_question(session: Session, asked: Any, yes: bool) -> None:
    raise AssertionError(f"a question: {asked}")
