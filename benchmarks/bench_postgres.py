"""The store on PostgreSQL beside plain statements: what psycopg does with the same bytes in a plain table with the same key.

In the same database, by turns within one run; a server is started for it, with fsync on. Where the disk is waited for, the clock counts;
the processor time of an append, here and in the database together, stands beside it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from msgspec import Raw, Struct

from benchmarks.table import Row, figure, main, speed
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
Line = tuple[str, int, bytes]
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

    def insert(self, rows: list[Line]) -> None:
        """Row by row, in one transaction, pipelined."""
        text = "INSERT INTO line VALUES (%s, %s, %b)"
        if len(rows) == 1:
            self.connection.execute(text, rows[0])
            return
        with self.connection.transaction():
            self.connection.cursor().executemany(text, rows)

    def copy(self, rows: list[Line]) -> None:
        """All at once, in the fastest form."""
        with self.connection.cursor().copy("COPY line FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text", "int8", "bytea"])
            for row in rows:
                copy.write_row(row)

    def make_keyed(self) -> None:
        """A table with all columns and all keys of ours."""
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS keyed (LIKE {SCHEMA}.event INCLUDING ALL)".encode())

    def copy_keyed(self, rows: list[Line]) -> None:
        """The same, into that table."""
        text = "COPY keyed (session_id, seq, start, time, type, id, line) FROM STDIN (FORMAT binary)"
        with self.connection.cursor().copy(text) as copy:
            copy.set_types(["text", "int8", "int8", "int8", "text", "text", "bytea"])
            for session, seq, line in rows:
                copy.write_row((session, seq, 620 * seq, 1_700_000_000_000, "assistant_chunk", f"0194d1f6-8a49-7f6c-9b0a-{seq:012d}", line))

    def busy(self) -> float:
        """Seconds that the processes which serve us in the database have computed."""
        rows = self.connection.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'").fetchall()
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in rows) / 1e9

    def select(self, session_id: str, after: int = 0, limit: int | None = None) -> list[tuple[Any, ...]]:
        """One statement, everything at once."""
        text = "SELECT seq, line FROM line WHERE session = %s AND seq > %s ORDER BY seq LIMIT %s"
        return self.connection.cursor(binary=True).execute(text, [session_id, after, limit]).fetchall()


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


class Spent(Struct, frozen=True):
    """What something took: by the clock, and of the processors, here and in the database together."""

    wall: float
    cpu: float


def spent(plain: Plain, work: Callable[[], object]) -> Spent:
    busy, here = plain.busy(), time.process_time()
    taken = timed(work)
    return Spent(taken, time.process_time() - here + plain.busy() - busy)


def bench_append(store: Store, plain: Plain, rounds: int, share: float) -> Iterator[Row]:
    """In batches of each size: ours, COPY, INSERT, and COPY into a table with our columns and keys, in an order that changes."""
    store.create("append")
    plain.make_keyed()
    taken = {size: [_append(store, plain, size, number, share) for number in range(-1, rounds)][1:] for size in SIZES}
    for size, found in taken.items():
        what = "append one by one" if size == 1 else f"append in batches of {size:,}"

        def column(way: str, found: list[dict[str, Spent]] = found) -> list[float]:
            return [one[way].wall for one in found]

        yield speed(what, "COPY", column("ours"), column("copy"), at_least=0.5)
        yield speed(what, "INSERT, pipelined", column("ours"), column("insert"))
        yield speed(what, "COPY with our columns and keys", column("ours"), column("keyed"))
        yield speed(f"{what}: CPU", "COPY: CPU", *[[one[way].cpu for one in found] for way in ("ours", "copy")])
        yield figure(what, [max(size, int(SIZES[size] * share)) / one for one in column("ours")], "events/s")


def _append(store: Store, plain: Plain, size: int, number: int, share: float) -> dict[str, Spent]:
    """One round. That before the first does not count: statements are prepared, files grow."""
    events = max(size, int(SIZES[size] * share))
    lines = _lines(store, f"append-{size}-sample", events)
    given = [list(map(chunk, numbers)) for numbers in batched(range(events), size)]
    rows = {way: list(batched(_rows(f"{way}-{size}-{number}", lines), size)) for way in ("copy", "insert", "keyed")}
    works: list[tuple[str, Callable[[], object]]] = [
        ("ours", lambda: [store[f"append-{size}"].append(batch) for batch in given]),
        ("copy", lambda: [plain.copy(batch) for batch in rows["copy"]]),
        ("insert", lambda: [plain.insert(batch) for batch in rows["insert"]]),
        ("keyed", lambda: [plain.copy_keyed(batch) for batch in rows["keyed"]]),
    ]
    turn = number % len(works)
    return {way: spent(plain, work) for way, work in works[turn:] + works[:turn]}


def _lines(store: Store, name: str, events: int) -> list[bytes]:
    """As many lines as there will be, as they stand in our log: the same bytes for everybody."""
    first = store[name].append([chunk(number) for number in range(events)])[0].seq
    return [record.line for record in store[name].records(first - 1, events)]


def _rows(session_id: str, lines: list[bytes]) -> Iterator[Line]:
    return ((session_id, seq, line) for seq, line in enumerate(lines, 1))


def bench_read(store: Store, plain: Plain, rounds: int, events: int) -> Iterator[Row]:
    """All of a log, as lines and as events, and any place of it."""
    for start in range(0, events, 1_000):
        store["long"].append([chunk(number) for number in range(start, start + 1_000)])
    store["long"].release()
    plain.copy([("long", record.seq, record.line) for record in store["long"].records()])
    head = store["long"].head().seq
    for table in (f"{SCHEMA}.event", f"{PLAIN}.line"):
        plain.connection.execute(f"VACUUM ANALYZE {table}".encode())
    luck = random.Random(1)
    works: dict[str, Callable[[], object]] = {
        "read all, as lines": lambda: count(store["long"].records()),
        "read all, as events": lambda: count(store["long"].read()),
        "read all, in blocks of events": lambda: sum(len(block) for block, _ in store["long"].read_blocks(1024 * 1024)),
    }
    limits = (1, 100, 1_000)
    ours: dict[str | int, list[float]] = {name: [] for name in (*works, *limits)}
    theirs: dict[str | int, list[float]] = {name: [] for name in (*works, *limits)}
    for _ in range(-1, rounds):  # the first one does not count
        for name, work in works.items():
            theirs[name].append(timed(lambda: plain.select("long")))
            ours[name].append(timed(work))
        for limit in limits:
            places = luck.sample(range(head - limit), 30 if limit == 1_000 else min(200, events // 10))
            theirs[limit].append(timed(lambda places=places, limit=limit: [plain.select("long", place, limit) for place in places]))
            ours[limit].append(timed(lambda places=places, limit=limit: [count(store["long"].records(place, limit)) for place in places]))
    for name in works:
        yield speed(name, "SELECT", ours[name][1:], theirs[name][1:], at_least=0.5)
    for limit in limits:
        yield speed(f"any cursor, then {limit:,}", "SELECT", ours[limit][1:], theirs[limit][1:], at_least=0.5)


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
        async for record in store[session_id].follow_records():
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


def bench_follow(address: str, plain_address: str, rounds: int, events: int) -> Iterator[Row]:
    """One event every ten milliseconds: how long until another process has it, ours and plain by turns."""
    all_ours: list[list[float]] = []
    all_plain: list[list[float]] = []
    for number in range(rounds):
        name = f"live-{number}"
        with open_store(address) as store:
            store.create(name)
            with follower(lambda name=name: hansard_follow(address, name), events) as ours:
                for _ in range(events):
                    store[name].append([assistant_chunk(text=stamp())])
                    time.sleep(0.01)
        with follower(lambda name=name: plain_follow(plain_address, name), events) as others:
            _plain_say(plain_address, name, events)
        all_ours.append(ours)
        all_plain.append(others)
    yield speed(
        "follow, p50",
        "INSERT and NOTIFY, LISTEN and SELECT",
        *[[statistics.median(taken) for taken in found] for found in (all_ours, all_plain)],
        at_least=0.5,
    )
    yield figure("follow, p50", [statistics.median(taken) for taken in all_ours], "ms")
    yield figure("follow, p99", [taken[int(len(taken) * 0.99)] for taken in all_ours], "ms")


def _plain_say(address: str, name: str, events: int) -> None:
    text = f"WITH written AS (INSERT INTO {PLAIN}.line VALUES (%s, %s, %b)) SELECT pg_notify('{PLAIN}', '')".encode()
    with psycopg.connect(address, autocommit=True) as connection:
        for seq in range(1, events + 1):
            connection.execute(text, [name, seq, b'{"text":"' + stamp().encode() + b'"}'])
            time.sleep(0.01)


# ---- all of it


def with_schema(address: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}schema={SCHEMA}"


def rows(short: bool) -> Iterable[Row]:
    """All of them, on a server of their own."""
    rounds, share = (1, 0.05) if short else (7, 1.0)
    with Server(**LIKE_PRODUCTION) as server:
        address = server.address()
        ours = with_schema(address)
        plain = Plain(address)
        with open_store(ours) as store:
            yield from bench_append(store, plain, rounds, share)
            yield from bench_read(store, plain, rounds, 2_000 if short else 50_000)
        yield from bench_follow(ours, address, min(5, rounds), int(200 * share))
        plain.connection.close()


if __name__ == "__main__":
    main(rows)
