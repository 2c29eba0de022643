"""The embedded store beside the bare system calls with the same bytes, and what a log of a million events and a gigabyte costs.

Processor time, but where the disk is waited for: there appends and bare calls take turns one by one. Reading stands beside iterating
the lines of the file, and beside the least that anybody does who looks at each of them: decoding its head.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from benchmarks.table import Row, cpu, figure, interleaved, main, speed, wall
from hansard.events import Event, assistant_chunk
from hansard.store import JsonlStore

ORIGINAL = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the quick brown fox"}},'
    b'"session_id":"7a2e1234-8a49-4f6c-9b0a-000000000000","parent_tool_use_id":null,"uuid":"0f6e0c9c-1111-4e3d-a111-123456789abc"}'
)
PADDING = " and so on" * 50
"""Makes a million events a gigabyte."""
T = TypeVar("T")


def chunk(number: int, more: str = "") -> Event:
    """An event as a live agent makes them, about 560 bytes with its original."""
    event = assistant_chunk(text=f" the quick brown fox {number}{more}")
    event.turn_id, event.response_id, event.block_index = "turn-1", "msg_01XFDUDYJgAACzvnptvVoYEL", 0
    event.source, event.frame, event.original = "claude", number, Raw(ORIGINAL)
    return event


def batched(things: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch


def open_bare(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def count(things: Iterable[object]) -> int:
    return sum(1 for _ in things)


# --------------------------------------------------------------------------------------------------------------------
# Appending


def appending(root: Path, events: int, rounds: int) -> Iterator[Row]:
    """One by one and in batches, with the default policy: the processor time, and the speed by the clock."""
    given = [chunk(number) for number in range(events)]
    with JsonlStore(root) as store:
        store["s"].append(given)
        lines = [record.line + b"\n" for record in store["s"].records()]
        bare = open_bare(root / "bare")

        def write(data: list[bytes]) -> None:
            for one in data:
                os.write(bare, one)

        def append(batches: list[list[Event]]) -> None:
            for batch in batches:
                store["s"].append(batch)

        sizes = (1, 100, 1_000)
        contenders: dict[str, Callable[[], float]] = {"each": lambda: cpu(lambda: write(lines))}
        speeds: dict[int, list[float]] = {size: [] for size in sizes}
        for size in sizes:
            batches = list(batched(given, size))
            joined = [b"".join(some) for some in batched(lines, size)]

            def ours(size: int = size, batches: list[list[Event]] = batches) -> float:
                begin = time.perf_counter()
                taken = cpu(lambda: append(batches))
                speeds[size].append(events / (time.perf_counter() - begin))
                return taken

            contenders[f"ours {size}"] = ours
            contenders[f"joined {size}"] = lambda joined=joined: cpu(lambda: write(joined))
        taken = interleaved(rounds, contenders)
        os.close(bare)
    for size in sizes:
        name = "append one by one" if size == 1 else f"append in batches of {size:,}"
        yield speed(name, "os.write of each line", taken[f"ours {size}"], taken["each"], at_least=0.6 if size > 1 else None)
        if size > 1:
            yield speed(name, "os.write of the whole batch", taken[f"ours {size}"], taken[f"joined {size}"])
        yield figure(f"{name}, by the clock", speeds[size], "events/s", at_least=20_000)


def syncing(root: Path, times: int, rounds: int) -> Iterator[Row]:
    """Every append on the disk before it is acknowledged, beside write and fdatasync, by turns append for append."""
    for size in (1, 100):
        ours, theirs = [0.0] * rounds, [0.0] * rounds
        with JsonlStore(root / f"strict-{size}", "always") as store:
            store.create("s")
            bare = open_bare(root / f"strict-{size}" / "bare")

            def write(data: bytes, bare: int = bare) -> None:
                os.write(bare, data)
                os.fdatasync(bare)

            for number in range(rounds):
                for begin in range(times):
                    batch = [chunk(begin * size + one) for one in range(size)]
                    start = store["s"].head().seq
                    ours[number] += clocked(lambda batch=batch: store["s"].append(batch))
                    data = b"".join(record.line + b"\n" for record in store["s"].records(start))
                    theirs[number] += clocked(lambda data=data: write(data))
            os.close(bare)
        yield speed(f"append, batches of {size}, fsync always", "write and fdatasync", ours, theirs, at_least=0.8)


def clocked(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# --------------------------------------------------------------------------------------------------------------------
# Reading


class Heads(Struct, gc=False):
    """The head of a line."""

    seq: int
    type: str


def reading(root: Path, events: int, rounds: int) -> Iterator[Row]:
    """All of a log: as lines with their heads, and as events."""
    with JsonlStore(root) as store:
        for batch in batched(range(events), 1_000):
            store["read"].append(map(chunk, batch))
    path = root / "read" / "events.jsonl"
    head = msgspec.json.Decoder(Heads).decode

    def iterate() -> None:
        with path.open("rb") as file:
            for _ in file:
                pass

    def decode_heads() -> None:
        with path.open("rb") as file:
            for line in file:
                head(line)

    taken = interleaved(
        rounds,
        {
            "lines": lambda: cpu(iterate),
            "heads": lambda: cpu(decode_heads),
            "records": lambda: cpu(lambda: count(store["read"].records())),
            "events": lambda: cpu(lambda: count(store["read"].read())),
        },
    )
    yield speed("read, lines with their heads", "for line in file", taken["records"], taken["lines"], at_least=0.6)
    yield speed("for line in file, head decoded", "for line in file", taken["heads"], taken["lines"])
    yield speed("read, lines with their heads", "for line in file, head decoded", taken["records"], taken["heads"])
    yield speed("read, as events", "for line in file, head decoded", taken["events"], taken["heads"])
    yield figure("read, as events", [events / one for one in taken["events"]], "events per CPU second")


def a_long_log(root: Path, events: int, places: int) -> Iterator[Row]:
    """Any place of it, its end, and opening it to go on."""
    with JsonlStore(root) as store:
        for batch in batched(range(events), 1_000):
            store["long"].append([chunk(number, PADDING) for number in batch])
    store = JsonlStore(root)
    head = store["long"].head().seq
    chosen = random.Random(1).sample(range(head - 100), places)
    name = f"{events:,} events, {(root / 'long' / 'events.jsonl').stat().st_size / 1e9:.2f} GB"
    store["long"].tail(1)
    for limit in (1, 100):
        used, clock, read = [], [], []
        for place in chosen:
            before, begin, now = read_so_far(), time.process_time(), time.perf_counter()
            found = count(store["long"].read(place, limit))
            clock.append(1000 * (time.perf_counter() - now))
            used.append(1000 * (time.process_time() - begin))
            read.append((read_so_far() - before) / 1024)
            assert found == limit
        yield figure(f"{name}: any cursor, then {limit}: CPU, worst of {places}", [max(used)], "ms", at_most=5.0)
        yield figure(f"{name}: any cursor, then {limit}: by the clock", clock, "ms", at_most=5.0)
        yield figure(f"{name}: any cursor, then {limit}: bytes read", read, "KiB")
    opened = [1000 * wall(lambda: store["long"].append([chunk(0)])) for _ in range(20) if store["long"].release() is None]
    store.close()
    yield figure(f"{name}: opened for append", opened, "ms", at_most=100.0)


def read_so_far() -> int:
    """Bytes that this process has read so far, from whatever."""
    return int(Path("/proc/self/io").read_text().split()[1])


def rows(short: bool) -> Iterable[Row]:
    """All of them, in a folder that is gone afterwards."""
    rounds = 2 if short else 9
    with tempfile.TemporaryDirectory(prefix="hansard-bench-") as folder:
        root = Path(folder)
        yield from appending(root / "append", 1_000 if short else 20_000, rounds)
        yield from syncing(root, 2 if short else 40, rounds)
        yield from reading(root / "read", 1_000 if short else 100_000, rounds)
        yield from a_long_log(root / "long", 2_000 if short else 1_000_000, 5 if short else 300)


if __name__ == "__main__":
    main(rows)
