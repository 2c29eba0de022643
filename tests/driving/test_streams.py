"""One conversation in hansard, in a terminal and in the agent's files is one session, in which everything is told once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.base import Options
from hansard.agents.handoff_files import find_handoff_files, remove_handoff_files
from hansard.agents.session import Session
from hansard.events import AssistantDone, SessionLifecycle, UserMessage, is_main_agent
from hansard.events.ledger import add_up
from hansard.events.prices import PriceTable
from hansard.events.replays import without_replays
from hansard.events.summary import is_handoff
from hansard.importing.capture import import_sessions
from hansard.importing.discovery import discover, homes
from hansard.importing.repair import merge_doubles
from hansard.importing.run import import_all
from hansard.importing.session import ImportResult
from hansard.store import JsonlStore
from hansard.store.search import SearchQuery
from hansard.store.usage import read_ledger
from tests.driving.model import Model, Step, Text, is_conversation, model
from tests.driving.real_agents import FAMILIES, execute_options
from tests.driving.surroundings import Surroundings, idle
from tests.driving.terminal import FORKS, run_in_terminal

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

IN_EVERY_RUN = ("claude", "claude-oneshot", "codex", "codex-exec")
OTHERS = (
    *("agent-sdk", "claude-acp", "codex-acp", "opencode", "opencode-acp", "opencode-oneshot", "gemini", "gemini-oneshot"),
    *("qwen", "qwen-io", "qwen-oneshot", "copilot", "copilot-oneshot"),
)
AGENTS = [*IN_EVERY_RUN, *(pytest.param(agent, marks=pytest.mark.all_agents) for agent in OTHERS)]
TURNS = [("yes", "Heron."), ("yes", "Lynx."), ("yes", "Otter."), ("go on", "Stork.")]
"""What is said in each turn. The prompts are alike: only the answers and the times tell turns apart."""
UNCOUNTED = {
    **dict.fromkeys(
        ("opencode", "opencode-acp", "opencode-oneshot"), "no wire, file, or table of OpenCode shows the calls that make a title"
    ),
    "claude-acp": "its file has no count of a suggestion that the end of the session cuts off",
}
"""The agents that ask their model beside the conversation, which nothing has to count, and why."""


NOTHING = dict.fromkeys(("added", "updated", "in use", "failed", "events"), 0)
"""What an import reports that adds nothing."""


def script() -> list[Step]:
    """The answers of the model. No two count the same tokens."""
    return [Step([Text(answer)], tokens=(100 + 10**number, 10 + 2**number)) for number, (_, answer) in enumerate(TURNS)]


class Story:
    """A conversation that is continued here and there."""

    def __init__(self, agent: str, served: Model, around: Surroundings) -> None:
        self.agent, self.served, self.around = agent, served, around
        self.given: dict[str, Any] = execute_options(agent, served, around)
        self.given.pop("store")

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
        about = {name: value for name, value in self.given.items() if name != "cwd"}
        await session.configure_agent(self.agent, **about)
        await self.run(session, number)

    async def wait(self) -> None:
        """Gemini CLI 0.61 forgets a session that it resumes in the minute in which it wrote the file."""
        if self.agent.startswith("gemini"):
            await asyncio.sleep(61 - time.time() % 60)

    async def use_terminal(self, number: int, fork: bool = False) -> None:
        """A turn of which the store hears nothing."""
        await self.wait()
        (info,) = await asyncio.to_thread(self.around.store.sessions)
        (identity,) = info.agent_sessions
        await asyncio.to_thread(run_in_terminal, self.agent, self.given, TURNS[number][0], identity.id, fork)

    async def import_files(self) -> list[ImportResult]:
        return await asyncio.to_thread(self._import)

    def _import(self) -> list[ImportResult]:
        places = [place for place in homes(self.around.home, {}) if place.exists()]
        return [outcome for outcome, _ in import_all(self.around.store.root, discover(places, None).jobs, True, 0, 1)]

    async def import_again(self) -> dict[str, int]:
        """What ``hansard import`` reports when there is nothing new: it is a command that succeeds."""
        command = [sys.executable, "-m", "hansard", "import", "--closed", "--json"]
        places = ["--home", str(self.around.home), "--store", str(self.around.store.root)]
        done = await asyncio.to_thread(subprocess.run, [*command, *places], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return {name: told[name] for name in ("added", "updated", "in use", "failed", "events")}

    async def look(self) -> dict[str, list[tuple[str, str]]]:
        """The prompts and answers of each session, in order."""
        return await asyncio.to_thread(lambda: {info.id: self._told(info.id) for info in self.around.store.sessions()})

    async def searched(self, session_id: str) -> dict[str, int]:
        """How often search finds each text in the session in which the conversation began."""
        words = sorted({word.strip(".") for turn in TURNS[:3] for word in turn})
        return await asyncio.to_thread(lambda: {word: self._hits(session_id, word) for word in words})

    def _hits(self, session_id: str, word: str) -> int:
        return len(list(SearchQuery(self.around.store, word, [session_id])))

    async def counted(self) -> tuple[int, int]:
        """The input and output tokens of all sessions."""
        ledger = await asyncio.to_thread(read_ledger, self.around.store, PriceTable())
        total = add_up(ledger.rows())
        return total.input_tokens, total.output_tokens

    def answered(self) -> tuple[int, int]:
        """The tokens of everything that the model answered."""
        beside = [] if self.agent in UNCOUNTED else self.served.fillers
        steps = [*self.served.script[: self.served.taken], *beside]
        return sum(step.tokens[0] for step in steps), sum(step.tokens[1] for step in steps)

    def answered_so_far(self) -> list[tuple[int, int]]:
        """The same for a program that runs on: an agent in `UNCOUNTED` shows calls beside the conversation, unless it cuts them off."""
        sent, answered = self.answered()
        beside = self.served.fillers if self.agent in UNCOUNTED else []
        sums = [beside[:count] for count in range(len(beside) + 1)]
        return [(sent + sum(step.tokens[0] for step in steps), answered + sum(step.tokens[1] for step in steps)) for steps in sums]

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
    """Run, import, a turn in the terminal, import, run again, a fork in the terminal, import."""
    around = Surroundings(tmp_path)
    with model(*script(), is_step=is_conversation) as served:
        story = Story(agent, served, around)
        session = await story.begin()
        await story.import_files()
        assert await story.look() == {session: turns(0)}
        await story.use_terminal(1)
        await story.import_files()
        assert await story.look() == {session: turns(0, 1)}
        await story.resume(session, 2)
        assert await story.look() == {session: turns(0, 1, 2)}
        await story.import_files()
        assert await story.counted() == story.answered()
        if FAMILIES[agent] in FORKS:
            await story.use_terminal(3, fork=True)
        await story.import_files()
        told = await story.look()
        assert told.pop(session) == turns(0, 1, 2)
        assert [forked in (turns(3), turns(0, 1, 2, 3)) for forked in told.values()] == [True] * (FAMILIES[agent] in FORKS)
        assert await story.searched(session) == {"Heron": 1, "Lynx": 1, "Otter": 1, "yes": 3}
        assert await story.counted() == story.answered()
        assert {outcome.state for outcome in await story.import_files()} == {"unchanged"}
        assert await story.import_again() == NOTHING
        assert not [finding for finding in await asyncio.to_thread(around.store[session].verify) if finding.is_damage]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_imported_session_is_resumed_under_its_own_id(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*script(), is_step=is_conversation) as served:
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
        assert await story.import_again() == NOTHING


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_import_while_the_agent_runs_leaves_its_session_for_later(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*script(), is_step=is_conversation) as served:
        story = Story(agent, served, around)
        session = await Session.create(around.store, agent, story.options())
        for number in (0, 1):
            await session.send(TURNS[number][0])
            await idle(session)
            assert {outcome.state for outcome in await story.import_files()} <= {"in use"}
            assert await story.look() == {session.id: turns(*range(number + 1))}
        await session.close()
        await story.import_files()
        assert await story.look() == {session.id: turns(0, 1)}
        assert await story.counted() in story.answered_so_far()
        assert await story.import_again() == NOTHING


@pytest.mark.parametrize("target", ["claude", "codex"])
async def test_the_file_of_a_hand_off_is_no_session_and_can_be_removed(target: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*script(), is_step=is_conversation) as served:
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


@pytest.mark.parametrize("target", ["claude", "codex"])
async def test_a_hand_off_that_version_0_1_imported_as_a_session_is_merged(target: str, tmp_path: Path) -> None:
    """Version 0.1 did not remember the files that it wrote, and its import took one for a session of the agent."""
    around = Surroundings(tmp_path)
    with model(*script(), is_step=is_conversation) as served:
        story = Story("codex" if target == "claude" else "claude", served, around)
        session = await story.begin()
        await Story(target, served, around).resume(session, 1)
    old = JsonlStore(tmp_path / "old")
    await asyncio.to_thread(copy_as_version_0_1, around.store, old, session)
    jobs = [
        job
        for job in discover([place for place in homes(around.home, {}) if place.exists()], None).jobs
        if job.session_id.startswith(target)
    ]
    (double,) = await asyncio.to_thread(lambda: [outcome.session_id for outcome, _ in import_sessions(old, jobs, True, 0)])
    around.store = old
    assert set(await story.look()) == {session, double}
    (merged,) = await asyncio.to_thread(lambda: list(merge_doubles(old, jobs)))
    assert (merged.session_id, merged.into, merged.problem) == (double, session, None)
    assert await story.look() == {session: turns(0, 1)}
    assert {outcome.state for outcome in await story.import_files()} <= {"unchanged", "updated"}
    assert await story.look() == {session: turns(0, 1)}


def copy_as_version_0_1(store: JsonlStore, old: JsonlStore, session_id: str) -> None:
    """Copies a session without what version 0.1 did not write."""
    header, *events = store[session_id].read()
    old.create(session_id, format=header.payload.format)
    old[session_id].append([event for event in events if not (isinstance(event, SessionLifecycle) and is_handoff(event))])
    old[session_id].release()
