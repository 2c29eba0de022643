"""Kills imports that merge a file into a recorded session, and compares what is there in the end with an import that nobody killed.

Arguments: a folder to work in, how many kills, a seed. Prints a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from itertools import count, cycle
from pathlib import Path

from hansard.importing import session as importing
from hansard.importing.discovery import discover
from hansard.importing.job import Job
from hansard.importing.run import import_all
from hansard.store import JsonlStore
from tests.recorded import FOLDER, Recording, unpack

CASES = ("claude-control/multi_turn", "codex-app-server/parallel_tools", "qwen-stream-json/multi_turn", "copilot-acp/multi_turn")
LONGEST_SECONDS = 0.03


def jobs_of(case: str, home: Path) -> tuple[list[Job], list[Job]]:
    recording = Recording(FOLDER / case)
    unpack(recording.path, home)
    wires = [job for part in recording.streams if part.main for job in discover([home / part.name], part.format).jobs]
    return wires, discover([home / "disk"], None).jobs


def told(root: Path) -> dict[str, list[tuple[str, str, bool, str | None]]]:
    """Every event that was imported, with what it repeats or follows. Only the header of a log has another id in each store."""
    store = JsonlStore(root)
    return {
        info.id: [
            (event.id, event.type, event.replay, event.after if event.after != store[info.id].tail(1, before=2)[0].id else "header")
            for event in store[info.id].read()
            if event.frame is not None
        ]
        for info in store.sessions()
    }


def main(work: Path, kills: int, seed: int) -> dict[str, int]:
    importing.BATCH_EVENTS = 3
    chance = random.Random(seed)
    result: dict[str, int] = dict.fromkeys(("kills", "lost", "doubled", "different", "damaged", "imports"), 0)
    for number, case in zip(count(), cycle(CASES)):
        if result["kills"] >= kills:
            return result
        home, expected, root = work / case.replace("/", "-"), work / f"{number}-whole", work / f"{number}-killed"
        wires, files = jobs_of(case, home)
        for place in (expected, root):
            list(import_all(place, wires, True, 0, 1))
        list(import_all(expected, files, True, 0, 1))
        for attempt in count():
            if killed_or_done(root, files, chance.uniform(0, LONGEST_SECONDS + attempt / 1000)):
                break
            result["kills"] += 1
        list(import_all(root, files, True, 0, 1))
        result["imports"] += 1
        for session, events in told(expected).items():
            found = told(root).get(session, [])
            result["lost"] += len({event[0] for event in events} - {event[0] for event in found})
            result["doubled"] += len(found) - len({event[0] for event in found})
            result["different"] += sorted(events) != sorted(found)
        store = JsonlStore(root)
        result["damaged"] += sum(
            finding.is_damage and finding.kind != "torn-tail" for info in store.sessions() for finding in store[info.id].verify()
        )
    raise AssertionError("the cases never end")


def killed_or_done(root: Path, files: list[Job], seconds: float) -> bool:
    """Imports in another process and kills it after some time; returns whether it was done before."""
    child = os.fork()
    if child == 0:
        list(import_all(root, files, True, 0, 1))
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
