"""Kills those who compress, unpack and go on with a log: ``kill_packing.py ROOT KILLS SEED`` prints as JSON what became of it.

Each is a fork of this process. What was acknowledged is told through a pipe; after every kill the log must hold all of it, byte for byte.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path

from hansard.events import assistant_chunk
from hansard.store import JsonlStore

RECORDS = 1_000


def work(root: Path, acknowledged: int, seed: int) -> None:
    """Compress, unpack and append in any order, for ever; tell what was appended."""
    chance = random.Random(seed)
    while True:
        store = JsonlStore(root)
        for act in chance.choices(["compress", "expand", "append"], [5, 4, 1], k=4):
            if act == "append":
                for event in store["s"].append([assistant_chunk(text=f"{chance.random()}" * 10)]):
                    os.write(acknowledged, b"%d %s\n" % (event.seq, event.id.encode()))
                store["s"].release()
            else:
                getattr(store["s"], act)()


def kill_one(root: Path, delay: float, seed: int) -> dict[int, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        work(root, writing, seed)
    os.close(writing)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().split(b"\n")[:-1]
    return {int(seq): name.decode() for seq, name in (line.split() for line in told)}


def forms(root: Path) -> str:
    return " + ".join(sorted(path.name for path in (root / "s").glob("events*")))


def main(root: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    result = Counter({"lost": 0, "changed": 0, "damaged": 0})
    left: Counter[str] = Counter()
    with JsonlStore(root) as store:
        noise = random.Random(0)
        while store["s"].append([assistant_chunk(text=noise.randbytes(200).hex()) for _ in range(200)])[-1].seq < RECORDS:
            pass
    known: dict[int, str] = {event.seq: event.id for event in store["s"].read()}
    beginning = [sha256(record.line).digest() for record in store["s"].records()]
    for _ in range(kills):
        known |= kill_one(root, chance.choice((0.01, 0.1, 0.2)) * chance.random(), chance.randrange(10**9))
        left[forms(root)] += 1
        store = JsonlStore(root)
        found = [(record.seq, sha256(record.line).digest()) for record in store["s"].records()]
        result["lost"] += len(known.keys() - {seq for seq, _ in found})
        result["changed"] += [digest for _, digest in found[: len(beginning)]] != beginning
        result["damaged"] += any(finding.is_damage and finding.kind != "torn-tail" for finding in store["s"].verify())
        result["kills"] += 1
    print(json.dumps({**result, "acknowledged": len(known), "left": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
