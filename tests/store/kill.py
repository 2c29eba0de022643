"""Kills writers: ``kill.py ROOT SIZE KILLS SEED KILLS_PER_LOG`` prints as JSON what became of their logs.

Each writer is a fork of this process, so that a kill costs milliseconds and not the start of an interpreter. It tells every
acknowledged seq through a pipe. A log is killed several times before it is checked, so most writers begin with a recovery.
"""

import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from hansard.events import Event, RawEvent, SessionLifecycle, assistant_chunk, turn_end, user_message
from hansard.store import JsonlStore

TORN = b'{"type":"assistant_chunk","id":"torn'


def batch(size: int, number: int) -> list[Event]:
    events: list[Event] = [assistant_chunk(text=f"{number} ".ljust(size, "x"))]
    if number % 3 == 0:
        events.append(assistant_chunk(text=f"{number}"))
    if number % 7 == 0:
        events.append(user_message(text=f"{number}"))
    if number % 11 == 0:
        events.append(turn_end(status="completed"))
    return events


def write(root: Path, size: int, acknowledged: int) -> None:
    """Append for ever, and tell what was acknowledged."""
    store = JsonlStore(root)
    number = 0
    while True:
        number += 1
        for event in store["s"].append(batch(size, number)):
            os.write(acknowledged, b"%d %s\n" % (event.seq, event.id.encode()))


def kill_one(root: Path, size: int, delay: float, begun: bool) -> dict[int, str]:
    """Start a writer, kill it (``begun``: not before it has acknowledged something), and return what it was told to be in the log."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        write(root, size, writing)
    os.close(writing)
    if begun:
        select.select([reading], [], [], 30)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().split(b"\n")[:-1]
    return {int(seq): name.decode() for seq, name in (line.split() for line in lines)}


def check(root: Path, acknowledged: dict[int, str], result: Counter[str]) -> None:
    """Compare a log with what was acknowledged."""
    store = JsonlStore(root)
    seqs: list[int] = []
    damaged = recovered = 0
    for event in store["s"].read():
        if isinstance(event, RawEvent):
            damaged += 1
            continue
        seqs.append(event.seq)
        if isinstance(event, SessionLifecycle) and event.payload.subtype == "log_recovered":
            recovered += not event.payload.detail["complete"]
        if acknowledged.pop(event.seq, event.id) != event.id:
            result["wrong"] += 1
    result["glued"] += sum(line.count(b'"seq":') > 1 for line in (root / "s" / "events.jsonl").read_bytes().split(b"\n"))
    kinds = Counter(finding.kind for finding in store["s"].verify())
    result["lost"] += len(acknowledged)
    result["gaps"] += seqs != list(range(1, len(seqs) + 1))
    result["torn"] += damaged
    result["unreported"] += damaged - recovered
    result["findings beside torn tails"] += kinds.total() - kinds["torn-tail"]
    result["torn tails found"] += kinds["torn-tail"]


def main(root: Path, size: int, kills: int, seed: int, per_log: int) -> None:
    chance = random.Random(seed)
    result = Counter({"lost": 0, "wrong": 0, "glued": 0})
    for log in range(0, kills, per_log):
        acknowledged: dict[int, str] = {}
        place = root / str(log)
        for _ in range(min(per_log, kills - log)):
            acknowledged |= kill_one(place, size, chance.choice((0.005, 0.03, 0.1)) * chance.random(), chance.random() < 0.5)
            if chance.random() < 0.3 and (place / "s" / "events.jsonl").exists():
                with (place / "s" / "events.jsonl").open("ab") as file:
                    file.write(TORN)  # so that the next writer is often killed while it recovers
            result["kills"] += 1
        result["acknowledged"] += len(acknowledged)
        with JsonlStore(place) as last:
            last["s"].append([assistant_chunk(text="end")])
        check(place, acknowledged, result)
        shutil.rmtree(place)
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:6]))
