"""Fan-out: many clients of one session. ``hansard serve`` beside a bare cursor loop and a queue for every client, on the same uvicorn.

The servers are in processes of their own; clients and writer are here. Our server has its log to follow on the disk and takes the
originals out; the bare ones are given the lines as they go out. What counts is the processor time of the server for each event that
reached a client.
"""

from __future__ import annotations

import base64
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Raw, Struct

from benchmarks.table import Row, figure, interleaved, main, speed
from hansard.events import Event, assistant_chunk
from hansard.events.codec import encode
from hansard.store import JsonlStore
from tests.server.served import Process

ORIGINAL = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the quick brown fox"}},'
    b'"session_id":"7a2e1234-8a49-4f6c-9b0a-000000000000","parent_tool_use_id":null,"uuid":"0f6e0c9c-1111-4e3d-a111-123456789abc"}'
)
ID = "01a1e5c9-8af9-758e-a744-ce0ea3474fc8"
SENT = re.compile(rb'"text":"at (\d+)')
BATCH = 100
AHEAD = 2000
"""So far the writer may be ahead of the slowest client when it goes as fast as it can."""


class Found(Struct, frozen=True):
    """What a run came to."""

    cpu: float
    """Seconds of the server for each event at each client."""
    wall: float
    p50: float
    p99: float
    complete: int
    """Clients that had every event."""
    kilobytes: float
    """Of memory for each client."""


def chunk() -> Event:
    """An event that says when it was made, about 620 bytes with its original."""
    event = assistant_chunk(text=f"at {time.monotonic_ns()} the quick brown fox")
    event.turn_id, event.response_id, event.block_index = "turn-1", "msg_01XFDUDYJgAACzvnptvVoYEL", 0
    event.source, event.frame, event.original = "claude", 1, Raw(ORIGINAL)
    return event


# --------------------------------------------------------------------------------------------------------------------
# Clients: as little as can be, so that the server is what is slow


class Client:
    """A socket, and how many events came through it."""

    def __init__(self, port: int, token: str, session: str | None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.events = 0
        self._rest = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._rest:
            self._rest += self.socket.recv(4096)
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise SystemExit(f"no upgrade: {head!r}")
        if session is not None:
            self._say({"type": "subscribe", "id": "a", "session": session})
            while b'"live"' not in self._rest:
                self._rest += self.socket.recv(4096)
            self._rest = b""

    def _say(self, message: dict[str, str]) -> None:
        data = json.dumps(message).encode()
        self.socket.sendall(bytes([0x81, 0x80 | len(data)]) + b"\0\0\0\0" + data)

    def hear(self) -> list[bytes]:
        """The messages that are there, whole ones."""
        new = self.socket.recv(1024 * 1024)
        if not new:
            raise SystemExit(f"a client was let go: {self._rest[-200:]!r}")
        data = self._rest + new
        at, found = 0, list[bytes]()
        while len(data) - at >= 2:
            size, begin = data[at + 1], at + 2
            if size == 126:
                size, begin = int.from_bytes(data[begin : begin + 2], "big"), at + 4
            elif size == 127:
                size, begin = int.from_bytes(data[begin : begin + 8], "big"), at + 10
            if len(data) < begin + size:
                break
            found.append(data[begin : begin + size])
            at = begin + size
            if found[-1] == b'{"type":"ping"}':
                self._say({"type": "pong"})
        self._rest = data[at:]
        return found


class Clients:
    """Many of them."""

    def __init__(self, count: int, port: int, token: str = "", session: str | None = None) -> None:
        self._all = [Client(port, token, session) for _ in range(count)]
        self._ready = selectors.DefaultSelector()
        self.late: list[float] = []
        for client in self._all:
            self._ready.register(client.socket, selectors.EVENT_READ, client)

    def hear(self, timeout: float, timed: bool) -> None:
        """Take what is there, and how old it is in milliseconds if that is wanted."""
        for key, _ in self._ready.select(timeout):
            client: Client = key.data
            for message in client.hear():
                client.events += message.count(b'"text":"at ')
                if timed:
                    now = time.monotonic_ns()
                    self.late += [(now - int(at)) / 1e6 for at in SENT.findall(message)]

    def slowest(self) -> int:
        """What everybody has."""
        return min(client.events for client in self._all)

    def complete(self, events: int) -> int:
        """Those who have everything, and nothing twice."""
        return sum(client.events == events for client in self._all)

    def close(self) -> None:
        """Go."""
        self._ready.close()
        for client in self._all:
            client.socket.close()


# --------------------------------------------------------------------------------------------------------------------
# Runs


Write = Callable[[list[Event]], object]


def written(clients: Clients, write: Write, events: int, rate: int) -> None:
    """Write so many events, at a rate, or else as fast as the slowest takes them, until everybody has them."""
    begin, done, deadline = time.perf_counter(), 0, time.monotonic() + 120
    while clients.slowest() < events and time.monotonic() < deadline:
        due = int((time.perf_counter() - begin) * rate) if rate else min(clients.slowest() + AHEAD, done + BATCH)
        if (count := min(due, events) - done) > 0:
            write([chunk() for _ in range(count)])
            done += count
        clients.hear(0.002 if done < events else 0.1, bool(rate))


def measured(pid: int, connect: Callable[[], Clients], write: Write, count: int, events: int, rate: int) -> Found:
    """What it takes until all clients have all events."""
    before = memory(pid)
    clients = connect()
    each = (memory(pid) - before) / count
    used, begin = cpu(pid), time.perf_counter()
    written(clients, write, events, rate)
    deliveries = count * events
    used, wall = (cpu(pid) - used) / deliveries, (time.perf_counter() - begin) / deliveries
    late = sorted(clients.late) or [0.0]
    clients.close()
    return Found(used, wall, late[len(late) // 2], late[int(len(late) * 0.99)], clients.complete(events), each)


def ours(count: int, events: int, rate: int) -> Found:
    """``hansard serve``, and a session that is written beside it."""
    with tempfile.TemporaryDirectory() as folder, JsonlStore(Path(folder)) as store:
        session = store.create().session_id
        room = str(count + 10)
        server = Process(Path(folder), "--limit", f"per_session={room}", "--limit", f"connections={room}")
        try:
            return measured(
                server.pid,
                lambda: Clients(count, server.port, server.token, session),
                lambda some: store[session].append(some),
                count,
                events,
                rate,
            )
        finally:
            server.stop()


def bare(kind: str, count: int, events: int, rate: int) -> Found:
    """One of the others."""
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.fanout_server", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    pipe, port = server.stdin, int(server.stdout.readline())

    def write(some: list[Event]) -> None:
        for event in some:  # as it leaves our server: without its original, and with what a store fills in
            event.original, event.id, event.session_id, event.seq, event.timestamp = None, ID, ID, 10_000, 1794856553209
        pipe.write(b"".join(encode(event) + b"\n" for event in some))
        pipe.flush()

    try:
        return measured(server.pid, lambda: Clients(count, port), write, count, events, rate)
    finally:
        pipe.close()
        server.stdout.close()
        server.wait(30)


def cpu(pid: int) -> float:
    """Seconds of processor time that the threads of a process have used."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def memory(pid: int) -> float:
    """Kilobytes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.partition("VmRSS:")[2].split()[0])


def contenders(count: int, events: int, rate: int, queued: int) -> dict[str, Callable[[], Found]]:
    """The three; queues have fewer events, they take so much longer."""
    return {
        "ours": lambda: ours(count, events, rate),
        "cursor": lambda: bare("cursor", count, events, rate),
        "queue": lambda: bare("queue", count, queued, rate),
    }


def rows(short: bool) -> Iterable[Row]:
    """As fast as it goes, at 200 events a second, and a thousand clients."""
    count, rounds = (5, 1) if short else (100, 5)
    flat = interleaved(rounds, contenders(count, 100 if short else 20_000, 0, 100 if short else 2_000))
    paced = interleaved(rounds, contenders(count, *((50, 500, 50) if short else (2_000, 200, 2_000))))
    for name, found in {"as fast as it goes": flat, "200 events/s": paced}.items():
        used = {one: [run.cpu for run in runs] for one, runs in found.items()}
        goals = (0.8, 5.0) if found is flat else (None, None)
        what = f"{count} clients, {name}: deliveries per CPU second"
        yield speed(what, "bare cursor loop", used["ours"], used["cursor"], at_least=goals[0])
        yield speed(what, "queue per client", used["ours"], used["queue"], at_least=goals[1])
    taken = {one: [run.wall for run in runs] for one, runs in flat.items()}
    yield speed(
        f"{count} clients, as fast as it goes: deliveries per second", "bare cursor loop", taken["ours"], taken["cursor"], at_least=0.8
    )
    yield figure(f"{count} clients, as fast as it goes: a delivery", [run.cpu * 1e6 for run in flat["ours"]], "µs CPU")
    yield figure(f"{count} clients, 200 events/s: p50", [run.p50 for run in paced["ours"]], "ms")
    yield figure(f"{count} clients, 200 events/s: p99", [run.p99 for run in paced["ours"]], "ms", at_most=50)
    yield figure(f"{count} clients, 200 events/s: p99 of the bare cursor loop", [run.p99 for run in paced["cursor"]], "ms")
    many = 20 if short else 1_000
    held = [ours(many, 20 if short else 300, 30) for _ in range(1 if short else 3)]
    yield figure(f"{many:,} clients, 30 events/s: have every event", [run.complete for run in held], "", at_least=many)
    yield figure(f"{many:,} clients, 30 events/s: p99", [run.p99 for run in held], "ms")
    yield figure(f"{many:,} clients: memory of each", [run.kilobytes for run in held], "kB")


if __name__ == "__main__":
    main(rows)
