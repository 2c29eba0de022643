"""Kills those who copy, ship and retire: ``kill.py copy|ship|retire SOURCE TARGET KILLS SEED`` prints as JSON what became of it.

Each is a fork of this process, which has no store open meanwhile. After every kill each session at the target has to be a beginning of the
one at the source; at the end it has to be the same. What is retired has to be in one of them, whole, at every moment.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hansard.errors import UnknownSession
from hansard.events import Event, SessionLifecycle, assistant_chunk, audio_done, turn_end
from hansard.store import Head, Record, Store, open_store
from hansard.store.lines import raw_line
from hansard.store.retirements import ARCHIVED, CLOSED, list_retired, retirement_fields, retirement_sessions
from hansard.store.transfer import copy as moving
from hansard.store.transfer.copy import SessionCopy, SessionDigest, copy_session, digest
from hansard.store.transfer.retire import Retirement, find_old_sessions
from hansard.store.transfer.ship import Shipper

SESSIONS = 4
LINES = 400


def fill(store: Store, name: str, count: int) -> None:
    """Lines of every length, and a blob now and then."""
    chance = random.Random(name)
    for number in range(count // 10):
        events: list[Event] = [assistant_chunk(text="é" * chance.choice((3, 30, 300, 3000))) for _ in range(8)]
        if number % 5 == 1:
            events.append(audio_done(audio=store[name].put_blob(f"{name} {number}".encode())))
        store[name].append([*events, turn_end(status="completed")])
    store[name].release()


def store_has(store: Store, name: str) -> bool:
    with suppress(UnknownSession):
        return store[name].head().seq > 0
    return False


def copy(source: str, target: str) -> None:
    with open_store(source) as here, open_store(target) as there:
        for info in here.sessions():
            done = copy_session(here, there, info.id)
            assert done.problem is None, done.problem


def ship(source: str, target: str) -> None:
    async def forever() -> None:
        with open_store(source) as here, open_store(target) as there:
            async for done in Shipper(here, there, print).watch():
                assert done.problem is None, done.problem

    asyncio.run(forever())


def write(source: str, target: str) -> None:
    """Say something in a new session again and again, until the parent is gone or says stop."""
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    with open_store(source) as store:
        while not stop and os.getppid() != 1:
            fill(store, f"w{time.time_ns()}", 100)
            for _ in range(30):
                store["talk"].append([assistant_chunk(text="word"), assistant_chunk(text="é" * 500)])
                time.sleep(0.002)
            store["talk"].release()


def environment() -> dict[str, str]:
    """For a process that imports what this one does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def fork(work: Callable[[str, str], None], source: str, target: str, told: int | None = None) -> int:
    """Do it in a process of its own, which tells of every piece that it is about to bring over."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            moving.CHUNK_LINES = 40
            if told is not None:
                tell_of_pieces(told)
            work(source, target)
            code = 0
        finally:
            os._exit(code)
    return child


def tell_of_pieces(told: int) -> None:
    bring = SessionCopy._bring

    def telling(self: SessionCopy, lines: list[Record], there: Head) -> Head:
        os.write(told, b".")
        return bring(self, lines, there)

    SessionCopy._bring = telling


def kill_in_the_middle(work: Callable[[str, str], None], source: str, target: str, pieces: int, delay: float) -> int:
    """Kill it when it has come so far, whatever time that takes, and a little later; how it ended."""
    reading, writing = os.pipe()
    child = fork(work, source, target, writing)
    os.close(writing)
    for _ in range(pieces):
        if not select.select([reading], [], [], 3)[0] or not os.read(reading, 1):
            break  # there is nothing more to bring
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.close(reading)
    return os.waitpid(child, 0)[1]


def beginnings(source: str, target: str, result: Counter[str]) -> None:
    """Look at what a kill has left: beginnings, perhaps with a piece of the next line, and no line that names a blob which is not there."""
    with open_store(source) as here, open_store(target) as there:
        for info in there.sessions():
            head = there[info.id].head()
            theirs = [raw_line(record) for record in there[info.id].records()]
            ours = [raw_line(record) for record in here[info.id].records()][: len(theirs)]
            is_torn = theirs[-1:] != ours[-1:]
            result["torn"] += is_torn
            result["other"] += theirs[:-1] != ours[:-1] or not (theirs == ours or ours[-1].startswith(theirs[-1]))
            result["other"] += digest(there, info.id, head.seq).blobs != digest(here, info.id, head.seq).blobs
            result["partial"] += head.seq < here[info.id].head().seq


def retire(source: str, target: str) -> None:
    with open_store(source, "always") as store, Retirement(store, Path(target), "all of it", delete=True) as retirement:
        for info in find_old_sessions(store, time.time() * 1000 + 1000):
            done = retirement.retire(info)
            assert done.problem is None, done.problem


def main_retire(source: str, target: str, kills: int, seed: int) -> None:
    """Every session is in the store or in the archive, whole, and what is gone was written down before."""
    chance = random.Random(seed)
    result = Counter({"kills": 0, "lost": 0, "unsaid": 0})
    sums: dict[str, SessionDigest] = {}
    while result["kills"] < kills:
        with open_store(source) as store:
            for number in range(4):
                name = f"r{len(sums)}-{number}"
                fill(store, name, 30)
                sums[name] = digest(store, name)
        status = kill_in_the_middle(retire, source, target, chance.randrange(14), chance.choice((0, 0.03, 0.1)) * chance.random())
        result["kills"] += os.WIFSIGNALED(status)
        look(source, target, dict(list(sums.items())[-20:]), result)  # what was there before was looked at before, and is at the end
    left = ["?"]
    end = time.monotonic() + 120
    while left and time.monotonic() < end:  # what a killed run held, its own record too, is not free before its lease is over
        retire(source, target)
        with open_store(source) as store:
            left = [info.id for info in store.sessions() if info.id in sums]
            left += [record for record in retirement_sessions(store) if not retirement_fields(store, record)[CLOSED]]
        time.sleep(0.5 if left else 0)
    look(source, target, sums, result)
    with open_store(source) as store:
        result["gone"] = len({gone.session for gone in list_retired(store)})
    with open_store(target) as archive:
        damaged = [info.id for info in archive.sessions() if any(finding.is_damage for finding in archive[info.id].verify())]
        told = {gone.session for gone in list_retired(archive)}
    print(json.dumps({**result, "sessions": len(sums), "left": len(left), "damaged": len(damaged), "archive": len(told)}))


def look(source: str, target: str, sums: dict[str, SessionDigest], result: Counter[str]) -> None:
    with open_store(source) as store, open_store(target) as archive:
        archived = {
            str(event.payload.detail["session"]): str(event.payload.detail["sha256"])
            for info in store.sessions()
            if info.id.startswith("retirement-")
            for event in store[info.id].read()
            if isinstance(event, SessionLifecycle) and event.payload.subtype == ARCHIVED
        }
        for name, was in sums.items():
            if not store_has(store, name):
                result["lost"] += digest(archive, name) != was
                result["unsaid"] += archived.get(name) != was.sha256


def main(mode: str, source: str, target: str, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    result = Counter({"kills": 0, "other": 0, "partial": 0, "torn": 0, "whole": 0, "failed": 0})
    with open_store(source) as store:
        for number in range(SESSIONS):
            fill(store, f"s{number}", LINES)
    writer = fork(write, source, target) if mode == "ship" else 0
    while result["kills"] < kills:
        work, pieces = (copy, 40) if mode == "copy" else (ship, 8)
        status = kill_in_the_middle(work, source, target, chance.randrange(pieces), chance.choice((0, 0.02)) * chance.random())
        if os.WIFSIGNALED(status):
            result["kills"] += 1
        else:
            result["failed"] += os.WEXITSTATUS(status) != 0
            result["whole"] += 1
        beginnings(source, target, result)
        if mode == "copy" and not os.WIFSIGNALED(status):
            with open_store(target) as store:
                for info in store.sessions():
                    store.delete(info.id)
    if writer:
        os.kill(writer, signal.SIGTERM)
        os.waitpid(writer, 0)
    copy(source, target)
    with open_store(source) as here, open_store(target) as there:
        names = [info.id for info in here.sessions()]
        same = [digest(here, name) == digest(there, name) for name in names]
        damaged = [name for name in names if any(finding.is_damage for finding in there[name].verify())]
        lines = sum(digest(there, name).lines for name in names)
    print(json.dumps({**result, "sessions": len(names), "same": sum(same), "damaged": len(damaged), "lines": lines}))


if __name__ == "__main__":
    mode, *places, kills, seed = sys.argv[1:]
    if mode == "retire":
        main_retire(places[0], places[1], int(kills), int(seed))
    else:
        main(mode, places[0], places[1], int(kills), int(seed))
