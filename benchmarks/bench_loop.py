"""How long an event loop is held up while sessions stream: ``python benchmarks/bench_loop.py [--sessions N] [--seconds S]``.

Every session has a process of its own that speaks all the time, turn after turn. What a turn begins and ends with is synced to the disk
before it is shown. A probe sleeps for two milliseconds again and again; how much longer it slept is how late everything else was, too.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from hansard.agents.agent import Options
from hansard.session import Session
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
        await session.say(WORDS)
        await session.idle()


async def measure(store: JsonlStore, folder: str, sessions: int, seconds: float) -> tuple[list[float], int, int]:
    """The lateness, the events and the turns of so many sessions at once."""
    pace = {"DEMO_AGENT_PACE": "0.01"}
    running = [Session.create(store, "demo", Options(cwd=folder, env=pace)) for _ in range(sessions)]
    for session in running:
        await session.start()
    late: list[float] = []
    before = sum(store.head(session.id).seq for session in running)
    probing = asyncio.create_task(probe(late))
    await asyncio.gather(*(talk(session, time.perf_counter() + seconds) for session in running))
    probing.cancel()
    events = sum(store.head(session.id).seq for session in running) - before
    turns = sum(len(list(store.read(session.id, types=["turn_end"]))) for session in running)
    await asyncio.gather(*(session.close() for session in running))
    return late, events, turns


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--folder", type=Path, help="where the logs are to lie")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder, JsonlStore(Path(folder) / "store") as store:
        late, events, turns = asyncio.run(measure(store, folder, asked.sessions, asked.seconds))
    late.sort()
    print("| sessions | events/s | turns | late p50 | p99 | p99.9 | at most |\n|---|---|---|---|---|---|---|")
    shares = [late[min(len(late) - 1, int(len(late) * share))] for share in (0.5, 0.99, 0.999, 1)]
    cells = [f"{asked.sessions}", f"{events / asked.seconds:,.0f}", f"{turns}", *(f"{milliseconds:.1f} ms" for milliseconds in shares)]
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
