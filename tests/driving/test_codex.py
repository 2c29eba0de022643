"""Codex, the real program, against the scripted model: its app-server, and one turn per process."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hansard.agents import agent_for
from hansard.agents.base import Agent, Options
from hansard.agents.session import Session
from hansard.agents.transport import Output, Transport, TransportEvent
from hansard.errors import AgentNotStarted, Refused, UsageError
from hansard.events import Event, Process, control_request
from hansard.events.content import ImageBlock, TextBlock
from hansard.events.originals import embed
from hansard.projections import project
from tests.driving.capabilities import shows
from tests.driving.model import Call, Model, Step, Text, calls, model, says
from tests.driving.surroundings import PATIENCE, Surroundings, idle, program, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

BOTH = pytest.mark.parametrize("agent", ["codex", "codex-exec"])
NO_RETRIES = ["--config=model_providers.hansard.request_max_retries=0", "--config=model_providers.hansard.stream_max_retries=0"]
ASKING = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="


class Stage(Surroundings):
    """Surroundings with a model in them."""

    def __init__(self, folder: Path, script: Model) -> None:
        super().__init__(folder)
        self.model = script
        self.env["OPENAI_API_KEY"] = "scripted"

    def options(self, **more: Any) -> Options:
        """Codex may do everything unless it is told otherwise."""
        given: dict[str, Any] = {"model": "gpt-5.5", "permission_mode": "full-access", **more}
        found = program("@openai/codex-linux-*/vendor/*/bin/codex")
        return Options(program=found, base_url=f"{self.model.url}/v1", arguments=NO_RETRIES, cwd=str(self.work), env=self.env, **given)

    async def codex(self, agent: str, **options: Any) -> Session:
        """A session with Codex."""
        return await self.session(agent, self.options(**options))

    def request_text(self, number: int) -> str:
        """What the model was sent, as text."""
        return json.dumps(self.model.asked[number]["input"])


class Tapped:
    """A link to an agent, and every byte that went over it."""

    heard, sent = b"", b""

    def __init__(self, link: Transport) -> None:
        self._link = link
        self.started = link.started
        self.interrupt, self.stop = link.interrupt, link.stop

    async def __aiter__(self) -> AsyncIterator[TransportEvent]:
        async for piece in self._link:
            if isinstance(piece, Output) and not piece.is_stderr:
                Tapped.heard += piece.data
            yield piece

    async def send(self, data: bytes) -> None:
        Tapped.sent += data
        await self._link.send(data)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    connect = Agent.connect

    async def tapped(self: Agent, options: Options) -> Transport:
        return Tapped(await connect(self, options))

    monkeypatch.setattr(Agent, "connect", tapped)
    Tapped.heard = Tapped.sent = b""

    def make(script: Model) -> Stage:
        return Stage(tmp_path, script)

    return make


def log(session: Session) -> list[Event]:
    return list(session.recorder.log.read())


def payloads(session: Session, kind: str) -> list[Any]:
    return [event.payload for event in log(session) if event.type == kind]


def ends(session: Session) -> list[str]:
    return [end.status for end in payloads(session, "turn_end")]


def texts(session: Session) -> list[str]:
    return [said.text for said in payloads(session, "assistant_done")]


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for something that no event tells of."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


def check(session: Session) -> None:
    """What holds of every session that is closed: its turns are whole, nothing is open, the process ended, no frame is a puzzle."""
    events = log(session)
    turns = [event.type for event in events if event.type in ("turn_start", "turn_end")]
    assert turns == ["turn_start", "turn_end"] * (len(turns) // 2)
    assert not session.state.turns
    assert not session.state.asked
    assert not session.state.calls
    assert [event.type for event in events if event.type == "raw"] == []
    lives = [event.payload.event for event in events if isinstance(event, Process) and event.payload.event != "stderr"]
    assert lives == ["started", "exited"] * (len(lives) // 2)
    for event in events:
        event.original = event.original and embed(event.original, session.recorder.log.get_blob)
    assert b"".join(project(events, "native", direction="in")) == Tapped.heard
    assert b"".join(project(events, "native", direction="out")) == Tapped.sent


# ---- turns


@BOTH
async def test_system_prompts_hold_in_the_next_process(stage: Callable[..., Stage], agent: str) -> None:
    with model(says("Blue."), says("You said blue."), says("Still blue.")) as script:
        on = stage(script)
        session = await on.codex(agent, system_prompt='You are "Blue"\n= here', append_system_prompt='Speak "plainly"\n= always')
        await session.send("My colour is blue")
        await idle(session)
        await session.close()
        again = await Session.open(on.store, session.id, session.options.env)
        await again.send("Which colour?")
        await idle(again)
        await again.send("Sure?")
        await idle(again)
        await again.close()
    assert "My colour is blue" in on.request_text(1)
    assert all(words in on.request_text(2) for words in ("My colour is blue", "Which colour?", "You said blue."))
    assert all(request["input"][0]["content"][0]["text"] == 'You are "Blue"\n= here' for request in script.asked)
    assert 'Speak \\"plainly\\"\\n= always' in on.request_text(0)
    assert ends(again) == ["completed"] * 3
    assert len({init.provider_session_id for init in payloads(again, "session_init")}) == 1
    check(again)


@BOTH
async def test_it_takes_over_when_nothing_was_said(stage: Callable[..., Stage], agent: str) -> None:
    with model(says("Hello.")) as script:
        on = stage(script)
        session = await on.session("demo", Options())
        await session.switch(agent, on.options())
        await session.send("Hello?")
        await idle(session)
        await session.close()
    assert texts(session) == ["Hello."]
    check(session)


@BOTH
async def test_a_message_waits_while_a_turn_is_open(stage: Callable[..., Stage], agent: str) -> None:
    with model(calls("exec_command", {"cmd": "echo one"}), says("First"), says("Second")) as script:
        on = stage(script)
        session = await on.codex(agent)
        await session.send("one")
        assert (await session.send("two")).type == "queue_update"
        await idle(session)
        await session.close()
    assert [said.text for said in payloads(session, "user_message")] == ["one", "two"]
    assert texts(session) == ["First", "Second"]
    assert [change.action for change in payloads(session, "queue_update")] == ["queued", "sent"]
    check(session)


async def test_an_interrupt_before_the_turn_has_a_name(stage: Callable[..., Stage]) -> None:
    with model(Step([Text("A long story")], hang=True)) as script:
        session = await stage(script).codex("codex")
        await session.start()
        await session.send("Tell me")
        await session.interrupt()
        await idle(session)
        await session.close()
    assert ends(session) == ["interrupted"]
    assert not payloads(session, "error")
    check(session)


async def test_a_message_steers_the_turn(stage: Callable[..., Stage]) -> None:
    with model(calls("exec_command", {"cmd": "touch here; while test -e here; do sleep 0.02; done"}), says("Green then.")) as script:
        on = stage(script)
        session = await on.codex("codex")
        await session.send("Paint it red")
        await eventually((on.work / "here").exists)
        await session.send("No, green", steer=True)
        (on.work / "here").unlink()
        await idle(session)
        await session.close()
    assert "No, green" in on.request_text(1)
    assert ends(session) == ["completed"]
    check(session)


async def test_an_image_reaches_the_model(stage: Callable[..., Stage]) -> None:
    with model(says("A dot.")) as script:
        on = stage(script)
        session = await on.codex("codex")
        await session.send("Look", [TextBlock(text="Look"), ImageBlock(media_type="image/png", data=DOT)])
        await idle(session)
        await session.close()
    assert DOT[:40] in on.request_text(0)
    assert ends(session) == ["completed"]
    check(session)


async def test_exec_takes_no_image(stage: Callable[..., Stage]) -> None:
    with model() as script:
        session = await stage(script).codex("codex-exec")
        with pytest.raises(Refused, match="does not take pictures"):
            await session.send("Look", [ImageBlock(media_type="image/png", data=DOT)])
        await session.close()
    assert [problem.error_source for problem in payloads(session, "error")] == ["hansard"]


# ---- questions


async def test_a_request_that_is_canceled_ends_the_turn(stage: Callable[..., Stage]) -> None:
    with model(calls("exec_command", {"cmd": "echo made > made", **ASKING})) as script:
        on = stage(script)
        session = await on.codex("codex", permission_mode="read-only")
        await session.send("Make it")
        await until(session, lambda past: bool(past.asked))
        [asked] = payloads(session, "permission_request")
        assert "echo made" in json.dumps(asked.input)
        await session.decide(asked.request_id, "cancelled", input_hash=asked.input_hash, by="me")
        await idle(session)
        await session.close()
    assert not (on.work / "made").exists()
    assert [reply.decision for reply in payloads(session, "permission_response")] == ["cancelled"]
    assert ends(session) == ["interrupted"]
    check(session)


async def test_a_question_to_the_person(stage: Callable[..., Stage]) -> None:
    questions = [
        {
            "id": "how",
            "header": "How",
            "question": "How far?",
            "options": [{"label": "Near", "description": "n"}, {"label": "Far", "description": "f"}],
        }
    ]
    with model(calls("request_user_input", {"questions": questions}), says("Near it is.")) as script:
        on = stage(script)
        session = await on.codex("codex")
        await session.configure("set_mode", mode_id="plan")
        await session.send("Plan it")
        await until(session, lambda past: bool(past.asked))
        [asked] = payloads(session, "question")
        await session.answer(asked.request_id, {"how": {"answers": ["Near"]}})
        await idle(session)
        await session.close()
    assert "Near" in on.request_text(1)
    assert session.state.mode == "plan"
    check(session)


# ---- settings


@shows("setting", agent="codex")
async def test_a_model_and_a_permission_mode_are_changed_and_a_wrong_one_is_refused(stage: Callable[..., Stage]) -> None:
    with model(says("One."), says("Two.")) as script:
        on = stage(script)
        session = await on.codex("codex")
        await session.send("one")
        await idle(session)
        await session.configure("set_model", model="gpt-5.4")
        await session.configure("set_permission_mode", permission_mode="read-only")
        await until(session, lambda past: (past.model, past.permission_mode) == ("gpt-5.4", "on-request"))  # in Codex's words
        with pytest.raises(Refused):
            await session.configure("set_permission_mode", permission_mode="anything goes")
        assert (session.state.model, session.state.permission_mode) == ("gpt-5.4", "on-request")
        await session.send("two")
        await idle(session)
        await session.close()
    assert [request["model"] for request in script.asked] == ["gpt-5.5", "gpt-5.4"]
    check(session)


@shows("setting", agent="codex-exec")
async def test_exec_gets_another_model_with_its_next_turn(stage: Callable[..., Stage]) -> None:
    with model(says("One."), says("Two.")) as script:
        session = await stage(script).codex("codex-exec")
        await session.send("one")
        await idle(session)
        await session.configure("set_model", model="gpt-5.4")
        with pytest.raises(Refused, match="nobody can answer"):
            await session.configure("set_permission_mode", permission_mode="on-request")
        await session.send("two")
        await idle(session)
        await session.close()
    assert [request["model"] for request in script.asked] == ["gpt-5.5", "gpt-5.4"]
    check(session)


_SERVER = """
import json, sys
def say(request, **result): print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
for request in map(json.loads, sys.stdin):
    if request["method"] == "initialize":
        version, about = request["params"]["protocolVersion"], {"name": "s", "version": "1"}
        say(request, protocolVersion=version, capabilities={"tools": {}}, serverInfo=about)
    elif request["method"] == "tools/list":
        say(request, tools=[{"name": "shout", "description": "Shouts", "inputSchema": {"type": "object"}}])
    elif request["method"] == "tools/call" and sys.argv[1] == "ask":
        form = {"type": "object", "properties": {"size": {"type": "string"}}}
        asked = {"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": form}}
        print(json.dumps(asked), flush=True)
        say(request, content=[{"type": "text", "text": sys.stdin.readline()}])
    elif request["method"] == "tools/call":
        say(request, content=[{"type": "text", "text": sys.argv[1]}])
"""


SHOUT = Step([Call("shout", {}, namespace="mcp__loud_one")])


def loud_one(word: str) -> dict[str, Any]:
    return {"loud_one": {"command": sys.executable, "args": ["-c", _SERVER, word]}}


@BOTH
async def test_a_tool_of_an_mcp_server(stage: Callable[..., Stage], agent: str) -> None:
    word = 'a "b" = [c], \\d\nLOUD'
    with model(SHOUT, says("It shouted.")) as script:
        session = await stage(script).codex(agent, mcp_servers=loud_one(word))
        await session.send("Shout")
        await idle(session)
        await session.close()
    [call], [result] = payloads(session, "tool_call"), payloads(session, "tool_result")
    assert (call.tool_name, call.server) == ("shout", "loud_one")
    assert json.dumps(word)[1:-1] in json.dumps(result.result)
    check(session)


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_question_of_an_mcp_server(stage: Callable[..., Stage], action: str) -> None:
    with model(SHOUT, says("Fine.")) as script:
        session = await stage(script).codex("codex", permission_mode="on-request", mcp_servers=loud_one("ask"))
        await session.send("Shout")
        await until(session, lambda past: bool(past.asked))
        for asked in payloads(session, "permission_request"):  # whether the tool may be called at all
            await session.decide(asked.request_id, "allow")
        await until(session, lambda _: bool(payloads(session, "question")))
        [question] = payloads(session, "question")
        assert (question.message, question.server) == ("Which?", "loud_one")
        await session.answer(question.request_id, {"size": "large"} if action == "accept" else None, action)
        await idle(session)
        await session.close()
    [result] = payloads(session, "tool_result")
    assert (action in json.dumps(result.result), "large" in json.dumps(result.result)) == (True, action == "accept")
    assert ends(session) == ["completed"]
    check(session)


# ---- how it is started


async def test_what_it_cannot_do_is_refused_when_it_starts(tmp_path: Path) -> None:
    on = Surroundings(tmp_path)
    for wrong in (Options(permission_mode="yolo"), Options(denied_tools=["shell"])):
        wrong.program = sys.executable
        session = await on.session("codex", wrong)
        with pytest.raises(UsageError if wrong.permission_mode else Refused):
            await session.start()
        assert [problem.error_source for problem in payloads(session, "error")] == ["hansard"]
        await session.close()


def test_it_is_told_the_time_and_nothing_else() -> None:
    def reply(method: str) -> Any:
        return agent_for("codex").reply(control_request(method=method, request_id="1"), Options())

    assert isinstance(reply("currentTime/read").result["currentTimeAt"], int)
    assert reply("attestation/generate") is None


async def test_a_thread_that_is_not_there_is_told(stage: Callable[..., Stage]) -> None:
    with model() as script:
        session = await stage(script).codex("codex", resume="01a1e2a3-0000-7000-8000-000000000000")
        with pytest.raises(AgentNotStarted, match="does not begin"):
            await session.start()
        await session.close()
    check(session)


@pytest.mark.parametrize("word", ["-x", "a=b", 'q"\\', "\n\t\x7f\u2028", "']", "${HOME} `id`"])
def test_a_setting_is_one_argument_and_the_same_value_in_toml(word: str) -> None:
    servers = {word: {"command": word, "args": [word], "env": {"A": word}, "startup_timeout_sec": 3, "enabled": True, "cwd": None}}
    argv = agent_for("codex-exec").argv(Options(mcp_servers=servers, append_system_prompt=word, model=word, base_url=word))
    assert argv[:2] == ["exec", "-"]
    settings = tomllib.loads("\n".join(argument.removeprefix("--config=") for argument in argv if argument.startswith("--config=")))
    said = {key: setting for key, setting in servers[word].items() if setting is not None}
    assert settings["mcp_servers"] == {word: said}
    assert (settings["developer_instructions"], settings["model"], settings["model_providers"]["hansard"]["base_url"]) == (word, word, word)
    assert all(argument.startswith("--") for argument in argv[2:])
