"""What things cost on PostgreSQL, in processor time and bytes: ``python benchmarks/measure_costs.py [--out docs/costs.json]``.

Processor time, not time: a machine that others use too gives the same figures within a fifth. Every figure is the smallest of several
rounds. `docs/scale.md` and `benchmarks/simulate_fleet.py` are fed with them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from bench_postgres import LIKE_PRODUCTION, SCHEMA, chunk, with_schema

from hansard.events import Event
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.store import JsonlStore, Store, open_store
from tests.postgres import Server
from tests.server.served import Peer, Process

TICKS = os.sysconf("SC_CLK_TCK")
BATCH = 5
"""Events of an append while somebody watches."""
RECORDINGS = Path(__file__).parents[1] / "tests" / "recordings"


class Spent(NamedTuple):
    """Processor seconds here and in the database, and bytes of WAL."""

    here: float
    database: float
    wal: float

    def per(self, things: float) -> dict[str, float]:
        """In microseconds and bytes for each."""
        return {"us": 1e6 * self.here / things, "db_us": 1e6 * self.database / things, "wal": self.wal / things}


class Meter:
    """Reads the meters of a database that runs here."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = psycopg.connect(server.address(), autocommit=True)

    def ask(self, text: str) -> Any:
        """One figure."""
        found = self._connection.execute(text.encode()).fetchone()
        return found[0] if found else None

    def execute(self, text: str) -> None:
        self._connection.execute(text.encode())

    def wal(self) -> int:
        return int(self.ask("SELECT pg_current_wal_insert_lsn() - '0/0'"))

    def database(self) -> float:
        """Processor seconds of the server and everybody it started, the dead included."""
        total = 0
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    total += _ticks(folder, self._server.pid)
        return total / TICKS

    def spent(self, work: Callable[[], object], rounds: int = 3) -> Spent:
        """What work costs, at the least."""
        found: list[Spent] = []
        for _ in range(rounds):
            wal, database, here = self.wal(), self.database(), time.process_time()
            work()
            found.append(Spent(time.process_time() - here, self.database() - database, self.wal() - wal))
        return Spent(*(min(column) for column in zip(*found, strict=True)))


def _ticks(folder: Path, postmaster: int) -> int:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    if int(folder.name) == postmaster:
        return sum(map(int, fields[11:15]))
    return sum(map(int, fields[11:13])) if int(fields[1]) == postmaster else 0


def cpu_of(pid: int) -> float:
    """Processor seconds of a process."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / TICKS


def batches(size: int, count: int) -> list[list[Event]]:
    return [[chunk(number) for number in range(size)] for _ in range(count)]


def append_costs(meter: Meter, store: Store) -> dict[str, float]:
    """A batch costs something, and each event in it: from batches of 1 and of 100."""
    names = [f"0194d1f6-8a49-7f6c-9b0a-{number:012d}" for number in range(20)]  # as long as real ones, and as many as a server may write
    for name in names:
        store[name].append([chunk(0)])

    def write(size: int, count: int) -> Spent:
        given = batches(size, count)
        return meter.spent(lambda: [store[names[number % 20]].append(batch) for number, batch in enumerate(given)])

    ones, hundreds = write(1, 2_000).per(2_000), write(100, 300).per(300)
    found: dict[str, float] = {}
    for what in ("us", "db_us", "wal"):
        event = (hundreds[what] - ones[what]) / 99
        found[f"append_{what}"], found[f"event_{what}"] = ones[what] - event, event
    return found


def heartbeat_costs(meter: Meter, store: Any, address: str) -> dict[str, float]:
    """A heartbeat, a notification nobody listens to, and what it costs for each who listens to something else: all are woken."""
    beat = meter.spent(lambda: [store._lease._renew() for _ in range(2_000)]).per(2_000)

    def tell() -> None:
        for number in range(2_000):
            store._lease._changed.append(f"session-{number}")
            store._lease._send_notifications()

    news = meter.spent(tell).per(2_000)
    listeners = 50
    with ExitStack() as stack:
        for number in range(listeners):
            listener = stack.enter_context(psycopg.connect(address, autocommit=True))
            listener.execute(f"LISTEN other_{number}".encode())
        crowd = meter.spent(tell).per(2_000)
    return {
        "beat_us": beat["us"],
        "beat_db_us": beat["db_us"],
        "beat_wal": beat["wal"],
        "notify_us": news["us"],
        "notify_db_us": news["db_us"],
        "listener_db_us": max(0.0, crowd["db_us"] - news["db_us"]) / listeners,
    }


def read_costs(meter: Meter, store: Store) -> dict[str, float]:
    """A seek with a page of a hundred lines, as a client that comes back makes it."""
    name = "0194d1f6-8a49-7f6c-9b0a-000000000000"
    head = store[name].head().seq
    seek = meter.spent(lambda: [sum(1 for _ in store[name].records(place % (head - 100), 100)) for place in range(0, 2_000_000, 1_000)])
    cost = seek.per(2_000)
    return {"seek_us": cost["us"], "seek_db_us": cost["db_us"]}


def connect_costs(meter: Meter, server: Server) -> dict[str, float]:
    """A new connection with a password over TCP, and what one that did some work holds in memory."""

    def connect() -> None:
        for _ in range(100):
            psycopg.connect(server.tcp()).close()

    cost = meter.spent(connect).per(100)
    backends = [
        int(pid)
        for pid in str(meter.ask("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = 'hansard'")).split()
    ]
    held = [_private(pid) for pid in backends]
    return {"connect_us": cost["us"], "connect_db_us": cost["db_us"], "backend_bytes": max(held, default=0)}


def _private(pid: int) -> int:
    """Its own memory: not the buffers that all of them share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def list_costs(meter: Meter, address: str) -> dict[str, float]:
    """The list of sessions: what each session in it costs at every look."""
    many = 20_000
    meter.execute(
        f"INSERT INTO {SCHEMA}.session (id, log_id, seq, bytes, title, agent, format, created, updated, status, state) "
        f"SELECT 'many-' || n, 'log', 1, 100, 'a title as long as most of them are', 'claude', 'claude-stream-json', n, n, 'completed', '' "
        f"FROM generate_series(1, {many}) n"
    )
    with open_store(address) as store:
        store.sessions()
        cost = meter.spent(store.sessions).per(many)
    meter.execute(f"DELETE FROM {SCHEMA}.session WHERE id LIKE 'many-%'")
    return {"list_us": cost["us"], "list_db_us": cost["db_us"]}


def disk_costs(meter: Meter, address: str, root: Path) -> dict[str, float]:
    """The recordings of the tests as logs: so many bytes an event in a folder, in tables and in indexes."""
    deque_all(import_all(root / "folder", discover([RECORDINGS], None).jobs, True, 0, 1))
    with JsonlStore(root / "folder") as folder, open_store(address) as store:
        events = lines = 0
        for info in folder.sessions():
            if info.problem is None and info.events:
                events, lines = events + info.events, lines + info.bytes
                store[info.id].ingest(folder[info.id].records())
        for table in ("event", "session"):
            meter.execute(f"VACUUM FULL ANALYZE {SCHEMA}.{table}")
    sizes = {
        "table": f"SELECT pg_table_size('{SCHEMA}.event') + pg_table_size('{SCHEMA}.session')",
        "keys": f"SELECT sum(pg_relation_size('{SCHEMA}.' || name)) FROM unnest(ARRAY['event_pkey', 'session_pkey', 'event_id']) AS name",
        "search": f"SELECT coalesce(pg_relation_size(to_regclass('{SCHEMA}.event_said')), 0)",
    }
    found = {f"disk_{name}": int(meter.ask(text)) / events for name, text in sizes.items()}
    return {"disk_events": events, "disk_folder": lines / events, **found}


def deque_all(things: Any) -> None:
    for _ in things:
        pass


# ---- a server and its subscribers


async def watched(meter: Meter, address: str, sessions: int, subscribers: int, seconds: float) -> dict[str, float]:
    """A real server; sessions that another process writes; clients on its sockets. What a second of it costs."""
    names = [f"watched-{subscribers}-{number}" for number in range(sessions)]
    room = [word for limit in ("per_session=2000", "connections=5000", "burst=5000") for word in ("--limit", limit)]
    server = Process(address, "--observer-link", *room)  # type: ignore[arg-type]
    try:
        with open_store(address) as store:
            for name in names:
                store.create(name)
            bare = server.memory()
            async with AsyncExitStack() as stack:
                peers: list[Peer] = []
                for _ in range(subscribers):
                    peer = await stack.enter_async_context(server.socket())
                    for name in names:
                        await peer.subscribe(name, name)
                    peers.append(peer)
                drains = [asyncio.create_task(_drain(peer)) for peer in peers]
                await asyncio.sleep(1)
                idle = await _second(meter, server, asyncio.sleep(seconds / 2), seconds / 2)
                before = meter.database()
                appended = 0
                cpu = cpu_of(server.pid)
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    for name in names:
                        await asyncio.to_thread(store[name].append, [chunk(number) for number in range(BATCH)])
                        appended += BATCH
                    await asyncio.sleep(0.2)
                await asyncio.sleep(0.5)
                busy = cpu_of(server.pid) - cpu
                database = meter.database() - before
                memory = server.memory()
                for drain in drains:
                    drain.cancel()
        heard = sum(int(result) for result in await asyncio.gather(*drains, return_exceptions=True) if isinstance(result, int))
    finally:
        server.stop()
    return {
        "appended": appended,
        "heard": heard,
        "server_s": busy,
        "database_s": database,
        "idle_server": idle[0],
        "idle_database": idle[1],
        "bare": bare,
        "memory": memory,
    }


async def _second(meter: Meter, server: Process, work: Any, seconds: float) -> tuple[float, float]:
    cpu, database = cpu_of(server.pid), meter.database()
    await work
    return (cpu_of(server.pid) - cpu) / seconds, (meter.database() - database) / seconds


async def _drain(peer: Peer) -> int:
    """Take everything, and count the events by their ids without looking at them."""
    heard = 0
    with suppress(asyncio.CancelledError):
        while True:
            message = await peer.socket.recv()
            heard += message.count('"seq":') if isinstance(message, str) else message.count(b'"seq":')
            if '"type":"ping"' in str(message)[:40]:
                await peer.say(type="pong")
    return heard


def subscriber_costs(meter: Meter, address: str, seconds: float) -> dict[str, float]:
    """From few and from many subscribers of the same sessions: what a delivery costs, what following a session costs."""
    sessions, few, many = 20, 1, 21
    low = asyncio.run(watched(meter, address, sessions, few, seconds))
    high = asyncio.run(watched(meter, address, sessions, many, seconds))
    per_event = {name: run["server_s"] * 1e6 / run["appended"] for name, run in (("low", low), ("high", high))}
    delivery = (per_event["high"] - per_event["low"]) / (many - few)
    return {
        "delivery_us": delivery,
        "wake_us": BATCH * (per_event["low"] - delivery),
        "watched_db_us": BATCH * 1e6 * low["database_s"] / low["appended"],
        "idle_server_us": 1e6 * low["idle_server"],
        "idle_database_us": 1e6 * low["idle_database"],
        "server_bytes": low["bare"],
        "subscription_bytes": max(0.0, (high["memory"] - low["memory"]) / (sessions * (many - few))),
        "heard": low["heard"] + high["heard"],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path)
    options.add_argument("--seconds", type=float, default=10)
    given = options.parse_args()
    root = Path(tempfile.mkdtemp(prefix="hansard-costs-"))
    costs: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
    }
    try:
        with Server(**LIKE_PRODUCTION) as server:
            meter, address = Meter(server), with_schema(server.address())
            costs["postgresql"] = meter.ask("SHOW server_version").split()[0]
            with open_store(address) as store:
                costs |= append_costs(meter, store)
                costs |= heartbeat_costs(meter, store, server.address())
                costs |= read_costs(meter, store)
                costs |= connect_costs(meter, server)
            costs |= list_costs(meter, address)
            costs |= subscriber_costs(meter, address, given.seconds)
            # what is not the append itself, nor its notification: the follower that looks
            rest = costs["append_db_us"] + BATCH * costs["event_db_us"] + costs["notify_db_us"]
            costs["wake_db_us"] = max(0.0, costs["watched_db_us"] - rest)
            costs["fsyncs_s"] = fsyncs(server.folder)
        with Server(**LIKE_PRODUCTION) as server:
            costs |= disk_costs(Meter(server), with_schema(server.address()), root)
    finally:
        shutil.rmtree(root)
    text = json.dumps({name: round(value, 2) if isinstance(value, float) else value for name, value in costs.items()}, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


def fsyncs(folder: Path) -> float:
    """How often a second this disk can be told to keep 8 KB."""
    path = folder / "fsyncs"
    with path.open("wb", buffering=0) as file:
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < 2:
            file.write(b"x" * 8192)
            os.fdatasync(file.fileno())
            count += 1
        took = time.perf_counter() - begin
    path.unlink()
    return count / took


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
