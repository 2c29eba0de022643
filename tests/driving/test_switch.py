"""Every agent goes on with what every other began: its model is told the turns before, in order, each call with its result."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hansard.agents.base import Options
from hansard.agents.drivers import codex as codex_driver
from hansard.agents.session import Session
from hansard.errors import AgentNotStarted, ResumeFailed
from hansard.events import AgentSwitch, Event
from hansard.projections import project
from hansard.projections.formats.prompt import BEGINNING
from tests.driving.model import Model, calls, model, says
from tests.driving.surroundings import QUIET_CLAUDE, Surroundings, claude_program, idle, program
from tests.renormalized import check_again

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

AGENTS = ("claude", "codex", "openai-chat", "openai-responses", "demo")
"""The demo agent stands for ACP: it has no model, and says what it was shown."""
TOOLS = {
    "claude": ("Bash", {"command": "echo from-a-tool", "description": "Say it"}),
    "codex": ("exec_command", {"cmd": "echo from-a-tool"}),
}
NO_RETRIES = ["--config=model_providers.hansard.request_max_retries=0", "--config=model_providers.hansard.stream_max_retries=0"]


def options(agent: str, served: Model, around: Surroundings) -> Options:
    """How each agent is started here."""
    here: dict[str, Any] = {
        "cwd": str(around.work),
        "env": around.env | QUIET_CLAUDE | {"OPENAI_API_KEY": "scripted", "DEMO_AGENT_PACE": "0"},
    }
    match agent:
        case "claude":
            return Options(program=claude_program(), base_url=served.url, permission_mode="acceptEdits", allowed_tools=["Bash"], **here)
        case "codex":
            found = program("@openai/codex-linux-*/vendor/*/bin/codex")
            return Options(
                program=found, base_url=f"{served.url}/v1", model="gpt-5.5", permission_mode="full-access", arguments=NO_RETRIES, **here
            )
        case "demo":
            return Options(permission_mode="auto", **here)
        case _:
            return Options(base_url=f"{served.url}/v1", model="scripted", **here)


OWN_PROVIDER = """
model = "gpt-5.5"
model_provider = "{provider}"
[model_providers.own]
name = "own"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def configure_codex(around: Surroundings, served: Model, provider: str = "own") -> Options:
    """Codex with a model provider of the user's own."""
    (around.home / ".codex").mkdir(exist_ok=True)
    (around.home / ".codex/config.toml").write_text(OWN_PROVIDER.format(provider=provider, url=served.url))
    chosen = options("codex", served, around)
    chosen.base_url, chosen.model, chosen.arguments = None, None, []
    return chosen


RING = dict(zip(AGENTS, (*AGENTS[1:], AGENTS[0]), strict=True)).items()
"""These are always played: every agent once begins, and once goes on."""
PAIRS = [
    pytest.param(first, second, marks=[] if (first, second) in RING else [pytest.mark.all_agents]) for first in AGENTS for second in AGENTS
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_switch(first: str, second: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    tool = [calls(*TOOLS[first])] if first in TOOLS else []
    begins = [] if first == "demo" else [*tool, says("The lynx is in the garden.")]
    goes_on = [] if second == "demo" else [says("It still is.")]
    with model(*begins, *goes_on, is_step=is_step) as served:
        session = await Session.create(around.store, first, options(first, served, around))
        await send_and_wait(session, "run" if first == "demo" else "Where is the lynx?")
        await session.switch(second, options(second, served, around))
        await send_and_wait(session, "And now?")
        log = list(around.store[session.id].read())
        assert [event.payload.to_agent_id for event in log if isinstance(event, AgentSwitch)] == [second]
        assert [event.payload.status for event in log if event.type == "turn_end"] == ["completed", "completed"]
        assert knows_before(second, served, log)
        await session.close()
    await asyncio.to_thread(check_again, around.store, session.id)


async def send_and_wait(session: Session, text: str) -> None:
    await asyncio.wait_for(session.send(text), 120)
    await idle(session)


def is_step(request: dict[str, Any]) -> bool:
    """What the conversation is about; agents ask for titles and the like beside it."""
    return bool(request.get("tools")) or request.get("model") == "scripted"


def knows_before(second: str, served: Model, log: list[Event]) -> bool:
    """The facts of the conversation, in order, are in what the second agent's model was sent (or the demo agent was shown)."""
    switched = next(event.seq for event in log if isinstance(event, AgentSwitch))
    before = [fact for message in project([event for event in log if event.seq < switched], "openai-messages") for fact in facts(message)]
    if second == "demo":
        shown = next(event for event in reversed(log) if event.type == "user_message").payload.content[0].text
    else:
        shown = json.dumps(served.asked[-1].get("messages", served.asked[-1].get("input")), ensure_ascii=False)
        pairs_are_valid(served.asked[-1])
    position = 0
    for fact in before:
        position = shown.find(fact, position) + 1
        assert position, fact
    return len(before) >= 2


def facts(message: dict[str, Any]) -> list[str]:
    """Short words of a message that survive every spelling of it."""
    texts = [message["content"]] if isinstance(message.get("content"), str) else []
    called = [call["function"]["name"] for call in message.get("tool_calls") or []]
    return [text.strip().splitlines()[-1].strip()[:40] for text in texts if text.strip()] + called


def pairs_are_valid(request: dict[str, Any]) -> None:
    """Every call has one result, after it."""
    made: list[str] = []
    given: list[str] = []
    for item in request.get("messages", request.get("input", [])):
        content = item.get("content")
        blocks = [item, *(item.get("tool_calls") or []), *(content if isinstance(content, list) else [])]
        for block in blocks:
            match block:
                case {"type": "tool_use" | "function", "id": name} | {"type": "function_call", "call_id": name}:
                    made.append(name)
                case {"type": "tool_result", "tool_use_id": name} | {"type": "function_call_output", "call_id": name}:
                    assert name in made
                    given.append(name)
                case {"role": "tool", "tool_call_id": name}:
                    assert name in made
                    given.append(name)
                case _:
                    pass
    assert sorted(made) == sorted(given)


# ---- Codex with a provider of the user's own


@pytest.mark.parametrize("knows", ["a new home", "a home of Codex"])
async def test_codex_takes_over_with_the_users_own_provider(knows: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*[says("Hello.")] * (knows == "a home of Codex"), says("It still is."), is_step=is_step) as served:
        chosen = configure_codex(around, served)
        if knows == "a home of Codex":  # one that has a database of its sessions, which says more
            before = await Session.create(around.store, "codex", msgspec.structs.replace(chosen))
            await send_and_wait(before, "Hello?")
            await before.close()
        session = await begun(around, served)
        await session.switch("codex", chosen)
        await send_and_wait(session, "And now?")
        await session.close()
    assert "the lynx is in the garden" in json.dumps(served.asked[-1]["input"])
    assert [event.payload.to_agent_id for event in around.store[session.id].read() if isinstance(event, AgentSwitch)] == ["codex"]
    assert BEGINNING[:40] not in json.dumps(served.asked[-1]["input"])  # it read the file, and did not need the text


async def test_an_agent_that_refuses_the_file_of_the_conversation_gets_it_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Surroundings(tmp_path)
    monkeypatch.setattr(codex_driver, "model_provider", lambda options, home: "openai")  # as if it were configured out of our sight
    with model(says("It still is."), is_step=is_step) as served:
        session = await begun(around, served)
        await session.switch("codex", configure_codex(around, served))
        await send_and_wait(session, "And now?")
        await session.close()
    assert "the lynx is in the garden" in json.dumps(served.asked[-1]["input"])
    (rollout,) = rollouts(around)
    assert str(session.state.agent_session_id) in rollout.name  # it is that of the session that Codex began itself


# ---- when it goes wrong


@pytest.mark.parametrize("agent", ["claude", "codex", "codex with a bad setting", "acp"])
async def test_a_switch_that_fails_keeps_the_agent_and_leaves_no_file(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(is_step=is_step) as served:
        session = await begun(around, served)
        files = set(around.home.rglob("*.jsonl"))
        if agent == "codex with a bad setting":
            agent, chosen = "codex", configure_codex(around, served, provider="nowhere")
        else:
            chosen = Options(program="/bin/false", cwd=str(around.work), env=around.env)
        with pytest.raises(AgentNotStarted):
            await session.switch(agent, chosen)
        assert set(around.home.rglob("*.jsonl")) == files
        assert (session.agent.name, session.state.init is not None and session.state.init.agent_id) == ("demo", "demo")
        await send_and_wait(session, "say still here")
        log = list(around.store[session.id].read())
        assert not [event for event in log if isinstance(event, AgentSwitch)]
        assert [event.payload.text for event in log if event.type == "assistant_done"][-1] == "still here"
        assert session.options.resume is not None and session.options.resume.startswith("demo-")
        await session.close()


async def test_a_switch_to_an_agent_that_is_missing_does_not_disturb_the_one_that_runs(tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(is_step=is_step) as served:
        session = await begun(around, served)
        with pytest.raises(AgentNotStarted, match="not installed"):
            await session.switch("gemini", Options(cwd=str(around.work), env=around.env | {"PATH": str(around.work)}))
        assert session.running
        await session.close()


FORGETS = ("claude", "codex")


@pytest.mark.parametrize("agent", FORGETS)
async def test_an_agent_that_cannot_resume_its_session_is_offered_the_conversation(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(says("The lynx is in the garden."), says("It still is."), is_step=is_step) as served:
        chosen = options(agent, served, around)
        session = await Session.create(around.store, agent, chosen)
        await send_and_wait(session, "Where is the lynx?")
        await session.close()
        for place in (".claude/projects", ".codex/sessions"):
            shutil.rmtree(around.home / place, ignore_errors=True)
        session = await Session.open(around.store, session.id, env=chosen.env)
        with pytest.raises(ResumeFailed, match=f"hansard run {agent} --session {session.id} --hand-off"):
            await session.send("And now?")
        await session.configure_agent(agent, hand_off=True)
        await send_and_wait(session, "And now?")
        await session.close()
    assert knows_before(agent, served, list(around.store[session.id].read()))


async def begun(around: Surroundings, served: Model) -> Session:
    """A conversation with the demo agent."""
    session = await Session.create(around.store, "demo", options("demo", served, around))
    await send_and_wait(session, "say the lynx is in the garden")
    return session


def rollouts(around: Surroundings) -> list[Path]:
    return sorted((around.home / ".codex").rglob("rollout-*.jsonl"))
