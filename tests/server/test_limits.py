"""Every limit of RELIABILITY's section on them: just below it, at it, and just above."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.server.served import demo, eventually, served, words

pytestmark = pytest.mark.anyio


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
            async with here.socket() as peer:
                await peer.until("hello")
            await asyncio.sleep(0.05)


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
            await peer.say(type="command", command="rename", commandId=f"c{number}", session=session, title="x")
        for _ in range(count):
            while (await peer.hear())["type"] not in ("done", "refused"):
                pass
        assert [message["type"] for message in peer.got].count("done") == done
        assert {message["code"] for message in peer.got if message["type"] == "refused"} <= {"too_many"}
        answers = [
            (await http.post(f"/api/sessions/{session}/commands", json={"command": "rename", "commandId": "x", "title": "x"})).status_code
            for _ in range(count)
        ]
        assert answers == [200] * done + [429] * (count - done)


async def test_commands_are_allowed_again_after_a_while(tmp_path: Path):
    async with served(tmp_path, Limits(burst=1, commands=20)) as here, here.socket() as peer:
        session = here.session()
        for number in range(4):
            assert (await peer.command(session, "rename", f"c{number}", title="x"))["type"] == "done"
            await asyncio.sleep(0.06)


@pytest.mark.parametrize(("count", "code"), [(9, None), (10, None), (11, 4009)])
async def test_messages(count: int, code: int | None, tmp_path: Path):
    async with served(tmp_path, Limits(messages=10)) as here, here.socket() as peer:
        for _ in range(count):
            await peer.say(type="pong")
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(0.3):
                while True:
                    await peer.hear()
        assert peer.socket.close_code == code


async def test_running_agents(tmp_path: Path):
    async with served(tmp_path / "store", Limits(agents=2)) as here, here.http() as http, here.socket() as peer:
        sessions = [await demo(http, tmp_path) for _ in range(3)]
        for session in sessions[:2]:
            assert (await peer.command(session, "say", f"c-{session}", text="say hi"))["type"] == "done"
        assert (await peer.command(sessions[2], "say", "c3", text="say hi"))["code"] == "too_many"
        refused = await http.post("/api/sessions", json={"agent": "demo", "options": {"cwd": str(tmp_path)}, "prompt": "say hi"})
        assert refused.status_code == 429 and len(here.store.sessions()) == 3
        assert (await peer.command(sessions[0], "say", "c4", text="say more"))["type"] == "done"
        assert (await peer.command(sessions[0], "stop", "c5"))["type"] == "done"
        assert (await peer.command(sessions[2], "say", "c6", text="say hi"))["type"] == "done"


@pytest.mark.parametrize(("more", "status"), [(-1, 413), (0, 200), (1, 200)])
async def test_export(more: int, status: int, tmp_path: Path):
    async with served(tmp_path) as here:
        session = here.session(100)
    size = JsonlStore(tmp_path).head(session).bytes
    async with served(tmp_path, Limits(export=size + more)) as here, here.http() as http:
        assert (await http.get(f"/api/sessions/{session}/export?to=markdown")).status_code == status


async def test_an_idle_http_connection_is_closed(tmp_path: Path):
    async with served(tmp_path, Limits(idle_seconds=1)) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(f"GET /api HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\n\r\n".encode())
        async with asyncio.timeout(3):
            assert b"401" in await reader.read()  # and then its end
        writer.close()


async def test_who_takes_nothing_is_let_go(tmp_path: Path):
    """A client that subscribes and never reads: closed after the time, its descriptor free, the others unharmed."""
    async with served(tmp_path, Limits(idle_seconds=1)) as here, here.socket() as other:
        session = here.session(20_000)
        stuck = await raw_socket(here.port, here.token)
        send_frame(stuck, {"type": "subscribe", "id": "a", "session": session})
        await other.subscribe(session)
        await other.events(here.store.head(session).seq)
        head = here.store.append(session, words(100))[-1].seq
        await other.events(head)
        await eventually(lambda: is_closed(stuck))
        stuck.close()
        here.store.append(session, words(1))
        await other.events(head + 1)


async def test_a_stream_that_is_not_taken_is_let_go(tmp_path: Path):
    async with served(tmp_path, Limits(idle_seconds=0.5, connections=1)) as here, here.http() as http:
        session = here.session(100_000)
        raw = socket.create_connection(("127.0.0.1", here.port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(
            f"GET /api/sessions/{session}/stream HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\n"
            f"Authorization: Bearer {here.token}\r\n\r\n".encode()
        )
        statuses = []
        async with asyncio.timeout(20):
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
