"""How long an event loop is held up while sessions stream.

Every session has a process of its own that speaks all the time, turn after turn. What a turn begins and ends with is synced to the disk
before it is shown. A probe sleeps for two milliseconds again and again; how much longer it slept is how late everything else was, too.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.table import Row, figure, main
from hansard.agents.base import Options
from hansard.agents.session import Session
from hansard.store import JsonlStore

NAP = 0.002
WORDS = "say " + "the quick brown fox jumps over the lazy dog " * 12


async def probe(late: list[float]) -> None:
    """How late a nap ends, again and again, in milliseconds."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(NAP)
        late.append((time.perf_counter() - began - NAP) * 1000)


async def talk(session: Session, until: float) -> None:
    """Turn after turn."""
    while time.perf_counter() < until:
        await session.send(WORDS)
        await session.idle()


async def measure(store: JsonlStore, folder: str, sessions: int, seconds: float) -> tuple[list[float], int, int]:
    """The lateness, the events and the turns of so many sessions at once."""
    pace = {"DEMO_AGENT_PACE": "0.01"}
    running = [await Session.create(store, "demo", Options(cwd=folder, env=pace)) for _ in range(sessions)]
    for session in running:
        await session.start()
    late: list[float] = []
    before = sum(store[session.id].head().seq for session in running)
    probing = asyncio.create_task(probe(late))
    await asyncio.gather(*(talk(session, time.perf_counter() + seconds) for session in running))
    probing.cancel()
    events = sum(store[session.id].head().seq for session in running) - before
    turns = sum(len(list(store[session.id].read(types=["turn_end"]))) for session in running)
    await asyncio.gather(*(session.close() for session in running))
    return late, events, turns


def rows(short: bool) -> Iterable[Row]:
    """Ten sessions at once."""
    sessions, seconds, rounds = (2, 0.5, 1) if short else (10, 10.0, 3)
    found: list[tuple[list[float], int, int]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, JsonlStore(Path(folder) / "store") as store:
            found.append(asyncio.run(measure(store, folder, sessions, seconds)))
    for share, name in {0.5: "p50", 0.99: "p99", 1: "longest"}.items():
        values = [sorted(late)[min(len(late) - 1, int(len(late) * share))] for late, _, _ in found]
        yield figure(f"{sessions} sessions stream: the loop is late, {name}", values, "ms")
    yield figure(f"{sessions} sessions stream: events a second", [events / seconds for _, events, _ in found], "")


if __name__ == "__main__":
    main(rows)
