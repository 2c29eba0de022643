"""Switching to another agent: with the user's own settings, when it goes wrong, and when an agent cannot resume its own session."""

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
from hansard.events.replays import HANDOFF_BEGINNING
from hansard.projections import project
from tests.driving.model import Model, is_conversation, model, says
from tests.driving.puppet import AcpChild, Puppet
from tests.driving.surroundings import QUIET_CLAUDE, Surroundings, claude_program, idle, program

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

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


async def send_and_wait(session: Session, text: str) -> None:
    await asyncio.wait_for(session.send(text), 120)
    await idle(session)


def knows_before(second: str, served: Model, log: list[Event]) -> bool:
    """The facts of the conversation, in order, are in what the second agent's model was sent (or the demo agent was shown)."""
    switched = next(event.seq for event in log if isinstance(event, AgentSwitch))
    before = [fact for message in project([event for event in log if event.seq < switched], "openai-messages") for fact in facts(message)]
    if second == "demo":
        shown = next(event for event in reversed(log) if event.type == "user_message").payload.content[0].text
    else:
        shown = json.dumps(served.asked[-1].get("messages", served.asked[-1].get("input")), ensure_ascii=False)
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


# ---- Codex with a provider of the user's own


@pytest.mark.parametrize("knows", ["a new home", "a home of Codex"])
async def test_codex_takes_over_with_the_users_own_provider(knows: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(*[says("Hello.")] * (knows == "a home of Codex"), says("It still is."), is_step=is_conversation) as served:
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
    assert HANDOFF_BEGINNING[:40] not in json.dumps(served.asked[-1]["input"])  # it read the file, and did not need the text


async def test_an_agent_that_refuses_the_file_of_the_conversation_gets_it_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = Surroundings(tmp_path)
    monkeypatch.setattr(codex_driver, "model_provider", lambda options, home: "openai")  # as if it were configured out of our sight
    with model(says("It still is."), is_step=is_conversation) as served:
        session = await begun(around, served)
        await session.switch("codex", configure_codex(around, served))
        await send_and_wait(session, "And now?")
        await session.close()
    assert "the lynx is in the garden" in json.dumps(served.asked[-1]["input"])
    (rollout,) = rollouts(around)
    assert str(session.state.agent_session_id) in rollout.name  # it is that of the session that Codex began itself


# ---- an agent that gets the conversation as text


async def test_the_conversation_is_a_text_before_the_message_and_no_attachment(tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    async with Puppet(tmp_path, AcpChild) as puppet:
        with model(is_step=is_conversation) as served:
            session = await begun(around, served)
        name, chosen = puppet.agent()
        chosen.cwd = str(around.work)
        switching = asyncio.create_task(session.switch(name, chosen))
        await puppet.begins()
        can = {"promptCapabilities": {"embeddedContext": True}}  # agents put a resource after the message, or into a file
        await puppet.answers("initialize", result={"protocolVersion": 1, "agentCapabilities": can})
        await puppet.answers("session/new", result={"sessionId": "puppet"})
        await switching
        await session.send("And now?")
        asked = await puppet.hears(lambda frame: frame.get("method") == "session/prompt")
        await session.close()
    before, message = asked["params"]["prompt"]
    assert before["text"].startswith(HANDOFF_BEGINNING) and "the lynx is in the garden" in before["text"]
    assert message == {"type": "text", "text": "And now?"}


# ---- when it goes wrong


@pytest.mark.parametrize("agent", ["claude", "codex", "codex with a bad setting", "acp"])
async def test_a_switch_that_fails_keeps_the_agent_and_leaves_no_file(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(is_step=is_conversation) as served:
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
    with model(is_step=is_conversation) as served:
        session = await begun(around, served)
        with pytest.raises(AgentNotStarted, match="not installed"):
            await session.switch("gemini", Options(cwd=str(around.work), env=around.env | {"PATH": str(around.work)}))
        assert session.running
        await session.close()


FORGETS = ("claude", "codex")


@pytest.mark.parametrize("agent", FORGETS)
async def test_an_agent_that_cannot_resume_its_session_is_offered_the_conversation(agent: str, tmp_path: Path) -> None:
    around = Surroundings(tmp_path)
    with model(says("The lynx is in the garden."), says("It still is."), is_step=is_conversation) as served:
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
