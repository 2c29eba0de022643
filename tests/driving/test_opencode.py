"""OpenCode's real server, driven against a scripted model; and what becomes of a server that behaves badly."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard.agents.base import Options
from hansard.agents.drivers.opencode import OpenCode, configuration, names
from hansard.agents.process import Command
from hansard.agents.session import Session
from hansard.errors import AgentNotStarted, Refused, UsageError
from hansard.events import (
    AssistantDone,
    ConfigurationChange,
    Error,
    Event,
    Process,
    SessionInit,
    ThinkingDone,
    ToolResult,
    TurnEnd,
    UserMessage,
)
from hansard.events.content import ImageBlock, SlashCommandBlock, TextBlock
from hansard.testing import check_chunks, check_closed, check_order, check_questions, check_tools, check_turns, verbatim
from tests.driving.capabilities import shows
from tests.driving.model import SOON, Model, Step, Text, Thinking, calls, model, says
from tests.driving.surroundings import Surroundings, idle, program, until

pytestmark = pytest.mark.anyio

QUIET: dict[str, str] = dict.fromkeys(
    (
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_SHARE",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        "OPENCODE_PURE",
    ),
    "1",
)
"""OpenCode asks nothing of the internet."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture."""
MCP = Path(__file__).with_name("mcp_echo.py")


def options(server: Model, **more: Any) -> Options:
    """OpenCode with a provider that is the scripted model, asking before it runs something."""
    known = {"limit": {"context": 200000, "output": 8192}, "reasoning": True, "attachment": True, "tool_call": True}
    known["modalities"] = {"input": ["text", "image"], "output": ["text"]}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": "dummy-key"},
        "models": {"one": known, "two": known, "small": {}},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/one",
        "small_model": "scripted/small",
        "provider": {"scripted": provider},
        "permission": {"bash": "ask"},
        "command": {"shout": {"template": "Shout: $ARGUMENTS", "description": "Say it loud"}},
    }
    env = {**QUIET, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    return Options(program=program("opencode-linux-x64/bin/opencode"), env=env, **more)


class Wire:
    """Listens in on the link: every byte of the wire, both ways."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard, self.sent = b"", b""
        connect = OpenCode.connect

        async def listening(agent: OpenCode, how: Options) -> Any:
            link: Any = await connect(agent, how)
            put, send = link._pieces.put, link.send

            async def hear(piece: Any) -> None:
                if not getattr(piece, "is_stderr", True):
                    self.heard += piece.data
                await put(piece)

            async def tell(data: bytes) -> None:
                self.sent += data
                await send(data)

            link._pieces.put, link.send = hear, tell
            return link

        monkeypatch.setattr(OpenCode, "connect", listening)

    def is_in(self, events: list[Event]) -> None:
        kept = [event for event in events if event.original is not None]
        assert b"".join(verbatim(event) for event in kept if event.direction != "out") == self.heard
        assert b"".join(verbatim(event) for event in kept if event.direction == "out") == self.sent


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return Wire(monkeypatch)


@pytest.fixture
def place(tmp_path: Path, wire: Wire) -> Iterator[Surroundings]:
    """In the end every byte must be on the record."""
    here = Surroundings(tmp_path)
    yield here
    wire.is_in([event for info in here.store.sessions() for event in here.store[info.id].read()])


def log(session: Session) -> list[Event]:
    """The log, with what must be true of every log."""
    events = list(session.recorder.log.read())
    for check in (check_order, check_closed, check_chunks, check_tools, check_questions):
        check(events)
    check_turns([event for event in events if event.source is not None])  # what hansard itself says is in no turn
    return events


def ends(events: list[Event]) -> list[str]:
    return [event.payload.status for event in events if isinstance(event, TurnEnd)]


def texts(events: list[Event]) -> list[str]:
    return [event.payload.text for event in events if isinstance(event, AssistantDone)]


@pytest.mark.slow
async def test_turns_with_thinking_and_a_queue(place: Surroundings, wire: Wire):
    with model(Step([Thinking("Let me see."), Text("Hello, first.")]), says("Hello, second.")) as server:
        session = await place.session("opencode", options(server))
        await session.send("One")
        await session.send("Two")
        assert [waiting.text for waiting in session.state.queue.values()] == ["Two"]
        await idle(session)
        await session.close()
    events = log(session)
    assert [event.payload.text for event in events if isinstance(event, UserMessage)] == ["One", "Two"]
    assert [event.payload.text for event in events if isinstance(event, ThinkingDone)] == ["Let me see."]
    assert texts(events) == ["Hello, first.", "Hello, second."]
    assert ends(events) == ["completed", "completed"]
    (introduced,) = (event for event in events if isinstance(event, SessionInit))
    assert {"modelId": "scripted/two", "name": "two"} in (introduced.payload.models or [])
    assert [mode["id"] for mode in introduced.payload.modes or []] == ["build", "plan"]
    assert "shout" in [command["name"] for command in session.state.slash_commands or []]
    assert [event.payload.event for event in events if isinstance(event, Process)][-1] == "exited"
    assert b"dummy-key" not in wire.heard + wire.sent


@pytest.mark.slow
@shows("setting", agent="opencode")
async def test_settings_go_along_with_the_next_prompt_and_a_picture_too(place: Surroundings):
    with model(says("As you like."), says("A dot.")) as server:
        session = await place.session("opencode", options(server, append_system_prompt="Speak like a pirate."))
        await session.configure("set_model", model="scripted/two")
        await session.configure("set_mode", mode_id="plan")
        with pytest.raises(Refused, match="no model 'scripted/ten'"):
            await session.configure("set_model", model="scripted/ten")
        with pytest.raises(Refused, match="no agent 'boss'"):
            await session.configure("set_mode", mode_id="boss")
        await session.send("Which model is this?")
        await idle(session)
        for picture in (PIXEL, PIXEL[:44]):
            await session.send("What is this?", [TextBlock(text="What is this?"), ImageBlock(media_type="image/png", data=picture)])
            await idle(session)
        await session.close()
    events = log(session)
    assert ends(events) == ["completed", "completed", "error"]
    assert [request["model"] for request in server.asked] == ["two", "two"]
    assert "Speak like a pirate." in json.dumps(server.asked[0]["system"])
    assert PIXEL in json.dumps(server.asked[1]["messages"])
    changes = [event for event in events if isinstance(event, ConfigurationChange) and event.payload.subtype != "available_commands_update"]
    unsent = [event.payload.subtype for event in changes if event.frame is None]
    assert unsent == ["set_system_prompt", "set_model", "set_mode", "refused", "refused"]
    confirmed = {event.payload.model or event.payload.mode_id for event in changes if event.frame is not None}
    assert confirmed == {"scripted/two", "plan"}
    assert [event.payload.message for event in events if isinstance(event, Error)] == [
        "OpenCode has no model 'scripted/ten'",
        "OpenCode has no agent 'boss'",
        "BadRequest",  # half a picture
    ]


@pytest.mark.slow
async def test_what_was_set_and_not_sent_yet_holds_in_the_next_process(place: Surroundings):
    with model(says("As you like.")) as server:
        how = options(server)
        session = await place.session("opencode", how)
        await session.configure("set_model", model="scripted/two")
        await session.configure("set_mode", mode_id="plan")
        await session.close()
        again = await Session.open(place.store, session.id, env=how.env)
        await again.send("Which model is this?")
        await idle(again)
        await again.close()
    assert ends(log(again)) == ["completed"]
    assert server.asked[0]["model"] == "two"
    assert again.state.mode == "plan"


@pytest.mark.slow
async def test_a_command_a_question_and_a_tool_of_an_mcp_server(place: Surroundings):
    ask = {"question": "Which?", "header": "Pick", "options": [{"label": label, "description": label} for label in ("left", "right")]}
    script = [says("LOUD"), calls("question", {"questions": [ask]}), calls("echo_say", {"text": "marmalade"}), says("Done.")]
    with model(*script) as server:
        how = options(server, mcp_servers={"echo": {"command": sys.executable, "args": [str(MCP)]}}, denied_tools=["webfetch"])
        session = await place.session("opencode", how)
        await session.send("/shout hello", [SlashCommandBlock(name="shout", args="hello")])
        await idle(session)
        await session.send("Ask me, then echo")
        await until(session, lambda past: bool(past.asked))
        (request_id,) = session.state.asked
        await session.answer(request_id, [["right"]])
        await idle(session)
        await session.close()
    events = log(session)
    assert ends(events) == ["completed", "completed"]
    assert "Shout: hello" in json.dumps(server.asked[0]["messages"])
    offered = [tool["name"] for tool in server.asked[0]["tools"]]
    assert "echo_say" in offered and "webfetch" not in offered
    results = [event.payload for event in events if isinstance(event, ToolResult)]
    assert "right" in str(results[0].content)
    assert "you said marmalade" in str(results[1].content)


# ---- a server that behaves badly

STUB = """#!{python}
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
{behaviour}
class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def whole(self, body, status=200):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path == "/event":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'data: {{"id":"evt_1","type":"server.connected","properties":{{}}}}\\n\\n')
            self.wfile.flush()
            stream(self)
            self.close_connection = True
        else:
            self.whole(b'{{"providers":[]}}' if self.path == "/config/providers" else b"[]")
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        post(self)
server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print("opencode server listening on http://127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
"""
SESSION = '{"id": "ses_1", "title": "t", "version": "1", "directory": "/", "time": {"created": 1, "updated": 1}}'
MADE = f"""
broken = threading.Event()
def stream(to): broken.wait()
def post(to):
    if to.path == "/session": to.whole({SESSION.encode()!r})
    else: prompted(to)
"""


async def stub(place: Surroundings, behaviour: str) -> Session:
    path = place.home / "opencode"
    path.write_text(STUB.format(python=sys.executable, behaviour=behaviour))
    path.chmod(0o700)
    return await place.session("opencode", Options(program=str(path)))


async def test_a_server_that_does_not_start_is_told_with_its_words(place: Surroundings):
    session = await stub(place, "print('no such config', file=sys.stderr); sys.exit(3)")
    with pytest.raises(AgentNotStarted):
        await session.start()
    await session.close()
    events = log(session)
    assert [event.payload.exit_code for event in events if isinstance(event, Process) and event.payload.event == "exited"] == [3]
    assert any("no such config" in (event.payload.text or "") for event in events if isinstance(event, Process))


async def test_a_server_that_makes_no_session_does_not_begin(place: Surroundings):
    session = await stub(place, "def stream(to): time.sleep(60)\ndef post(to): to.whole(b'oh no', 500)")
    with pytest.raises(AgentNotStarted, match="oh no"):
        await session.start()
    await session.close()
    assert not session.running


async def test_the_end_of_the_event_stream_is_the_visible_end_of_the_turn(place: Surroundings):
    session = await stub(place, MADE + "def prompted(to): to.whole(b'', 200); broken.set()")
    await session.send("Hello")
    await idle(session)
    events = log(session)
    assert ends(events) == ["error"]
    assert any("event stream ended" in event.payload.message for event in events if isinstance(event, Error))
    await session.close()


async def test_a_prompt_that_is_turned_away_or_never_answered_ends_its_turn(place: Surroundings):
    behaviour = MADE + 'said = []\ndef prompted(to):\n    said.append(1)\n    if len(said) == 1: to.whole(b\'{"message": "no"}\', 400)'
    session = await stub(place, behaviour + "\n    else: to.close_connection = True")
    for words in ("One", "Two"):
        await session.send(words)
        await idle(session)
    await session.close()
    events = log(session)
    assert ends(events) == ["error", "error"]
    first, second = (event.payload for event in events if isinstance(event, Error))
    assert (first.message, first.status) == ("no", 400)
    assert (second.status, "there was no answer" in second.message) == (502, True)


async def test_nothing_of_a_server_is_left(place: Surroundings):
    session = await stub(place, MADE + "def prompted(to): to.whole(b'')")
    await session.start()
    (started,) = (event for event in log(session) if isinstance(event, Process) and event.payload.event == "started")
    await asyncio.gather(session.stop(), session.stop())
    with pytest.raises(ProcessLookupError):
        os.kill(started.payload.pid or 0, 0)
    await session.close()


def configured(there: str, **asked: Any) -> Any:
    command = Command(argv=["opencode"], cwd="/", env={"OPENCODE_CONFIG_CONTENT": there})
    made = configuration(command, Options(**asked))
    return None if made is None else json.loads(made)


def test_servers_and_addresses_are_added_to_the_settings_that_are_there():
    there = '{"theme": "dark", "provider": {"p": {"options": {"apiKey": "k"}}}, "mcp": {"a": {"type": "local"}}}'
    local, remote = {"command": "x", "args": ["-y"], "env": {"K": "v"}}, {"url": "http://h/", "headers": {"H": "v"}}
    made = configured(there, mcp_servers={"b": local, "c": remote}, base_url="http://b/", model="p/m")
    assert made == {
        "theme": "dark",
        "provider": {"p": {"options": {"apiKey": "k", "baseURL": "http://b/"}, "models": {"m": {}}}},
        "mcp": {
            "a": {"type": "local"},
            "b": {"type": "local", "command": ["x", "-y"], "environment": {"K": "v"}, "enabled": True},
            "c": {"type": "remote", "url": "http://h/", "headers": {"H": "v"}, "enabled": True},
        },
    }
    assert configured("not even JSON") is None


@pytest.mark.parametrize(
    ("there", "asked"),
    [("{}", {"base_url": "http://b/"}), ("{}", {"base_url": "http://b/", "model": "m"}), ("no JSON", {"system_prompt": "x"})],
)
def test_settings_that_cannot_be_are_refused(there: str, asked: dict[str, Any]):
    with pytest.raises(UsageError):
        configured(there, **asked)


def test_of_the_providers_only_the_names_are_kept():
    models = {"m": {"id": "m", "name": "M", "headers": {"x-api-key": "secret"}}}
    told = {"providers": [{"id": "p", "name": "P", "key": "secret", "options": {"apiKey": "secret"}, "models": models}]}
    assert names(told) == {"providers": [{"id": "p", "name": "P", "models": {"m": {"id": "m", "name": "M"}}}]}


@pytest.mark.slow
async def test_a_turn_in_which_it_asks_its_model_again_is_completed(place: Surroundings):
    with model(Step(status=429, headers=SOON), says("Now it works.")) as server:
        session = await place.session("opencode", options(server))
        await session.send("And now?")
        await idle(session)
        await session.close()
    events = log(session)
    assert ends(events) == ["completed"]
    assert [(event.payload.code, event.payload.retryable) for event in events if isinstance(event, Error)] == [("rate_limit", True)]
    assert (texts(events), server.taken) == (["Now it works."], 2)
