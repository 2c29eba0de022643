"""Every limit of RELIABILITY's section on them: just below it, at it, and just above."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import AsyncExitStack, suppress
from io import BytesIO
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hansard.adapters.base import MAX_FRAME
from hansard.adapters.normalize import normalize
from hansard.agents.pump import STDERR_TAIL_BYTES
from hansard.agents.session import Session
from hansard.events import assistant_chunk, assistant_done
from hansard.events.originals import MAX_DEPTH, TEXT, reference, unwrap, wrap
from hansard.server.auth import HEADER_BYTES
from hansard.server.feed import MARGIN
from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.driving.puppet import child
from tests.proof import proves
from tests.server.served import PATIENCE, Here, command, demo, eventually, served, words

pytestmark = [pytest.mark.anyio, pytest.mark.slow, proves("S-07")]


@pytest.mark.parametrize(("more", "status"), [(-1, 400), (0, 400), (1, 413)])
async def test_body(more: int, status: int, tmp_path: Path):
    """As JSON it is nonsense: 400 says that it was read."""
    async with served(tmp_path, Limits(body=1000)) as here, here.http() as http:
        session = here.session()
        for declared in (True, False):
            body = b"x" * (1000 + more)
            content = body if declared else _pieces(body)
            answer = await http.post(f"/api/sessions/{session}/commands", content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == status


async def _pieces(body: bytes):
    yield body[:500]
    yield body[500:]


@pytest.mark.parametrize(("more", "code"), [(-1, None), (0, None), (1, 1009)])
async def test_frame_in(more: int, code: int | None, tmp_path: Path):
    async with served(tmp_path) as here, here.socket() as peer:
        ping = json.dumps({"type": "ping"})
        await peer.socket.send(ping + " " * (2**20 + more - len(ping)))
        with suppress(ConnectionClosed):
            await peer.until("pong")
        assert peer.socket.close_code == code


@pytest.mark.parametrize(("more", "large"), [(-1, False), (0, False), (1, True)])
async def test_frame_out(more: int, large: bool, tmp_path: Path):
    """An event that does not fit is announced and can be asked for; the frame stays in its limit."""
    async with served(tmp_path, Limits(frame=50_000)) as here, here.socket(max_size=50_000) as peer, here.http() as http:
        session = here.session(1)
        here.store[session].append([assistant_done(text="")])
        without_text = len(next(record.line for record in here.store[session].records(2)))
        here.store[session].append([assistant_done(text="x" * (50_000 - MARGIN - without_text + more))])
        await peer.subscribe(session)
        await peer.until("live", id="a")
        event = peer.events_of()[-1]
        assert event["seq"] == 4
        assert ("large" in event) == large
        assert (await http.get(f"/api/sessions/{session}/events/4")).json()["payload"]["text"].startswith("xx")


@pytest.mark.parametrize(("more", "reason"), [(-1, None), (0, None), (1, "too_large")])
def test_a_line_is_read_up_to_16_mib_and_kept_beyond(more: int, reason: str | None):
    frame = b'{"type":"assistant","message":{"content":[{"type":"text","text":"' + b"x" * (MAX_FRAME - 70 + more) + b'"}]}}'
    assert len(frame) == MAX_FRAME + more
    events = list(normalize(BytesIO(frame + b"\n"), "claude-stream-json"))
    assert [event.payload.reason for event in events if event.type == "raw"] == ([reason] if reason else [])
    assert any(event.type == "assistant_done" for event in events) == (reason is None)
    assert b"".join(unwrap(event.original) for event in events if event.original is not None) == frame


@pytest.mark.parametrize(("more", "verbatim"), [(-1, True), (0, False), (1, False)])
def test_json_stands_in_a_log_up_to_its_depth_and_as_text_beyond(more: int, verbatim: bool):
    data = b"[" * (MAX_DEPTH + more) + b"]" * (MAX_DEPTH + more)
    assert bytes(wrap(data)).startswith(TEXT) != verbatim
    assert unwrap(wrap(data)) == data


@pytest.mark.parametrize(("more", "blob"), [(-1, False), (0, False), (1, True)])
def test_an_original_stands_in_its_line_up_to_the_limit_and_in_a_blob_beyond(more: int, blob: bool, tmp_path: Path):
    with JsonlStore(tmp_path, inline_limit=1000) as store:
        event, data = assistant_chunk(text=""), b'"' + b"x" * (998 + more) + b'"'
        event.original = wrap(data)
        [kept] = store["s"].append([event])
        assert (reference(kept.original) is not None) == blob
        assert store["s"].original(kept) == data


@pytest.mark.parametrize(
    ("count", "told"),
    [(STDERR_TAIL_BYTES - 1, STDERR_TAIL_BYTES - 1), (STDERR_TAIL_BYTES, STDERR_TAIL_BYTES), (STDERR_TAIL_BYTES + 1, STDERR_TAIL_BYTES)],
)
async def test_what_an_agent_complains_of_is_all_on_record_and_its_end_is_told(count: int, told: int, tmp_path: Path):
    with JsonlStore(tmp_path / "store") as store:
        agent, options = child(f"import sys; sys.stderr.write('x' * {count}); sys.exit(3)")
        options.cwd = str(tmp_path)
        session = await Session.create(store, agent, options)
        await session.start()
        await eventually(lambda: not session.running)
        events = list(store[session.id].read())
    [problem] = [event for event in events if event.type == "error"]
    assert len(problem.payload.details["stderr"]) == told
    assert sum(len(event.payload.text) for event in events if event.type == "process" and event.payload.event == "stderr") == count


@pytest.mark.parametrize(("more", "status"), [(-1, 200), (0, 200), (1, 431)])
async def test_headers(more: int, status: int, tmp_path: Path):
    """Where the server reads them in pieces it may stop a little earlier, with 400."""
    async with served(tmp_path) as here:
        given = {"host": f"127.0.0.1:{here.port}", "authorization": f"Bearer {here.token}", "x": ""}
        given["x"] = "x" * (HEADER_BYTES + more - sum(len(name) + len(value) for name, value in given.items()))
        scope = {"type": "http", "method": "GET", "path": "/api", "query_string": b"", "scheme": "http", "root_path": "", "server": ("", 0)}
        scope |= {"http_version": "1.1", "headers": [(name.encode(), value.encode()) for name, value in given.items()]}
        said: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request"}

        async def send(message: dict) -> None:
            said.append(message)

        await here.app(scope, receive, send)
        assert said[0]["status"] == status


@pytest.mark.parametrize(("count", "accepted"), [(2, 2), (3, 3), (4, 3)])
async def test_connections(count: int, accepted: int, tmp_path: Path):
    async with served(tmp_path, Limits(connections=3)) as here, AsyncExitStack() as stack:
        refused: list[int] = []
        for _ in range(count):
            try:
                await stack.enter_async_context(here.socket())
            except InvalidStatus as problem:
                refused.append(problem.response.status_code)
        assert refused == [503] * (count - accepted)


async def test_a_place_is_free_again_when_a_connection_ends(tmp_path: Path):
    async with served(tmp_path, Limits(connections=1)) as here:
        for _ in range(5):
            async with asyncio.timeout(PATIENCE):
                while not await _comes_and_goes(here):  # the one before has its place for a moment still
                    await asyncio.sleep(0.01)


async def _comes_and_goes(here: Here) -> bool:
    try:
        async with here.socket() as peer:
            await peer.until("hello")
    except InvalidStatus:
        return False
    return True


@pytest.mark.parametrize(("count", "accepted"), [(2, 2), (3, 3), (4, 3)])
async def test_subscribers_of_a_session(count: int, accepted: int, tmp_path: Path):
    async with served(tmp_path, Limits(per_session=3)) as here, AsyncExitStack() as stack:
        session, answers = here.session(), []
        for _ in range(count):
            peer = await stack.enter_async_context(here.socket())
            await peer.say(type="subscribe", id="a", session=session)
            await peer.until("hello")
            answers.append(await peer.hear())
        assert [answer["type"] for answer in answers] == ["subscribed"] * accepted + ["error"] * (count - accepted)
        assert all(answer["code"] == "too_many" for answer in answers[accepted:])


@pytest.mark.parametrize(("count", "accepted"), [(4, 4), (5, 5), (6, 5)])
async def test_subscriptions_of_a_socket(count: int, accepted: int, tmp_path: Path):
    async with served(tmp_path, Limits(subscriptions=5)) as here, here.socket() as peer:
        session = here.session()
        for number in range(count):
            await peer.say(type="subscribe", id=str(number), session=session)
        await peer.say(type="ping")
        await peer.until("pong")
        assert [message["type"] for message in peer.got].count("subscribed") == accepted
        assert [message["code"] for message in peer.got if message["type"] == "error"] == ["too_many"] * (count - accepted)


@pytest.mark.parametrize(("count", "done"), [(9, 9), (10, 10), (11, 10)])
async def test_commands(count: int, done: int, tmp_path: Path):
    async with served(tmp_path, Limits(burst=10, commands=0)) as here, here.socket() as peer, here.http() as http:
        session = here.session()
        for number in range(count):
            await peer.say(type="command", session=session, event=command("session_lifecycle", f"c{number}", subtype="renamed", title="x"))
        for _ in range(count):
            while (await peer.hear())["type"] not in ("done", "refused"):
                pass
        assert [message["type"] for message in peer.got].count("done") == done
        assert {message["code"] for message in peer.got if message["type"] == "refused"} <= {"too_many"}
        renamed = command("session_lifecycle", "x", subtype="renamed", title="x")
        answers = [(await http.post(f"/api/sessions/{session}/commands", json=renamed)).status_code for _ in range(count)]
        assert answers == [200] * done + [429] * (count - done)


async def test_commands_are_allowed_again_after_a_while(tmp_path: Path):
    async with served(tmp_path, Limits(burst=1, commands=20)) as here, here.socket() as peer:
        session = here.session()
        for number in range(4):
            assert (await peer.command(session, "session_lifecycle", f"c{number}", subtype="renamed", title="x"))["type"] == "done"
            await asyncio.sleep(0.06)


@pytest.mark.parametrize(("count", "code"), [(9, None), (10, None), (11, 4009)])
async def test_messages(count: int, code: int | None, tmp_path: Path):
    async with served(tmp_path, Limits(messages=10)) as here, here.socket() as peer:
        for _ in range(count):
            await peer.say(type="pong")
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(0.3 if code is None else PATIENCE):
                while True:
                    await peer.hear()
        assert peer.socket.close_code == code


async def test_running_agents(tmp_path: Path):
    async with served(tmp_path / "store", Limits(agents=2)) as here, here.http() as http, here.socket() as peer:
        sessions = [await demo(http, tmp_path) for _ in range(3)]
        for session in sessions[:2]:
            assert (await peer.command(session, "user_message", f"c-{session}", text="say hi"))["type"] == "done"
        assert (await peer.command(sessions[2], "user_message", "c3", text="say hi"))["code"] == "too_many"
        refused = await http.post("/api/sessions", json={"agent": "demo", "options": {"cwd": str(tmp_path)}, "prompt": "say hi"})
        assert refused.status_code == 429 and len(here.store.sessions()) == 3
        assert (await peer.command(sessions[0], "user_message", "c4", text="say more"))["type"] == "done"
        assert (await peer.command(sessions[0], "session_lifecycle", "c5", subtype="closed"))["type"] == "done"
        assert (await peer.command(sessions[2], "user_message", "c6", text="say hi"))["type"] == "done"


@pytest.mark.parametrize(("more", "status"), [(-1, 413), (0, 200), (1, 200)])
async def test_export(more: int, status: int, tmp_path: Path):
    async with served(tmp_path) as here:
        session = here.session(100)
    size = JsonlStore(tmp_path)[session].head().bytes
    async with served(tmp_path, Limits(export=size + more)) as here, here.http() as http:
        assert (await http.get(f"/api/sessions/{session}/export?to=markdown")).status_code == status


async def test_an_idle_http_connection_is_closed(tmp_path: Path):
    async with served(tmp_path, Limits(idle_seconds=1)) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(f"GET /api HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\n\r\n".encode())
        async with asyncio.timeout(30):  # less than without a limit of its own
            assert b"401" in await reader.read()  # and then its end
        writer.close()


@proves("L-07")
async def test_who_takes_nothing_is_let_go(tmp_path: Path):
    """A client that subscribes and never reads: closed after the time, its descriptor free, the others unharmed."""
    async with served(tmp_path, Limits(idle_seconds=1)) as here, here.socket() as other:
        session = here.session(20_000)
        stuck = await raw_socket(here.port, here.token)
        send_frame(stuck, {"type": "subscribe", "id": "a", "session": session})
        await other.subscribe(session)
        await other.events(here.store[session].head().seq)
        head = here.store[session].append(words(100))[-1].seq
        await other.events(head)
        await eventually(lambda: is_closed(stuck))
        stuck.close()
        here.store[session].append(words(1))
        await other.events(head + 1)


@proves("L-07")
async def test_a_stream_that_is_not_taken_is_let_go(tmp_path: Path):
    async with served(tmp_path, Limits(idle_seconds=2, connections=1)) as here, here.http() as http:
        session = here.session(100_000)
        raw = socket.create_connection(("127.0.0.1", here.port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(
            f"GET /api/sessions/{session}/stream HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\n"
            f"Authorization: Bearer {here.token}\r\n\r\n".encode()
        )
        statuses = []
        async with asyncio.timeout(PATIENCE):
            while statuses[-2:] != [503, 200]:  # there is no room, and then there is
                await asyncio.sleep(0.05)
                async with http.stream("GET", f"/api/sessions/{session}/stream") as answer:
                    statuses.append(answer.status_code)
        raw.close()


async def raw_socket(port: int, token: str) -> socket.socket:
    """A socket whose other end says nothing by itself."""
    raw = socket.create_connection(("127.0.0.1", port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    raw.setblocking(False)
    loop, head = asyncio.get_running_loop(), b""
    while b"\r\n\r\n" not in head:
        head += await loop.sock_recv(raw, 1)
    assert b"101" in head
    return raw


def send_frame(raw: socket.socket, message: dict) -> None:
    """A masked text frame (RFC 6455, section 5.2) with a mask of zeros."""
    data = json.dumps(message).encode()
    raw.send(struct.pack("!BBH", 0x81, 0x80 | 126, len(data)) + bytes(4) + data)


def is_closed(raw: socket.socket) -> bool:
    """Whether the other end has hung up: a reset shows when one writes."""
    try:
        raw.send(b"\x8a\x80" + bytes(4))
    except OSError:
        return True
    return False
