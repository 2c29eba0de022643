"""A second process follows a log: how long after the append it has the event, and how often it wakes up while nothing happens."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterable

from benchmarks.table import Row, figure, main
from hansard.events import assistant_chunk
from hansard.store import open_store

PAUSE = 0.005


async def follow(root: str, events: int, out: int) -> None:
    """The reader: for each event the time between its append and its arrival here, in microseconds."""
    seen = 0
    async for event in open_store(root)["s"].follow(after=1):
        if event.type == "assistant_chunk":
            os.write(out, b"%d\n" % (time.monotonic_ns() // 1000 - int(event.payload.text)))
            seen += 1
            if seen == events:
                return


def measured(events: int, idle: float) -> tuple[list[float], int]:
    """Of one follower: the milliseconds until it had each event, in order, and its wake-ups without any."""
    with tempfile.TemporaryDirectory() as root:
        store = open_store(root)
        store.create("s")
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            asyncio.run(follow(root, events, send))
            os._exit(0)
        os.close(send)
        time.sleep(0.5)
        before = _switches(child)
        time.sleep(idle)
        woken = _switches(child) - before
        for _ in range(events):
            store["s"].append([assistant_chunk(text=str(time.monotonic_ns() // 1000))])
            time.sleep(PAUSE)
        with os.fdopen(receive) as pipe:
            taken = sorted(int(line) / 1000 for line in pipe)
        os.waitpid(child, 0)
        store.close()
    return taken, woken


def _switches(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def rows(short: bool) -> Iterable[Row]:
    """Three followers, one after the other."""
    events, idle, rounds = (20, 0.1, 1) if short else (500, 2.0, 3)
    found = [measured(events, idle) for _ in range(rounds)]
    yield figure("follow in another process, p50", [statistics.median(taken) for taken, _ in found], "ms")
    yield figure("follow in another process, p99", [taken[int(len(taken) * 0.99)] for taken, _ in found], "ms")
    yield figure("follow, wake-ups a second without events", [woken / idle for _, woken in found], "")


if __name__ == "__main__":
    main(rows)
