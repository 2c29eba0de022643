"""One conversation in hansard, in a terminal and in the agent's files is one session, in which everything is told once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.base import Options
from hansard.agents.handoff_files import find_handoff_files, remove_handoff_files
from hansard.agents.session import Session
from hansard.events import AssistantDone, UserMessage, is_main_agent
from hansard.events.replays import without_replays
from hansard.importing.discovery import discover, homes
from hansard.importing.run import import_all
from hansard.importing.session import ImportResult
from hansard.store import JsonlStore
from tests.driving.model import Model, model, says
from tests.driving.real_agents import execute_options
from tests.driving.surroundings import Surroundings, idle

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

IN_EVERY_RUN = ("claude", "claude-oneshot", "codex", "codex-exec")
OTHERS = ("opencode", "opencode-oneshot", "gemini-oneshot", "qwen-io", "qwen-oneshot", "copilot", "copilot-oneshot")
AGENTS = [*IN_EVERY_RUN, *(pytest.param(agent, marks=pytest.mark.all_agents) for agent in OTHERS)]
TURNS = [("yes", "One."), ("yes", "Two."), ("yes", "Three."), ("go on", "Four.")]
"""What is said in each turn. The prompts are alike: only the answers and the times tell turns apart."""


class Story:
    """A conversation that is continued here and there."""

    def __init__(self, agent: str, served: Model, around: Surroundings) -> None:
        self.agent, self.served, self.around = agent, served, around
        self.given: dict[str, Any] = execute_options(agent, served, around)
        self.given.pop("store")
        self.terminals = 0

    def options(self, **more: Any) -> Options:
        return Options(**(self.given | more))

    async def run(self, session: Session, number: int) -> None:
        await session.send(TURNS[number][0])
        await idle(session)
        await session.close()

    async def begin(self) -> str:
        session = await Session.create(self.around.store, self.agent, self.options())
        await self.run(session, 0)
        return session.id

    async def resume(self, session_id: str, number: int) -> None:
        """``hansard run AGENT --session ID``."""
        await self.wait()
        session = await Session.open(self.around.store, session_id, env=self.given["env"])
        about = {
            name: value for name, value in self.given.items() if name != "cwd" or self.agent == "gemini-oneshot"
        }  # whose file has none
        await session.configure_agent(self.agent, **about)
        await self.run(session, number)

    async def wait(self) -> None:
        """Gemini CLI 0.61 forgets a session that it resumes in the minute in which it wrote the file."""
        if self.agent.startswith("gemini"):
            await asyncio.sleep(61 - time.time() % 60)

    async def use_terminal(self, number: int, **more: Any) -> None:
        """A turn of which the store hears nothing: it is recorded in another one."""
        await self.wait()
        self.terminals += 1
        elsewhere = JsonlStore(self.around.home.parent / f"elsewhere-{self.terminals}")
        (info,) = await asyncio.to_thread(self.around.store.sessions)
        session = await Session.create(elsewhere, self.agent, self.options(resume=info.agent_sessions[0].id, **more))
        await self.run(session, number)

    async def import_files(self) -> list[ImportResult]:
        return await asyncio.to_thread(self._import)

    def _import(self) -> list[ImportResult]:
        places = [place for place in homes(self.around.home, {}) if place.exists()]
        return [outcome for outcome, _ in import_all(self.around.store.root, discover(places, None).jobs, True, 0, 1)]

    async def look(self) -> dict[str, list[tuple[str, str]]]:
        """The prompts and answers of each session, in order."""
        return await asyncio.to_thread(lambda: {info.id: self._told(info.id) for info in self.around.store.sessions()})

    def _told(self, session_id: str) -> list[tuple[str, str]]:
        events = [event for event in without_replays(self.around.store[session_id].conversation()) if is_main_agent(event)]
        said = [event for event in events if isinstance(event, AssistantDone) or is_prompt(event)]
        return [("said" if isinstance(event, UserMessage) else "answered", event.payload.text.strip().strip('"')) for event in said]


def is_prompt(event: Any) -> bool:
    return isinstance(event, UserMessage) and event.payload.author == "human"


def turns(*numbers: int) -> list[tuple[str, str]]:
    return [fact for number in numbers for fact in (("said", TURNS[number][0]), ("answered", TURNS[number][1]))]


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_conversation_that_goes_to_and_fro_is_one_session(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*(says(answer) for _, answer in TURNS)) as served:
        story = Story(agent, served, around)
        session = await story.begin()
        await story.import_files()
        assert await story.look() == {session: turns(0)}
        await story.use_terminal(1)
        await story.resume(session, 2)
        await story.import_files()  # the terminal's turn came between two of hansard's
        assert await story.look() == {session: turns(0, 1, 2)}
        assert {outcome.state for outcome in await story.import_files()} == {"unchanged"}
        assert not [finding for finding in await asyncio.to_thread(around.store[session].verify) if finding.is_damage]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_imported_session_is_resumed_under_its_own_id(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*(says(answer) for _, answer in TURNS)) as served:
        story = Story(agent, served, around)
        first = await Session.create(JsonlStore(tmp_path / "elsewhere"), agent, story.options())
        await story.run(first, 0)
        await story.import_files()
        (session,) = await story.look()
        await story.resume(session, 1)
        await story.import_files()
        assert await story.look() == {session: turns(0, 1)}
        (info,) = await asyncio.to_thread(around.store.sessions)
        assert len(info.agent_sessions) == 1, "the agent began a session of its own"
        assert {outcome.state for outcome in await story.import_files()} == {"unchanged"}


async def test_a_fork_is_a_session_of_its_own(tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*(says(answer) for _, answer in TURNS)) as served:
        story = Story("claude", served, around)
        session = await story.begin()
        await story.use_terminal(1, arguments=["--fork-session"])
        await story.import_files()
        told = await story.look()
        assert (told[session], len(told)) == (turns(0), 2)


@pytest.mark.parametrize("target", ["claude", "codex"])
async def test_the_file_of_a_hand_off_is_no_session_and_can_be_removed(target: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*(says(answer) for _, answer in TURNS)) as served:
        story = Story("codex" if target == "claude" else "claude", served, around)
        session = await story.begin()
        taken_over = Story(target, served, around)
        await taken_over.resume(session, 1)
        await story.import_files()
        assert await story.look() == {session: turns(0, 1)}
        await taken_over.resume(session, 2)
        await story.import_files()
        assert await story.look() == {session: turns(0, 1, 2)}
        assert {outcome.state for outcome in await story.import_files()} == {"unchanged"}
        (file,) = await asyncio.to_thread(lambda: list(find_handoff_files(around.store)))
        assert (file.session_id, file.state) == (session, "continued")
        (kept,) = await asyncio.to_thread(remove_handoff_files, around.store)
        assert Path(kept.path).exists(), "the agent continues it"
