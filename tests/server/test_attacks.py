"""What somebody tried who means harm: requests of odd shape, clients that hold on, a record that was written to hurt."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from pathlib import Path

import pytest

from hansard.agents.session_state import SessionState
from hansard.events import assistant_done, session_lifecycle, user_message
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.server.protocol import Limits
from hansard.store import JsonlStore
from tests.proof import proves
from tests.server.served import Here, command, eventually, process, served
from tests.server.test_limits import is_closed, raw_socket

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------------------------------------------------------------
# Requests of odd shape

HOST, TOKEN = "Host: 127.0.0.1:{port}\r\n", "Authorization: Bearer {token}\r\n"
ODD = {
    "the name in the address": ("GET http://127.0.0.1:{port}/api HTTP/1.1\r\n" + TOKEN, {400, 421}),
    "another name in the address": ("GET http://evil.example/api HTTP/1.1\r\n" + HOST + TOKEN, {400, 404}),
    "two names": ("GET /api HTTP/1.1\r\n" + HOST + "Host: evil.example\r\n" + TOKEN, {400, 421}),
    "no name": ("GET /api HTTP/1.0\r\n" + TOKEN, {400, 421}),
    "a name that a proxy gives": ("GET /api HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1:{port}\r\n" + TOKEN, {421}),
    "a name with a user": ("GET /api HTTP/1.1\r\nHost: 127.0.0.1:{port}@evil.example\r\n" + TOKEN, {400, 421}),
    "a name with a dot more": ("GET /api HTTP/1.1\r\nHost: localhost.:{port}\r\n" + TOKEN, {400, 421}),
    "two lengths": ("POST /api/sessions HTTP/1.1\r\n" + HOST + TOKEN + "Content-Length: 0\r\nContent-Length: 1\r\n", {400}),
    "a length with a sign": ("POST /api/sessions HTTP/1.1\r\n" + HOST + TOKEN + "Content-Length: +1\r\n", {400}),
    "a blank before the colon": ("GET /api HTTP/1.1\r\n" + HOST + "Authorization : Bearer {token}\r\n", {400}),
    "a bare CR": ("GET /api HTTP/1.1\r\n" + HOST + "X: a\rAuthorization: Bearer {token}\r\n", {400}),
    "another method beside it": ("POST /api HTTP/1.1\r\n" + HOST + "X-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n", {401}),
    "an address that leads elsewhere": ("GET //evil.example/?token={token} HTTP/1.1\r\n" + HOST, {401, 404}),
    "another protocol": (
        "GET /api HTTP/1.1\r\n" + HOST + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
        {401},
    ),
    "a cookie that another port has set": ("GET /api HTTP/1.1\r\n" + HOST + "Cookie: hansard-{port}=x; hansard={token}\r\n", {401}),
    "a page of another port": ("GET /api HTTP/1.1\r\n" + HOST + "Cookie: hansard-{port}={token}\r\nSec-Fetch-Site: same-site\r\n", {403}),
    "a frame of another site": ("GET / HTTP/1.1\r\n" + HOST + "Cookie: hansard-{port}={token}\r\nSec-Fetch-Site: cross-site\r\n", {403}),
}


@proves("S-01")
async def test_a_request_of_an_odd_shape_gets_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        for name, (text, allowed) in ODD.items():
            said = await exchange(here, (text + "\r\n").format(port=here.port, token=here.token).encode())
            statuses = [int(status) for status in re.findall(rb"^HTTP/1.1 (\d+)", said, re.MULTILINE)]
            assert len(statuses) == 1 and statuses[0] in allowed, (name, said[:200])
            assert b"evil.example" not in said.lower(), name


async def exchange(here: Here, data: bytes) -> bytes:
    """All that a connection answers in a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    writer.write(data)
    said = await reader.read(65536)
    writer.close()
    return said


# ---------------------------------------------------------------------------------------------------------------------
# Who holds on


@proves("S-07")
@pytest.mark.parametrize("how", ["Content-Length: 9000000", "Transfer-Encoding: chunked"])
async def test_who_was_refused_and_talks_on_is_cut_off(how: str, tmp_path: Path) -> None:
    """Without a token nobody keeps a connection, however slowly the rest of the request comes."""
    async with served(tmp_path, Limits(header_seconds=0.5)) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(f"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{here.port}\r\n{how}\r\n\r\n".encode())
        assert b"401" in await reader.readline()
        with pytest.raises(ConnectionError):
            await _talk_on(writer, b"1\r\nx\r\n" if "chunked" in how else b"x")
        writer.close()


async def _talk_on(writer: asyncio.StreamWriter, word: bytes) -> None:
    async with asyncio.timeout(20):
        while True:
            writer.write(word)
            await writer.drain()
            await asyncio.sleep(0.05)


@proves("S-07")
@pytest.mark.slow
def test_who_asks_and_takes_no_answer_costs_little(tmp_path: Path) -> None:
    """Pings of a socket are answered by the protocol itself, which no limit of messages sees."""
    with process(tmp_path) as server:
        stuck = asyncio.run(raw_socket(server.port, server.tokens["observer"]))
        stuck.setblocking(True)
        stuck.settimeout(10)
        before = server.memory()
        ping = (b"\x89\xfd" + bytes(4) + b"x" * 125) * 1000
        with pytest.raises(OSError):
            _send_for_ever(stuck, b"", ping)
        assert server.memory() < before + 20_000_000
        stuck.close()


@proves("S-07")
async def test_a_message_in_endless_pieces_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        stuck = await raw_socket(here.port, here.token)
        stuck.setblocking(True)
        stuck.settimeout(20)
        piece = b"\x00\xe4" + bytes(4) + b"x" * 100
        with pytest.raises(OSError):
            await asyncio.to_thread(_send_for_ever, stuck, b"\x01\x80" + bytes(4), piece * 1000)
        stuck.close()
        await eventually(lambda: is_closed(stuck))


def _send_for_ever(stuck: socket.socket, first: bytes, then: bytes) -> None:
    stuck.sendall(first)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        stuck.sendall(then)
    raise AssertionError("nobody minds")


# ---------------------------------------------------------------------------------------------------------------------
# A record that was written to hurt


@proves("S-03")
async def test_a_link_in_the_store_is_not_followed_by_any_request(tmp_path: Path) -> None:
    store, outside = tmp_path / "store", tmp_path / "outside"
    outside.mkdir()
    with JsonlStore(tmp_path / "other") as other:
        other["s"].append([user_message(text="not for you")])
    (outside / "events.jsonl").write_bytes((tmp_path / "other/s/events.jsonl").read_bytes())
    before = sorted(outside.rglob("*"))
    async with served(store) as here, here.http() as http:
        store.mkdir(exist_ok=True)
        (store / "link").symlink_to(outside)
        (store / "half").mkdir()
        (store / "half" / "events.jsonl").symlink_to(outside / "events.jsonl")
        for name in ("link", "half"):
            one = f"/api/sessions/{name}"
            for path in ("", "/events", "/events/1", "/events/2/original", "/state", "/messages", "/stream", "/export?to=native"):
                answer = await http.get(one + path)
                assert answer.status_code >= 400 and "not for you" not in answer.text, path
            refused = [
                await http.post(f"{one}/uploads", json={"data": "eA=="}),
                await http.post(f"{one}/fork", json={}),
                await http.post(f"{one}/commands", json=command("session_lifecycle", "c", subtype="renamed", title="x")),
                await http.patch(one, json={"title": "x"}),
                await http.delete(one),
            ]
            if name == "link":  # the folder of the other one is the store's own
                assert [answer.status_code for answer in refused if answer.status_code < 400] == []
        assert "not for you" not in (await http.get("/api/search?q=not")).text.replace('"q"', "")
        assert (await http.get("/api/sessions")).status_code == 200
    assert sorted(outside.rglob("*")) == before


@proves("S-07")
async def test_no_frame_is_larger_than_the_limit_whatever_a_log_says(tmp_path: Path) -> None:
    """A title, a name, an id of two megabytes; and a list of four hundred sessions with long titles."""
    async with served(tmp_path) as here:
        long = "x" * 2_000_000
        session = here.session(title=long)
        said = assistant_done(text="short")
        said.turn_id = said.response_id = long
        here.store[session].append([said])
        log = tmp_path / session / "events.jsonl"
        fields = json.loads(log.read_bytes().split(b"\n")[1]) | {"seq": 3, "id": long, "type": long, "anything": [long], long: 1}
        with log.open("ab") as file:
            file.write(json.dumps(fields).encode() + b"\n")
        for number in range(400):
            here.store[here.session(name=f"s{number}", title="\u0001" * 10_000)].release()
        async with here.socket(max_size=2**20) as peer:
            await peer.say(type="watch")
            first = await peer.until("sessions")
            listed = {one["id"] for one in first["changed"]}
            assert first["all"] is True
            while len(listed) < 401:
                more = await peer.until("sessions")
                assert "all" not in more
                listed |= {one["id"] for one in more["changed"]}
            await peer.subscribe(session)
            await peer.until("live", id="a")
            assert [event["seq"] for event in peer.events_of()] == [1, 2, 3]
            for wrong in ({"type": long[:900_000]}, {"type": "subscribe", "id": "x", "session": long[:1_000_000]}):
                await peer.say(**wrong)
                assert len((await peer.until("error"))["message"]) <= 2000


@proves("S-04")
def test_no_agent_says_which_program_is_started_next() -> None:
    """Only what hansard itself has put on the record does."""
    wanted = session_lifecycle(
        subtype=LAUNCHED_SUBTYPE, detail={"agent": "acp", "options": {"program": "/bin/sh", "arguments": ["-c", "id"]}}
    )
    wanted.source = "claude"
    assert SessionState.from_events([wanted]).launch is None
    wanted.source = None
    assert SessionState.from_events([wanted]).launch is not None
