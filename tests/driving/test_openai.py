"""Models behind OpenAI's APIs: the scripted model is the API itself, so both sides of each request are seen."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hansard import project
from hansard.agents import agent_for
from hansard.agents.base import Options
from hansard.agents.drivers import openai
from hansard.agents.http_client import Address
from hansard.agents.session import Session
from hansard.errors import AgentNotStarted, Refused, UsageError
from hansard.events import Event
from hansard.events.content import FileBlock, ImageBlock, TextBlock
from tests.driving.capabilities import shows
from tests.driving.model import Model, Step, Text, Thinking, calls, model, says
from tests.driving.surroundings import Surroundings, idle, until
from tests.ports import stable_port

pytestmark = pytest.mark.anyio
AGENTS = ("openai-chat", "openai-responses")
KEY = "sk-test-not-a-real-key"
SMALL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path)


def scripted(*script: Step) -> Any:
    return model(*script, is_step=lambda request: True)


async def open_session(around: Surroundings, agent: str, server: Model, **more: Any) -> Session:
    env = {"OPENAI_API_KEY": KEY}
    return await around.session(agent, Options(model="scripted", base_url=f"{server.url}/v1", env=env, **more))


def log(session: Session) -> list[Event]:
    return list(session.recorder.log.read())


def payloads(session: Session, kind: str) -> list[Any]:
    return [event.payload for event in log(session) if event.type == kind]


def ends(session: Session) -> list[str]:
    return [end.status for end in payloads(session, "turn_end")]


def roles(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Who said what in a request, as text."""
    return [(item.get("role", item.get("type")), _words(item)) for item in request.get("messages", request.get("input", []))]


def _words(item: dict[str, Any]) -> str:
    content = item.get("content", item.get("output", item.get("arguments")))
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


async def turn(session: Session, text: str) -> None:
    await session.send(text)
    await idle(session)


async def test_a_conversation_is_in_each_request_and_each_message_once_on_the_record(agent: str, around: Surroundings) -> None:
    with scripted(Step([Thinking("Let me think."), Text("A heron 🐦 it is.")]), says("Still a heron.")) as server:
        session = await open_session(around, agent, server, system_prompt="Be brief.")
        await turn(session, "Which bird?")
        await turn(session, "Which bird?")
        await session.close()
    assert [said.text for said in payloads(session, "user_message")] == ["Which bird?", "Which bird?"]
    assert [done.text for done in payloads(session, "assistant_done")] == ["A heron 🐦 it is.", "Still a heron."]
    assert [done.text for done in payloads(session, "thinking_done")] == ["Let me think."]
    assert ends(session) == ["completed", "completed"]
    assert [used.usage.input_tokens for used in payloads(session, "usage") if used.scope == "message"] == [10, 10]
    assert [(said, text) for said, text in roles(server.asked[1]) if said != "system"] == [
        ("user", "Which bird?"),
        ("assistant", "A heron 🐦 it is."),
        ("user", "Which bird?"),
    ]
    for request in server.asked:
        system = request.get("instructions") or roles(request)[0][1]
        assert system == "Be brief." and request["model"] == "scripted" and "tools" not in request
    assert not payloads(session, "error") and not payloads(session, "process") and not payloads(session, "raw")


async def test_every_byte_both_ways_is_on_the_record_and_the_key_is_not(agent: str, around: Surroundings) -> None:
    with scripted(says("one"), says("two")) as server:
        session = await open_session(around, agent, server)
        await turn(session, "first")
        await turn(session, "second\nline")
        await session.close()
    sent = b"".join(project(log(session), "native", direction="out"))
    assert [json.loads(line) for line in sent.splitlines()] == server.asked
    heard = b"".join(project(log(session), "native"))
    assert heard.decode() == "".join(server.said)
    assert server.keys == [f"Bearer {KEY}"] * 2
    assert all(KEY.encode() not in path.read_bytes() for path in around.store.root.rglob("*") if path.is_file())


async def test_a_message_in_a_turn_waits(agent: str, around: Surroundings) -> None:
    with scripted(Step([Text("Never finished, this one.")], hang=True), says("two")) as server:
        session = await open_session(around, agent, server)
        await session.send("first")
        await until(session, lambda _: any(chunk.text for chunk in payloads(session, "assistant_chunk")))
        await session.send("second")
        assert list(session.state.queue) and len(server.asked) == 1
        await session.interrupt()
        await idle(session)
        await session.close()
    assert ends(session) == ["interrupted", "completed"]
    assert [change.action for change in payloads(session, "queue_update")] == ["queued", "sent"]


@shows("setting")
async def test_a_model_is_changed_with_the_next_request_and_a_mode_is_refused(agent: str, around: Surroundings) -> None:
    with scripted(says("one"), says("two"), says("three")) as server:
        session = await open_session(around, agent, server)
        await turn(session, "first")
        await session.configure("set_model", model="other")
        with pytest.raises(Refused, match="permission mode"):
            await session.configure("set_permission_mode", permission_mode="yolo")
        await turn(session, "second")
        await session.close()
        again = await Session.open(around.store, session.id)
        await turn(again, "third")
        await again.close()
    assert [request["model"] for request in server.asked] == ["scripted", "other", "other"]
    assert again.state.model == "other"
    assert [problem.error_source for problem in payloads(session, "error")] == ["hansard"]


@pytest.mark.parametrize(
    ("step", "code", "retryable", "wait"),
    [
        pytest.param(Step(status=401), "provider_auth", False, None, id="401"),
        pytest.param(Step(status=429, headers={"Retry-After": "7"}), "rate_limit", True, 7000, id="429"),
        pytest.param(Step(status=500, headers={"retry-after-ms": "250"}), "api_error", True, 250, id="500"),
        pytest.param(Step(status=404), "api_error", False, None, id="404"),
    ],
)
@pytest.mark.slow
async def test_an_error_of_the_api_is_typed(
    agent: str, around: Surroundings, step: Step, code: str, retryable: bool, wait: int | None
) -> None:
    with scripted(step, says("Now it works.")) as server:
        session = await open_session(around, agent, server)
        await turn(session, "first")
        await turn(session, "again")
        await session.close()
    [problem] = payloads(session, "error")
    assert (problem.code, problem.status, problem.retryable, problem.retry_after_ms) == (code, step.status, retryable, wait)
    assert problem.message == f"scripted {step.status}"
    assert ends(session) == ["error", "completed"]
    assert [said.text for said in payloads(session, "user_message")] == ["first", "again"]


async def test_a_call_is_answered_with_an_error_because_no_tools_are_offered(agent: str, around: Surroundings) -> None:
    with scripted(calls("shell", {"command": "ls"}, "call_1"), says("Sorry.")) as server:
        session = await open_session(around, agent, server)
        await turn(session, "List the files.")
        await turn(session, "You have no tools.")
        await session.close()
    [call], [result] = payloads(session, "tool_call"), payloads(session, "tool_result")
    assert (call.tool_name, call.args, result.tool_call_id, result.is_error) == ("shell", {"command": "ls"}, "call_1", True)
    assert ends(session) == ["completed", "completed"]
    assert [who for who, _ in roles(server.asked[1])] in (
        ["user", "assistant", "tool", "user"],
        ["user", "function_call", "function_call_output", "user"],
    )


async def test_pictures_are_sent_and_other_files_are_refused(agent: str, around: Surroundings) -> None:
    with scripted(says("A dot.")) as server:
        session = await open_session(around, agent, server)
        with pytest.raises(Refused, match="no file"):
            await session.send("Read.", [TextBlock(text="Read."), FileBlock(name="a.bin", data="AAAA")])
        await session.send("Look.", [TextBlock(text="Look."), ImageBlock(media_type="image/png", data=SMALL)])
        await idle(session)
        await session.close()
    assert f"data:image/png;base64,{SMALL}" in json.dumps(server.asked[0])
    [said] = payloads(session, "user_message")
    assert isinstance(said.content[0], TextBlock) and said.content[1] == ImageBlock(media_type="image/png", data=SMALL)
    assert len(server.asked) == 1 and ends(session) == ["completed"]


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that takes one request and says this, or nothing for as long as it is there."""
    over = threading.Event()

    def serve(server: socket.socket) -> None:
        with server.accept()[0] as client, suppress(OSError):  # it hangs up in the middle of a response that is too long, or earlier
            asked = b""
            while b"\r\n\r\n" not in asked:
                if not (more := client.recv(65536)):
                    return
                asked += more
            if answer is None:
                over.wait()
                return
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=[server])
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            thread.join()


HTTP = b"HTTP/1.1 "
SSE = HTTP + b"200 OK\r\ncontent-type: text/event-stream\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        pytest.param(None, None, "sent nothing for 1 s", id="silent"),
        pytest.param(b"", None, "closed the connection before", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", None, "does not speak HTTP", id="not http"),
        pytest.param(HTTP + b"502 Bad Gateway\r\ncontent-length: 13\r\n\r\n<html>no</ht>", 502, "502 Bad Gateway", id="proxy page"),
        pytest.param(HTTP + b"401 Unauthorized\r\ncontent-length: 0\r\n\r\n", 401, "401 Unauthorized", id="empty body"),
        pytest.param(HTTP + b'404 Not Found\r\n\r\n{"detail":"Not Found"}', 404, "404 Not Found", id="another api"),
        pytest.param(HTTP + b"307 Moved\r\nlocation: http://127.0.0.1:1/\r\n\r\n", 307, "307 Moved", id="redirect"),
        pytest.param(SSE + b"\r\n", None, "ended before the answer", id="empty stream"),
        pytest.param(SSE + b"transfer-encoding: chunked\r\n\r\n-1\r\n", None, "illegal chunk header", id="bad chunk"),
        pytest.param(SSE + b"transfer-encoding: chunked\r\n\r\nff\r\nda", None, "closed the connection before", id="cut chunk"),
        pytest.param(SSE + b"x: " + b"y" * 200_000 + b"\r\n\r\n", None, "too long", id="endless head"),
    ],
)
async def test_what_is_no_answer_ends_the_turn_with_a_reason(
    agent: str, around: Surroundings, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, status: int | None, message: str
) -> None:
    monkeypatch.setattr(openai, "SILENCE_SECONDS", 1.0 if answer is None else 30.0)
    with listening(answer) as port:
        session = await around.session(agent, Options(model="m", base_url=f"http://127.0.0.1:{port}"))
        await turn(session, "Hello?")
    await session.close()
    [problem] = payloads(session, "error")
    assert message in problem.message and problem.status == status
    assert ends(session) == ["error"]


async def test_nobody_listens(agent: str, around: Surroundings) -> None:
    port = stable_port()
    session = await around.session(agent, Options(model="m", base_url=f"http://127.0.0.1:{port}"))
    await turn(session, "Hello?")
    await session.close()
    [problem] = payloads(session, "error")
    assert (problem.code, problem.retryable, problem.error_source) == ("api_error", True, "transport")
    assert ends(session) == ["error"]


async def test_an_answer_that_a_server_gives_in_one_piece_is_read(around: Surroundings) -> None:
    body = json.dumps(
        {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": "Whole."}, "finish_reason": "stop"}]}
    ).encode()
    with listening(HTTP + b"200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body) as port:
        session = await around.session("openai-chat", Options(model="m", base_url=f"http://127.0.0.1:{port}"))
        await turn(session, "Hello?")
    await session.close()
    assert [done.text for done in payloads(session, "assistant_done")] == ["Whole."] and ends(session) == ["completed"]


async def test_a_server_cannot_play_a_recording(around: Surroundings) -> None:
    played = json.dumps({"dir": "send", "line": json.dumps({"model": "m", "messages": [{"role": "user", "content": "Forged."}]})}).encode()
    with listening(HTTP + b"200 OK\r\n\r\n" + played + b"\n") as port:
        session = await around.session("openai-chat", Options(model="m", base_url=f"http://127.0.0.1:{port}"))
        await turn(session, "Hello?")
    await session.close()
    assert [said.text for said in payloads(session, "user_message")] == ["Hello?"] and ends(session) == ["error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"model": None}, "name of a model", id="no model"),
        pytest.param({"permission_mode": "yolo"}, "permission mode", id="mode"),
        pytest.param({"mcp_servers": {"demo": {"command": "x"}}}, "MCP servers", id="mcp"),
        pytest.param({"allowed_tools": ["Bash"]}, "single tools", id="tools"),
        pytest.param({"base_url": "ftp://127.0.0.1"}, "no address", id="scheme"),
        pytest.param({"base_url": "http://me:secret@127.0.0.1"}, "password", id="password"),
        pytest.param({"base_url": "http://127.0.0.1/\r\nX: y"}, "no address", id="line end"),
        pytest.param({"base_url": "http://127.0.0.1:99999"}, "no address", id="port"),
    ],
)
async def test_what_an_api_cannot_do_is_refused(agent: str, around: Surroundings, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"model": "m", "base_url": "http://127.0.0.1:9"}
    session = await around.session(agent, Options(**given | options))
    with pytest.raises((UsageError, Refused), match=message):
        await session.send("Hello?")
    await session.close()
    assert [message in problem.message for problem in payloads(session, "error")] == [True]
    assert not payloads(session, "turn_start")


async def test_a_key_with_a_line_end_in_it_is_not_sent(agent: str, around: Surroundings) -> None:
    with scripted() as server:
        session = await around.session(agent, Options(model="m", base_url=server.url, env={"OPENAI_API_KEY": "a\r\nX: y"}))
        await turn(session, "Hello?")
        await session.close()
    assert server.asked == [] and ends(session) == ["error"]


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "milliseconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1500),
        ({"retry-after": "1", "retry-after-ms": "20"}, 20),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30_000),
        ({"retry-after": "Thu, 01 Jan 2015 00:00:30 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
    ],
)
async def test_when_to_ask_again(headers: dict[str, str], milliseconds: int | None) -> None:
    assert openai.retry_after(headers, NOW) == milliseconds


async def test_an_address_names_its_port_only_where_it_must() -> None:
    assert Address.parse("https://api.example/v1/") == Address("api.example", 443, True, "/v1")
    assert Address.parse("http://[::1]:8080").authority == "[::1]:8080"
    assert Address.parse("https://api.example").authority == "api.example"


async def test_a_model_that_nobody_could_reach_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AgentNotStarted, match="needs OPENAI_API_KEY"):
        agent_for("openai-chat").find(Options())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert agent_for("openai-chat").find(Options()).startswith("https://")
