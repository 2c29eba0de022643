"""Real agents once more with the recorded answers of their models: no divergence, or the first one by name."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hansard import events as ev
from hansard.agents.base import Options
from hansard.agents.session import Decision
from hansard.errors import UsageError
from hansard.importing.discovery import discover, homes
from hansard.importing.run import import_all
from hansard.projections.divergence import Divergence
from hansard.store import JsonlStore
from hansard.testing.model_api import Call, Text
from hansard.testing.recorded_model import RecordedModel
from hansard.testing.replay import ReplayResult, replay, report
from tests.driving.matrix import Cell, play
from tests.driving.model import Step, is_conversation, model, says
from tests.driving.real_agents import STOPS_AT_DENIAL, execute_options, shell_call
from tests.driving.surroundings import Surroundings, claude_program, idle, program, until
from tests.driving.test_acp import with_node

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

AGENTS = ("claude", "codex", "gemini", "opencode")
PATIENCE = 60.0
STORIES = ("text", "always", "interrupted in text", "interrupted in a tool", "HTTP 401", "HTTP 429", "resume", "structured output")
OFTEN = {("claude", "interrupted in text"), ("codex", "interrupted in a tool"), ("claude", "HTTP 429"), ("codex", "resume")}
OTHERS = ("agent-sdk", "claude-oneshot", "codex-exec", "qwen", "copilot", "gemini-oneshot", "qwen-oneshot", "copilot-oneshot")
OTHERS += ("opencode-oneshot", "claude-acp", "codex-acp", "opencode-acp", "qwen-io")
STRICTER: dict[str, dict[str, Any]] = {
    "claude": {"permission_mode": "bypassPermissions"},
    "codex": {"permission_mode": "full-access"},
    "gemini": {"permission_mode": "yolo"},
    "opencode": {"env": {"OPENCODE_CONFIG_CONTENT": '{"permission": {"bash": "allow"}}'}},
}
"""An option with which an agent does not ask for permission."""
FIRST = {"codex": ("call", "answer")}
"""The first difference then. Codex does not run a command that must leave the sandbox if it cannot ask."""


def marked(agent: str, often: bool) -> Any:
    return pytest.param(agent, marks=[] if often else [pytest.mark.all_agents])


some_agent = pytest.mark.parametrize("agent", [marked(agent, agent == "claude") for agent in AGENTS])
every_agent = pytest.mark.parametrize("agent", [marked(agent, agent in ("claude", "codex")) for agent in AGENTS])


class Recorded:
    """A session of a real agent, and how it is replayed."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.around, self.agent = Surroundings(folder), agent

    async def record(self, *script: Step, prompts: list[tuple[str, list[Decision]]]) -> None:
        """Records some turns. Each prompt comes with the decisions that are made in its turn."""
        with model(*script, is_step=is_conversation) as served:
            given = execute_options(self.agent, served, self.around)
            given.pop("store")
            session = await self.around.session(self.agent, Options(**given))
            self.env = {name: value for name, value in given["env"].items() if name == "PATH"}
            for prompt, decisions in prompts:
                await session.send(prompt)
                for decision in decisions:
                    await until(session, lambda state: bool(state.asked))
                    asked: Any = next(iter(session.state.asked.values()))
                    await session.decide(asked.payload.request_id, decision, option_id=_option(asked, decision), by="somebody")
                await idle(session)
            await session.close()
        self.id = session.id

    async def replay(self, **given: Any) -> ReplayResult:
        given["env"] = self.env | with_node() | given.get("env", {})
        options: dict[str, Any] = {"agent_home": self.around.home, "timeout": PATIENCE} | given
        return await asyncio.to_thread(lambda: replay(self.around.store, self.id, **options))

    @property
    def events(self) -> list[ev.Event]:
        return list(self.around.store[self.id].read())


def _option(asked: Any, decision: str) -> str | None:
    return (
        next((option.option_id for option in asked.payload.options if option.kind == "allow_once"), None) if decision == "allow" else None
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], Any]:
    """Records three turns: a command that is allowed, one that is denied, and an answer."""

    async def make(agent: str) -> Recorded:
        made = Recorded(tmp_path, agent)
        denied = [] if agent in STOPS_AT_DENIAL else [says("Not then.")]
        allowed = Step([Text("I make it."), shell_call(agent, "mkdir -vp made && ls")])
        script = [allowed, says("There it is."), Step([shell_call(agent, "mkdir -vp other")]), *denied, says("You are welcome.")]
        await made.record(*script, prompts=[("Make a folder.", ["allow"]), ("And another one.", ["deny"]), ("Thanks.", [])])
        return made

    return make


def sides(result: ReplayResult) -> tuple[Any, Any]:
    """The two sides of a divergence."""
    assert isinstance(result.divergence, Divergence), "there is no divergence"
    return result.divergence.expected, result.divergence.actual


@every_agent
async def test_the_same_answers_make_the_same_session(recorded, agent):
    made = await recorded(agent)
    result = await made.replay()
    assert report(result) == f"0 divergences, {result.compared} events compared\n"
    kinds = [event.type for event in made.events]
    assert (result.prompts, result.surplus_requests) == (3, 0)
    assert result.compared >= 3 * 2 + kinds.count("tool_call") + kinds.count("permission_request") + kinds.count("assistant_done")
    assert kinds.count("permission_request") == kinds.count("permission_response") == 2
    assert [info.id for info in made.around.store.sessions()] == [made.id], "a replay is no session of the user's store"
    assert not (made.around.work / "other").exists()


@some_agent
async def test_a_changed_answer_of_the_model_is_named(recorded, agent):
    made = await recorded(agent)

    def change(model: RecordedModel) -> RecordedModel:
        for step in model.turns[2].steps:
            step.items = [replace(item, text="Do not mention it.") if isinstance(item, Text) else item for item in step.items]
        return model

    expected, actual = sides(await made.replay(edit=change))
    assert (expected.kind, expected.value, actual.value) == ("answer", "You are welcome.", "Do not mention it.")
    [said] = [event for event in made.events if isinstance(event, ev.AssistantDone) and event.payload.text == "You are welcome."]
    assert expected.seq == said.seq


@some_agent
async def test_a_changed_command_of_the_model_is_named(recorded, agent):
    made = await recorded(agent)

    def change(model: RecordedModel) -> RecordedModel:
        for step in model.turns[1].steps:
            step.items = [replace(item, args=_other_command(item.args)) if isinstance(item, Call) else item for item in step.items]
        return model

    expected, actual = sides(await made.replay(edit=change))
    second = [event.seq for event in made.events if isinstance(event, ev.ToolCall)][1]
    assert (expected.kind, actual.kind, expected.seq) == ("call", "call", second)
    assert "mkdir -vp other" in str(expected.value) and "mkdir -vp third" in str(actual.value)


def _other_command(args: dict[str, Any]) -> dict[str, Any]:
    return {name: "mkdir -vp third" if value == "mkdir -vp other" else value for name, value in args.items()}


@some_agent
async def test_a_changed_option_of_the_agent_is_named(recorded, agent):
    made = await recorded(agent)
    expected, actual = sides(await made.replay(**STRICTER[agent]))
    kinds = FIRST.get(agent, ("permission", "result"))
    event = next(event for event in made.events if event.type == {"call": "tool_call", "permission": "permission_request"}[kinds[0]])
    assert (expected.kind, actual.kind, expected.seq) == (*kinds, event.seq)


@some_agent
async def test_a_replay_begins_where_it_is_told_to(recorded, agent):
    made = await recorded(agent)
    third = next(event.seq for event in made.events if isinstance(event, ev.UserMessage) and event.payload.text == "Thanks.")
    result = await made.replay(from_seq=third)
    assert (result.prompts, result.compared, result.divergence) == (1, 3, None), report(result)
    with pytest.raises(UsageError, match="no prompt at or after"):
        await made.replay(from_seq=third + 1)


async def test_a_subagent_gets_its_own_answers(tmp_path):
    made = Recorded(tmp_path, "claude")
    task = {"description": "Look", "prompt": "List the folder.", "subagent_type": "general-purpose", "run_in_background": False}
    listing = Step([Call("Bash", {"command": "ls -a | head -2", "description": "List"})])
    script = [Step([Call("Agent", task)]), listing, says("There are two."), says("The helper found two.")]
    await made.record(*script, prompts=[("Ask a helper.", [])])
    inside = [event for event in made.events if isinstance(event, ev.ToolCall) and event.parent_tool_call_id is not None]
    assert [event.payload.tool_name for event in inside] == ["Bash"]
    result = await made.replay()
    assert result.divergence is None and result.answers == 4, report(result)

    def change(model: RecordedModel) -> RecordedModel:
        model.subagents[0].steps[-1].items = [Text("There are three.")]
        return model

    expected, actual = sides(await made.replay(edit=change))
    assert expected.value != actual.value and "three" in str(actual.value)


async def test_a_message_into_a_turn_is_sent_at_its_place(tmp_path):
    made = Recorded(tmp_path, "claude")
    waiting = Step([Call("Bash", {"command": "sleep 1 && echo slept", "description": "Wait"})])
    with model(waiting, says("I saw both."), says("And more."), is_step=is_conversation) as served:
        given = execute_options("claude", served, made.around)
        given.pop("store")
        given |= {"env": given["env"] | {"IS_SANDBOX": "1"}, "permission_mode": "bypassPermissions"}
        session = await made.around.session("claude", Options(**given))
        made.id, made.env = session.id, {}
        await session.send("Wait a second.")
        await until(session, lambda state: bool(state.calls))
        await session.send("Also this.", steer=True)
        await idle(session)
        await session.close()
    assert [event.payload.steer for event in made.events if isinstance(event, ev.UserMessage) and event.direction == "out"] == [False, True]
    result = await made.replay()
    assert result.divergence is None and result.prompts == 1, report(result)


async def test_what_another_agent_does_otherwise_is_named(recorded):
    made = await recorded("claude")
    codex = program("@openai/codex-linux-*/vendor/*/bin/codex")
    expected, actual = sides(await made.replay(agent="codex", program=codex, model="gpt-5.5"))
    assert expected.kind == "call" and expected.value["name"] == "Bash"
    assert actual is None or actual.value != expected.value


async def test_another_model_gets_the_same_prompts_and_answers(recorded):
    made = await recorded("claude")
    kept = made.around.work.parent / "kept"
    result = await made.replay(model="claude-haiku-4-5", keep=kept)
    assert result.divergence is None, report(result)
    with JsonlStore(kept / "store") as store:
        assert [info.id for info in store.sessions()] == [result.replay]
        assert "claude-haiku-4-5" in store.sessions()[0].models
    assert (kept / "work/made").is_dir()


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


async def test_the_agent_works_in_the_recorded_commit_or_in_a_copy_of_a_folder(tmp_path):
    made = Recorded(tmp_path, "claude")
    note = made.around.work / "note.txt"
    note.write_text("as it was")
    git(made.around.work, "init", "--quiet")
    git(made.around.work, "add", ".")
    git(made.around.work, "commit", "--quiet", "--message=One")
    script = [Step([Call("Bash", {"command": "cat note.txt", "description": "Read"})]), says("I read it.")]
    await made.record(*script, prompts=[("Read the note.", [])])
    note.write_text("as it is")
    git(made.around.work, "commit", "--quiet", "--all", "--message=Two")
    before = sorted(str(path) for path in made.around.work.rglob("*"))
    result = await made.replay()
    assert result.divergence is None, report(result)
    expected, actual = sides(await made.replay(workspace=made.around.work))
    assert (expected.kind, expected.value["text"], actual.value["text"]) == ("result", "as it was", "as it is")
    assert sorted(str(path) for path in made.around.work.rglob("*")) == before and note.read_text() == "as it is"


def _cells() -> list[Any]:
    told = [(agent, story) for agent in AGENTS for story in STORIES] + [(agent, "tool allowed") for agent in OTHERS]
    told += [("openai-chat", "text"), ("openai-responses", "resume")]
    often = OFTEN | {("openai-chat", "text"), ("openai-responses", "resume"), ("claude-oneshot", "tool allowed")}
    return [pytest.param(*one, marks=[] if one in often else [pytest.mark.all_agents], id="-".join(one)) for one in told]


@pytest.mark.parametrize(("agent", "story"), _cells())
async def test_a_story_of_the_matrix_is_replayed(tmp_path, agent, story):
    cell = Cell(story, agent, tmp_path)
    await play(cell)
    result = await asyncio.to_thread(
        lambda: replay(cell.around.store, cell.session.id, agent_home=cell.around.home, env=with_node(), timeout=PATIENCE)
    )
    assert result.divergence is None and result.surplus_requests == 0, report(result)
    assert result.compared > len(cell.turns)


async def test_a_session_that_was_imported_is_compared_with_the_same_kind_of_file(recorded, tmp_path):
    made = await recorded("claude")
    jobs = discover([place for place in homes(made.around.home, {}) if place.exists()], None).jobs
    await asyncio.to_thread(lambda: list(import_all(tmp_path / "imported", jobs, closed=True, quiet=0, processes=1)))
    with JsonlStore(tmp_path / "imported") as store:
        [info] = store.sessions()
        options: dict[str, Any] = {"program": claude_program(), "agent_home": made.around.home, "timeout": PATIENCE}
        result = await asyncio.to_thread(lambda: replay(store, info.id, **options))
    assert (result.prompts, result.divergence) == (3, None), report(result)
