"""How fast the store on PostgreSQL is, beside plain statements: ``python benchmarks/bench_postgres.py [--store postgresql://…]``.

Every figure stands beside what psycopg does with the same bytes in a plain table with the same key, in the same database, by turns within
one run, because a shared machine is never the same twice. The ratios are what counts; 1 is as fast as plain. Without an address it starts
a server of its own, with fsync on. With one it makes two schemas there, ``hansard_bench`` and ``hansard_plain``, and removes them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import psycopg
from msgspec import Raw

from hansard.events import Event, assistant_chunk
from hansard.store import Store, open_store
from tests.postgres import Server

SCHEMA, PLAIN = "hansard_bench", "hansard_plain"
LIKE_PRODUCTION = {
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "wal_compression": "off",
}
SIZES = {1: 200, 10: 1_000, 100: 10_000, 1_000: 20_000}
"""Of batches, and how many events a round of them has."""
ORIGINAL = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the quick brown fox"}},'
    b'"session_id":"7a2e1234-8a49-4f6c-9b0a-000000000000","parent_tool_use_id":null,"uuid":"0f6e0c9c-1111-4e3d-a111-123456789abc"}'
)
Row = tuple[str, int, bytes]
T = TypeVar("T")


def chunk(number: int) -> Event:
    """An event as a live agent makes them, about 620 bytes with its original."""
    event = assistant_chunk(text=f" the quick brown fox {number}")
    event.turn_id, event.response_id, event.block_index = "turn-1", "msg_01XFDUDYJgAACzvnptvVoYEL", 0
    event.source, event.frame, event.original = "claude", number, Raw(ORIGINAL)
    return event


class Plain:
    """A table with the same key and the same bytes, and nobody who looks after them."""

    def __init__(self, address: str) -> None:
        self.connection = psycopg.connect(address, autocommit=True)
        self.connection.execute(f"CREATE SCHEMA {PLAIN}".encode())
        self.connection.execute(f"SET search_path TO {PLAIN}".encode())
        self.connection.execute('CREATE TABLE line (session text COLLATE "C", seq int8, line bytea, PRIMARY KEY (session, seq))')

    def insert(self, rows: list[Row]) -> None:
        """Row by row, in one transaction, pipelined."""
        text = "INSERT INTO line VALUES (%s, %s, %b)"
        if len(rows) == 1:
            self.connection.execute(text, rows[0])
            return
        with self.connection.transaction():
            self.connection.cursor().executemany(text, rows)

    def copy(self, rows: list[Row]) -> None:
        """All at once, in the fastest form."""
        with self.connection.cursor().copy("COPY line FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text", "int8", "bytea"])
            for row in rows:
                copy.write_row(row)

    def make_keyed(self) -> None:
        """A table with all columns and all keys of ours."""
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS keyed (LIKE {SCHEMA}.event INCLUDING ALL)".encode())

    def copy_keyed(self, rows: list[Row]) -> None:
        """The same, into that table."""
        text = "COPY keyed (session_id, seq, start, time, type, id, line) FROM STDIN (FORMAT binary)"
        with self.connection.cursor().copy(text) as copy:
            copy.set_types(["text", "int8", "int8", "int8", "text", "text", "bytea"])
            for session, seq, line in rows:
                copy.write_row((session, seq, 620 * seq, 1_700_000_000_000, "assistant_chunk", f"0194d1f6-8a49-7f6c-9b0a-{seq:012d}", line))

    def select(self, session_id: str, after: int = 0, limit: int | None = None) -> list[tuple[Any, ...]]:
        """One statement, everything at once."""
        text = "SELECT seq, line FROM line WHERE session = %s AND seq > %s ORDER BY seq LIMIT %s"
        return self.connection.cursor(binary=True).execute(text, [session_id, after, limit]).fetchall()


class Figure:
    """One figure: ours and plain ones, round for round."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.ours: list[float] = []
        self.plain: dict[str, list[float]] = {}

    def add(self, ours: float, **plain: float) -> None:
        """The speeds of a round."""
        self.ours.append(ours)
        for way, speed in plain.items():
            self.plain.setdefault(way, []).append(speed)

    def __str__(self) -> str:
        words = [f"{self.name:<34}{statistics.median(self.ours):>10,.0f} {self.unit}"]
        for way, speeds in self.plain.items():
            ratios = sorted(one / other for one, other in zip(self.ours, speeds, strict=True))
            words.append(f"{way} {statistics.median(speeds):,.0f}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        return "   ".join(words)


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    gc.freeze()  # what was made for this is not to be looked through while it is timed
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def count(things: Iterator[Any]) -> int:
    return sum(1 for _ in things)


def batched(things: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch


def bench_append(store: Store, plain: Plain, rounds: int, share: float) -> Iterator[Figure]:
    """In batches of each size: ours, COPY, INSERT, and COPY into a table with our columns and keys, in an order that changes."""
    store.create("append")
    plain.make_keyed()
    figures = {size: Figure(f"append, batches of {size:,}", "events/s") for size in SIZES}
    for number in range(-1, rounds):  # the first round is not counted: statements are prepared, files grow
        for size, figure in figures.items():
            events = max(size, int(SIZES[size] * share))
            name = f"append-{size}"
            lines = _lines(store, name, events)
            given = [list(map(chunk, numbers)) for numbers in batched(range(events), size)]
            rows = {way: list(batched(_rows(f"{way}-{size}-{number}", lines), size)) for way in ("copy", "insert", "keyed")}
            works: list[tuple[str, Callable[[], object]]] = [
                ("ours", lambda name=name, given=given: [store.append(name, batch) for batch in given]),
                ("copy", lambda rows=rows: [plain.copy(batch) for batch in rows["copy"]]),
                ("insert", lambda rows=rows: [plain.insert(batch) for batch in rows["insert"]]),
                ("keyed", lambda rows=rows: [plain.copy_keyed(batch) for batch in rows["keyed"]]),
            ]
            turn = number % len(works)
            took = {way: events / timed(work) for way, work in works[turn:] + works[:turn]}
            if number >= 0:
                figure.add(
                    took["ours"], **{"COPY": took["copy"], "INSERT": took["insert"], "COPY with all columns and keys": took["keyed"]}
                )
    yield from figures.values()


def _lines(store: Store, name: str, events: int) -> list[bytes]:
    """As many lines as there will be, as they stand in our log: the same bytes for everybody."""
    sample = store.append(f"{name}-sample", [chunk(number) for number in range(100)])
    found = [record.line for record in store.records(f"{name}-sample", sample[0].seq - 1, 100)]
    return [found[number % 100] for number in range(events)]


def _rows(session_id: str, lines: list[bytes]) -> Iterator[Row]:
    return ((session_id, seq, line) for seq, line in enumerate(lines, 1))


def bench_read(store: Store, plain: Plain, rounds: int, events: int) -> Iterator[Figure]:
    """All of a log, as lines and as events, and any place of it."""
    for start in range(0, events, 1_000):
        store.append("long", [chunk(number) for number in range(start, start + 1_000)])
    store.release("long")
    plain.copy([("long", record.seq, record.line) for record in store.records("long")])
    head = store.head("long").seq
    for table in (f"{SCHEMA}.event", f"{PLAIN}.line"):
        plain.connection.execute(f"VACUUM ANALYZE {table}".encode())
    luck = random.Random(1)
    names = ["read all, as lines", "read all, as events", "read all, as blocks of events"]
    whole = [Figure(name, "events/s") for name in names]
    works = [
        lambda: count(store.records("long")),
        lambda: count(store.read("long")),
        lambda: sum(len(block) for block, _ in store.read_blocks("long", 1024 * 1024)),
    ]
    seeks = {limit: Figure(f"any cursor, then {limit}", "seeks/s") for limit in (1, 100, 1_000)}
    for number in range(-1, rounds):
        for figure, work in zip(whole, works, strict=True):
            select = timed(lambda: plain.select("long"))
            ours = timed(work)
            if number >= 0:
                figure.add(head / ours, SELECT=head / select)
        for limit, figure in seeks.items():
            places = luck.sample(range(head - limit), 200 if limit < 1_000 else 30)
            select = timed(lambda places=places, limit=limit: [plain.select("long", place, limit) for place in places])
            ours = timed(lambda places=places, limit=limit: [count(store.records("long", place, limit)) for place in places])
            if number >= 0:
                figure.add(len(places) / ours, SELECT=len(places) / select)
    yield from [*whole, *seeks.values()]


# ---- following: another process has the event


async def plain_follow(address: str, session_id: str) -> AsyncIterator[bytes]:
    """LISTEN, and at each word a SELECT of what is new."""
    connection = await psycopg.AsyncConnection.connect(address, autocommit=True)
    reading = await psycopg.AsyncConnection.connect(address, autocommit=True)
    await connection.execute(f"LISTEN {PLAIN}".encode())
    seen = 0
    text = f"SELECT seq, line FROM {PLAIN}.line WHERE session = %s AND seq > %s ORDER BY seq".encode()
    while True:
        for seq, line in await (await reading.cursor(binary=True).execute(text, [session_id, seen])).fetchall():
            seen = seq
            yield line
        async for _ in connection.notifies(timeout=1, stop_after=1):
            pass


async def hansard_follow(address: str, session_id: str) -> AsyncIterator[bytes]:
    """The store's own words."""
    with open_store(address) as store:
        async for record in store.follow_records(session_id):
            yield record.line


async def tell(lines: AsyncIterator[bytes], events: int, out: int) -> None:
    """For each event the microseconds between its append and its arrival here."""
    seen = 0
    async for line in lines:
        now = time.monotonic_ns() // 1000
        if b"at:" in line:
            os.write(out, b"%d\n" % (now - int(line.split(b"at:", 1)[1].split(b'"', 1)[0])))
            seen += 1
            if seen == events:
                return


@contextmanager
def follower(lines: Callable[[], AsyncIterator[bytes]], events: int) -> Iterator[list[float]]:
    """Another process that follows; its milliseconds are there at the end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(tell(lines(), events, send))
            status = 0
        finally:
            os._exit(status)
    os.close(send)
    taken: list[float] = []
    time.sleep(1)
    yield taken
    with os.fdopen(receive) as pipe:
        taken += sorted(int(line) / 1000 for line in pipe)
    os.waitpid(child, 0)


def stamp() -> str:
    return f"at:{time.monotonic_ns() // 1000}"


def bench_follow(address: str, plain_address: str, rounds: int, events: int) -> Iterator[str]:
    """One event every ten milliseconds: how long until another process has it, ours and plain by turns."""
    ratios: list[float] = []
    all_ours: list[float] = []
    all_plain: list[float] = []
    for number in range(rounds):
        name = f"live-{number}"
        with open_store(address) as store:
            store.create(name)
            with follower(lambda name=name: hansard_follow(address, name), events) as ours:
                for _ in range(events):
                    store.append(name, [assistant_chunk(text=stamp())])
                    time.sleep(0.01)
        with follower(lambda name=name: plain_follow(plain_address, name), events) as others:
            _plain_say(plain_address, name, events)
        all_ours += ours
        all_plain += others
        ratios.append(statistics.median(others) / statistics.median(ours))
    for name, taken in (("ours", all_ours), ("INSERT and NOTIFY, LISTEN and SELECT", all_plain)):
        taken.sort()
        p99 = taken[int(len(taken) * 0.99)]
        yield f"{'follow, ' + name:<48}p50 {statistics.median(taken):.2f} ms   p99 {p99:.2f} ms   worst {taken[-1]:.2f} ms"
    yield f"{'follow, plain p50 / our p50':<48}{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _plain_say(address: str, name: str, events: int) -> None:
    text = f"WITH written AS (INSERT INTO {PLAIN}.line VALUES (%s, %s, %b)) SELECT pg_notify('{PLAIN}', '')".encode()
    with psycopg.connect(address, autocommit=True) as connection:
        for seq in range(1, events + 1):
            connection.execute(text, [name, seq, b'{"text":"' + stamp().encode() + b'"}'])
            time.sleep(0.01)


# ---- all of it


@contextmanager
def database(given: str | None) -> Iterator[str]:
    """The address given, or a server of our own."""
    if given is None:
        with Server(**LIKE_PRODUCTION) as server:
            yield server.address()
        return
    _drop(given)
    try:
        yield given
    finally:
        _drop(given)


def _drop(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        connection.execute(f"DROP SCHEMA IF EXISTS {PLAIN} CASCADE".encode())


def with_schema(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}schema={SCHEMA}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--store", help="the address of a database; else a server is started")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--share", type=float, default=1.0, help="of the events of a round")
    options.add_argument("--log", type=int, default=50_000, help="events of the log that is read")
    options.add_argument("--only", choices=["append", "read", "follow"])
    given = options.parse_args()
    wanted = [given.only] if given.only else ["append", "read", "follow"]
    print("behind each plain way its speed, and ours as a part of it: the median of the rounds (lowest to highest)")
    with database(given.store) as address:
        plain = Plain(address)
        with open_store(with_schema(address)) as store:
            if "append" in wanted:
                print(*bench_append(store, plain, given.rounds, given.share), sep="\n", flush=True)
            if "read" in wanted:
                print(*bench_read(store, plain, given.rounds, given.log), sep="\n", flush=True)
        if "follow" in wanted:
            print(*bench_follow(with_schema(address), address, min(3, given.rounds), int(200 * given.share)), sep="\n", flush=True)
        plain.connection.close()


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("needs fork and one clock for all processes")
    main()
