"""Load, as much as two cores bear. Asserted is that nothing is lost and memory stays bounded; rates and times are told, not judged."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hansard.adapters.normalize import normalize
from hansard.events import assistant_chunk
from hansard.store import JsonlStore
from tests.proof import Figures, amount, proves
from tests.server.readers import Apart, log_hash
from tests.server.served import Process, command, demo, eventually, process, words

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MB = 1_000_000
ROOM = ("--limit", "per_session=500", "--limit", "connections=500", "--limit", "agents=50", "--limit", "burst=500")


class Station(Process):
    """A server that knows one more agent, and has a probe in its loop."""

    program = "tests.load.station"


@contextmanager
def station(folder: Path, *arguments: str) -> Generator[Station]:
    """Use it as a context."""
    server = Station(folder, *arguments)
    try:
        yield server
    finally:
        server.stop()


async def send(http: httpx.AsyncClient, session: str, text: str) -> None:
    """Say something, and do not wait for the answer."""
    answer = await http.post(f"/api/sessions/{session}/commands", json=command("user_message", f"{session}-{text}", text=text))
    assert answer.status_code == 200, answer.text


async def ended(store: JsonlStore, session: str) -> None:
    """Wait for the end of the turn: it is near the end of the log."""
    async with asyncio.timeout(1200):
        while not any(event.type == "turn_end" for event in store[session].tail(5)):
            await asyncio.sleep(0.2)


def logs(store: JsonlStore, sessions: list[str]) -> dict[str, str]:
    return {session: store[session].head().log_id for session in sessions}


def all_have(store: JsonlStore, got: dict, sessions: list[str]) -> None:
    """Every client of a session has its log, once, in order."""
    assert got["hashes"] == {session: [log_hash(store, session)] for session in sessions}


def report(figure: Figures, got: dict, seconds: float) -> None:
    figure("deliveries a second", got["count"] / seconds)
    figure("write to client p50 ms", got["p50"])
    figure("write to client p99 ms", got["p99"])


@proves("B-01")
async def test_one_agent_at_full_speed(tmp_path: Path, figure: Figures):
    """From its standard output over the log to a client in a process of its own; beside it, the same lines without server and client."""
    lines = amount(20_000, 500_000)
    with station(tmp_path / "store", *ROOM) as server, JsonlStore(tmp_path / "store") as store:
        async with server.http() as http:
            answer = await http.post("/api/sessions", json={"agent": "flood", "options": {"cwd": str(tmp_path)}})
            session = answer.json()["id"]
            apart = Apart(server, logs(store, [session]))
            began = time.perf_counter()
            await send(http, session, f"lines {lines}")
            await ended(store, session)
            seconds = time.perf_counter() - began
            got = await apart.end({session: store[session].head().seq})
            delivered = time.perf_counter() - began
        all_have(store, got, [session])
        frames = [store[session].original(event) for event in store[session].read(types=["assistant_chunk"])]
        assert len(frames) == lines
        bare = JsonlStore(tmp_path / "bare")
        name, began = bare.create().session_id, time.perf_counter()
        for first in range(0, lines, 100):  # as many as a read of the pipe may bring
            bare[name].append(list(normalize(b"\n".join(frames[first : first + 100]) + b"\n", "claude-stream-json")))
        alone = time.perf_counter() - began
        bare.close()
    figure("lines", lines)
    figure("lines a second on the record", lines / seconds)
    figure("lines a second at the client", lines / delivered)
    figure("of the speed of a bare loop", alone / seconds)


@proves("B-02")
async def test_many_agents_and_clients(tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch):
    agents, clients, seconds = amount(4, 20), amount(2, 5), amount(4, 600)
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.01")
    monkeypatch.setenv("HANSARD_PROBE", str(tmp_path / "probe"))
    with station(tmp_path / "store", *ROOM) as server, JsonlStore(tmp_path / "store") as store:
        async with server.http() as http:
            sessions = [await demo(http, tmp_path) for _ in range(agents)]
            apart = Apart(server, logs(store, sessions), clients)
            for session in sessions:
                await send(http, session, f"count {100 * seconds}")
            for session in sessions:
                await ended(store, session)
            got = await apart.end({session: store[session].head().seq for session in sessions})
        all_have(store, got, sessions)
        for session in sessions:
            spoken = "".join(event.payload.text for event in store[session].read(types=["assistant_chunk"]))
            assert spoken == "".join(f"{number} " for number in range(1, 100 * seconds + 1))
    _, late, longest = map(float, (tmp_path / "probe").read_text().split())
    figure("agents", agents)
    figure("clients", agents * clients)
    report(figure, got, seconds)
    figure("loop late p99 ms", late)
    figure("loop held up at most ms", longest)


@proves("B-03")
async def test_many_clients_of_one_session(tmp_path: Path, figure: Figures):
    clients, seconds, rate = amount(40, 100), amount(4, 60), 200
    with process(tmp_path, *ROOM) as server, JsonlStore(tmp_path) as store:
        session = store.create().session_id
        half = Apart(server, logs(store, [session]), clients // 2), Apart(server, logs(store, [session]), clients // 2)
        began, number = time.perf_counter(), 0
        while number < rate * seconds:
            due = min(int((time.perf_counter() - began) * rate), rate * seconds)
            store[session].append(words(due - number, number))
            number = due
            await asyncio.sleep(0.01)
        for apart in half:
            got = await apart.end({session: store[session].head().seq})
            all_have(store, got, [session])
            report(figure, got, (time.perf_counter() - began) / 2)
    figure("clients", clients)


@proves("B-04")
async def test_a_large_log_behind_the_server(tmp_path: Path, figure: Figures):
    """Its entry in the list, its end, and any place in it, without reading the rest; memory stays where it was."""
    size = amount(50, 1000) * MB
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        text = "x" * 480
        while store[session].head().bytes < size:
            store[session].append([assistant_chunk(text=f"{number} {text}") for number in range(5000)])
        head = store[session].head()
    with process(tmp_path) as server:
        async with server.http() as http, server.socket() as peer:
            await http.get("/api")
            before = server.memory()
            for name, path in {
                "entry": f"/api/sessions/{session}",
                "last 100": f"/api/sessions/{session}/events?logId={head.log_id}&after={head.seq - 100}",
                "middle": f"/api/sessions/{session}/events?logId={head.log_id}&after={head.seq // 2}&limit=100",
            }.items():
                began = time.perf_counter()
                answer = await http.get(path)
                figure(f"{name} ms", (time.perf_counter() - began) * 1000)
                assert answer.status_code == 200
                if name != "entry":
                    first = head.seq - 100 if name == "last 100" else head.seq // 2
                    assert [event["seq"] for event in answer.json()["events"]] == list(range(first + 1, first + 101))
            began = time.perf_counter()
            await peer.subscribe(session, after={"logId": head.log_id, "seq": head.seq // 3})
            assert (await peer.until("events"))["events"][0]["seq"] == head.seq // 3 + 1
            figure("going on at any place ms", (time.perf_counter() - began) * 1000)
            grown = server.most_memory() - before
    figure("log MB", head.bytes / MB)
    figure("grown by MB at most", grown / MB)


@proves("B-06")
async def test_connections_that_break_off(tmp_path: Path, figure: Figures):
    """In the middle of the head of a request, of the upgrade, of a body; after a request whose answer nobody takes."""
    rounds, each = amount(5, 45), amount(100, 500)
    with JsonlStore(tmp_path) as store:
        session = store.create().session_id
        store[session].append(words(200))
    with process(tmp_path) as server:
        about = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        upgrade = (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        broken = [
            "",
            "GET /api HT",
            f"GET /ws HTTP/1.1\r\n{about}",
            f"GET /ws HTTP/1.1\r\n{about}{upgrade}",
            f"GET /api/sessions/{session}/stream HTTP/1.1\r\n{about}\r\n",
            f"POST /api/sessions HTTP/1.1\r\n{about}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{",
        ]
        await asyncio.to_thread(_break_off, server.port, broken, each)
        await settled(server)
        descriptors, memory = server.descriptors(), server.memory()
        for _ in range(rounds):
            await asyncio.to_thread(_break_off, server.port, broken, each)
        await eventually(lambda: server.descriptors() <= descriptors)
        grown = server.memory() - memory
        assert server.stop() == ""
    figure("connections", rounds * each)
    figure("grown by MB", grown / MB)


def _break_off(port: int, said: list[str], times: int) -> None:
    for number in range(times):
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(said[number % len(said)].encode())
            if number % 4 == 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


async def settled(server: Process) -> None:
    """Wait until its descriptors do not change any more."""
    counts = [-1]
    while len(counts) < 4 or len(set(counts[-3:])) > 1:
        await asyncio.sleep(0.5)
        counts.append(server.descriptors())


@proves("B-07", "P-04")
async def test_a_line_of_many_megabytes_beside_a_stream(tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch):
    size = amount(30, 100) * MB
    monkeypatch.setenv("DEMO_AGENT_PACE", "0.01")
    monkeypatch.setenv("HANSARD_PROBE", str(tmp_path / "probe"))
    with station(tmp_path / "store", *ROOM) as server, JsonlStore(tmp_path / "store") as store:
        async with server.http() as http:
            flood = (await http.post("/api/sessions", json={"agent": "flood", "options": {"cwd": str(tmp_path)}})).json()["id"]
            other = await demo(http, tmp_path)
            apart = Apart(server, logs(store, [flood, other]))
            await send(http, other, "count 400")
            await asyncio.sleep(0.5)
            await send(http, flood, f"line {size}")
            await ended(store, flood)
            await ended(store, other)
            got = await apart.end({session: store[session].head().seq for session in (flood, other)})
        most = server.most_memory()
        assert got["hashes"][other] == [log_hash(store, other)]
        kept = [event for event in store[flood].read() if event.original is not None and event.frame is not None]
        assert max(len(store[flood].original(event)) for event in kept) > size - 300
    longest = float((tmp_path / "probe").read_text().split()[-1])
    figure("line MB", size / MB)
    figure("memory MB at most", most / MB)
    figure("other session p99 ms", got["p99"])
    figure("loop held up at most ms", longest)


def many(folder: Path, sessions: int) -> None:
    """A store with so many small sessions."""
    with JsonlStore(folder) as store:
        for number in range(sessions):
            name = store.create(f"old-{number}", title=f"session {number}").session_id
            store[name].append(words(20))
            store[name].release()


@proves("B-08", "B-10")
async def test_a_server_with_many_sessions(tmp_path: Path, figure: Figures, monkeypatch: pytest.MonkeyPatch):
    """It starts, it lists them while some run, and does next to nothing while nothing happens."""
    sessions, running, quiet = amount(300, 990), amount(3, 10), amount(2, 30)
    many(tmp_path / "store", sessions)
    began = time.perf_counter()
    with process(tmp_path / "store", *ROOM) as server, JsonlStore(tmp_path / "store") as store:
        figure("ready after ms", (time.perf_counter() - began) * 1000)
        async with server.http() as http, server.socket() as peer:
            started = [await demo(http, tmp_path, "say hello") for _ in range(running)]
            for session in started:
                await ended(store, session)
            await peer.say(type="watch")
            assert len((await peer.until("sessions"))["changed"]) == sessions + running
            began = time.perf_counter()
            listed = (await http.get("/api/sessions?limit=1000")).json()["sessions"]
            figure("list ms", (time.perf_counter() - began) * 1000)
            assert {one["id"] for one in listed} == {f"old-{number}" for number in range(sessions)} | set(started)
            assert sum(one.get("here", False) for one in listed) == running
            await asyncio.sleep(1)
            before = _cpu(server.pid)
            await asyncio.sleep(quiet)
            figure("idle CPU, %, with the list watched", 100 * (_cpu(server.pid) - before) / quiet)
    figure("sessions", sessions)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@proves("B-09")
def test_every_append_synced(tmp_path: Path, figure: Figures):
    times = amount(500, 20_000)
    with JsonlStore(tmp_path, fsync="always") as store:
        session = store.create().session_id
        some, began = words(times), time.perf_counter()
        for event in some:
            store[session].append([event])
        seconds = time.perf_counter() - began
        lines = [record.line for record in store[session].records(types=["assistant_chunk"])]
        assert len(lines) == times
    with (tmp_path / "bare").open("wb", buffering=0) as file:
        began = time.perf_counter()
        for line in lines:
            file.write(line + b"\n")
            os.fdatasync(file.fileno())
        bare = time.perf_counter() - began
    figure("appends a second", times / seconds)
    figure("of the speed of a bare loop", bare / seconds)
