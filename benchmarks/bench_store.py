"""How fast the store is, beside what the machine can do: ``python benchmarks/bench_store.py [--events N] [--log N] [--rounds N]``.

Appending is compared with a bare ``os.write`` of the same bytes, syncing with a bare ``fdatasync`` loop, in turns within one run,
because a shared machine is never the same twice. The ratios are what counts; the medians are for orientation.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Raw

from hansard.events import Event, assistant_chunk
from hansard.store import JsonlStore

ORIGINAL = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the quick brown fox"}},'
    b'"session_id":"7a2e1234-8a49-4f6c-9b0a-000000000000","parent_tool_use_id":null,"uuid":"0f6e0c9c-1111-4e3d-a111-123456789abc"}'
)


def chunk(number: int) -> Event:
    """An event as a live agent makes them, about 620 bytes with its original."""
    event = assistant_chunk(text=f" the quick brown fox {number}")
    event.turn_id, event.response_id, event.block_index = "turn-1", "msg_01XFDUDYJgAACzvnptvVoYEL", 0
    event.source, event.frame, event.original = "claude", number, Raw(ORIGINAL)
    return event


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


class Appending:
    """One way of appending, against bare system calls with the same bytes."""

    def __init__(self, name: str, root: Path, batch: int, strict: bool) -> None:
        self.name, self.batch, self.strict = name, batch, strict
        self.store = JsonlStore(root / name, "always" if strict else "default")
        self.store.create("s")
        self.bare = os.open(root / f"{name}.bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.ratios: list[float] = []
        self.rates: list[float] = []

    def round(self, events: list[Event]) -> None:
        """Both ways, one after the other."""
        start = self.store.head("s").seq
        batches = [events[at : at + self.batch] for at in range(0, len(events), self.batch)]
        ours = timed(lambda: [self.store.append("s", batch) for batch in batches])
        lines = [record.line + b"\n" for record in self.store.records("s", start)]
        data = [b"".join(lines[at : at + self.batch]) for at in range(0, len(lines), self.batch)]
        bare = timed(lambda: [self._write(one) for one in data])
        self.rates.append(len(events) / ours)
        self.ratios.append(bare / ours)

    def _write(self, data: bytes) -> None:
        os.write(self.bare, data)
        if self.strict:
            os.fdatasync(self.bare)


def bench_append(root: Path, events: int, rounds: int) -> list[tuple[str, str]]:
    """Single, in batches, and strict."""
    ways = [
        Appending("append, one by one", root, 1, False),
        Appending("append, batches of 100", root, 100, False),
        Appending("append, one by one, fsync always", root, 1, True),
        Appending("append, batches of 100, fsync always", root, 100, True),
    ]
    for _ in range(rounds):
        for way in ways:
            way.round([chunk(number) for number in range(events // (10 if way.strict else 1))])
    for way in ways:
        way.store.close()
    return [
        (way.name, f"{statistics.median(way.rates):>10,.0f}/s   {statistics.median(way.ratios):.2f} of the bare system calls")
        for way in ways
    ]


def make_log(root: Path, count: int) -> JsonlStore:
    """A long log."""
    store = JsonlStore(root)
    for start in range(0, count, 1000):
        store.append("long", [chunk(number) for number in range(start, start + 1000)])
    store.release("long")
    return store


def spread(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{1000 * statistics.median(ordered):>10.2f} ms   worst {1000 * ordered[-1]:.2f} ms"


def bench_read(root: Path) -> list[tuple[str, str]]:
    """Both ends, any place, all of it, and the check."""
    store = JsonlStore(root)
    head = store.head("long").seq
    places = random.Random(1).sample(range(head), 200)
    rows = [
        ("last 100", spread([timed(lambda: store.tail("long", 100)) for _ in range(50)])),
        ("any cursor, then 100", spread([timed(lambda place=place: list(store.read("long", place, 100))) for place in places])),
        ("list entry", spread([timed(store.sessions) for _ in range(20)])),
        ("open for append", spread([reopen(store) for _ in range(5)])),
    ]
    for name, work in {
        "read all, as events": lambda: count(store.read("long")),
        "read all, as lines": lambda: count(store.records("long")),
        "verify": lambda: store.verify("long"),
    }.items():
        took = timed(work)
        rows.append((name, f"{head / took:>10,.0f}/s   {took:.2f} s"))
    rows.append(("memory of all this", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:>10.0f} MB   highest RSS"))
    return rows


def count(things: object) -> int:
    return sum(1 for _ in things)  # type: ignore[attr-defined]


def reopen(store: JsonlStore) -> float:
    took = timed(lambda: store.append("long", [chunk(0)]))
    store.release("long")
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=20_000, help="events per round of appending")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--log", type=int, default=1_000_000, help="events in the long log")
    options.add_argument("--read-only", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.read_only:
        rows = bench_read(given.read_only)
        print("\n".join(f"{name:<40}{value}" for name, value in rows))
        return
    root = Path(tempfile.mkdtemp(prefix="hansard-bench-"))
    try:
        for name, value in bench_append(root, given.events, given.rounds):
            print(f"{name:<40}{value}")
        make_log(root / "long", given.log)
        size = (root / "long" / "long" / "events.jsonl").stat().st_size
        print(f"\na log of {given.log:,} events, {size / 1e6:,.0f} MB")
        sys.stdout.flush()
        # a process of its own, so that its memory is that of reading alone
        subprocess.run([sys.executable, __file__, "--read-only", str(root / "long")], check=True)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
