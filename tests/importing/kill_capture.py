"""Kills imports that copy files and processes that read the copies, and compares what is there in the end with a direct import.

Arguments: a folder to work in, how many kills, a seed. Prints a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from hansard.importing import session as importing
from hansard.importing.capture import capture, captured_sessions, read_all
from hansard.importing.discovery import discover
from hansard.importing.run import import_all
from hansard.store import JsonlStore
from tests.sessions import SESSION, project, turn
from tests.store.kill_catalog import is_as_new

SESSIONS = 4
TURNS = 12
LONGEST_SECONDS = 0.05


def told(root: Path) -> dict[str, list[tuple[str, str]]]:
    """Every event that was imported, by session."""
    store = JsonlStore(root)
    return {info.id: [(event.id, event.type) for event in store[info.id].read() if event.frame is not None] for info in store.sessions()}


def main(work: Path, kills: int, seed: int) -> dict[str, int]:
    importing.BATCH_EVENTS = 3
    chance = random.Random(seed)
    result: dict[str, int] = dict.fromkeys(("kills", "different", "damaged", "left", "imports", "catalogs"), 0)
    home = work / "home"
    for number in range(SESSIONS):
        name = f"{number}{SESSION[1:]}"
        lines = [turn(one, f"question {number}").replace(SESSION.encode(), name.encode()) for one in range(TURNS)]
        project(home, *lines, session=name)
    jobs = discover([home / ".claude"], None).jobs
    expected = work / "whole"
    list(import_all(expected, jobs, True, 0, 1))

    def copy(root: Path) -> None:
        with JsonlStore(root) as store:
            capture(store, jobs, True)

    def read(root: Path) -> None:
        with JsonlStore(root) as store:
            read_all(store, lambda: False)

    for number in count():
        if result["kills"] >= kills:
            return result
        root = work / f"{number}-killed"
        for step in (copy, read):
            for attempt in count():
                if killed_or_done(step, root, chance.uniform(0, LONGEST_SECONDS + attempt / 100)):
                    break
                result["kills"] += 1
        list(import_all(root, jobs, True, 0, 1))
        result["imports"] += 1
        result["different"] += told(expected) != told(root)
        store = JsonlStore(root)
        result["left"] += len(captured_sessions(store))
        result["catalogs"] += not is_as_new(root)
        result["damaged"] += sum(
            finding.is_damage and finding.kind != "torn-tail" for info in store.sessions() for finding in store[info.id].verify()
        )
    raise AssertionError("the counting never ends")


def killed_or_done(step: Callable[[Path], None], root: Path, seconds: float) -> bool:
    """Does a step in another process and kills it after some time; returns whether it was done before."""
    child = os.fork()
    if child == 0:
        step(root)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
