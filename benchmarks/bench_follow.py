"""A second process follows a log: how long after the append it has the event, and how often it woke up while nothing happened."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time

from hansard.events import assistant_chunk
from hansard.store import open_store

EVENTS = 500
PAUSE = 0.005
IDLE = 2.0


async def follow(root: str, out: int) -> None:
    """The reader: for each event the time between its append and its arrival here, in microseconds."""
    seen = 0
    async for event in open_store(root).follow("s", after=1):
        if event.type == "assistant_chunk":
            os.write(out, b"%d\n" % (time.monotonic_ns() // 1000 - int(event.payload.text)))
            seen += 1
            if seen == EVENTS:
                return


def main() -> None:
    """Print the latencies and what waiting costs."""
    with tempfile.TemporaryDirectory() as root:
        store = open_store(root)
        store.create("s")
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            asyncio.run(follow(root, send))
            os._exit(0)
        os.close(send)
        time.sleep(0.5)
        before = _switches(child)
        time.sleep(IDLE)
        idle = _switches(child) - before
        for _ in range(EVENTS):
            store.append("s", [assistant_chunk(text=str(time.monotonic_ns() // 1000))])
            time.sleep(PAUSE)
        with os.fdopen(receive) as pipe:
            taken = sorted(int(line) / 1000 for line in pipe)
        os.waitpid(child, 0)
        store.close()
    print(f"{len(taken)} of {EVENTS} events; ms until the other process has one: "
          f"p50 {statistics.median(taken):.2f}, p99 {taken[int(len(taken) * 0.99)]:.2f}, worst {taken[-1]:.2f}")  # fmt: skip
    print(f"wake-ups of the waiting process in {IDLE:.0f} s without events: {idle}")


def _switches(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("needs /proc")
    main()
