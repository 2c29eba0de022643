"""The list of a database, which writers keep up to date: whenever they are killed, it is the one that its logs give."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from hansard.events.usage_totals import UsageFold
from hansard.store import SessionInfo, Store, open_store
from hansard.store.records import known_usage
from tests.postgres import Database, Server, fresh
from tests.proof import SEED, Figures, amount, proves

WRITER = """
import random, sys
from hansard.store import open_store
from tests.store.kill_catalog import talk
chance = random.Random(int(sys.argv[2]))
with open_store(sys.argv[1]) as store:
    store["s0"].append(talk(chance))
    print(flush=True)
    while True:
        log = store[f"s{chance.randrange(6)}"]
        log.append([event for _ in range(chance.randrange(1, 8)) for event in talk(chance)])
        if chance.random() < 0.3:
            log.release()
        if chance.random() < 0.02:
            store.delete(log.session_id)
"""
SOME = 4
"""How many processes are killed at once: most of the time goes into their start."""


@proves("D-19")
def test_kill_9_at_any_moment_and_the_list_is_that_of_the_logs(postgres: Server, figure: Figures) -> None:
    chance, kills = random.Random(SEED), amount(50, 500, quick=8)
    for begin in range(0, kills, SOME):
        with fresh(postgres) as database, open_store(database.address) as store:
            for number in range(SOME):
                kill_writer(database, SEED * 10_000 + begin + number, chance.uniform(0, 0.3))
            database.execute("UPDATE writer SET until = 'epoch'")
            with fresh(postgres) as other, open_store(other.address) as copied:
                for info in store.sessions():
                    copied[info.id].ingest(store[info.id].records())
                assert listed(store) == listed(copied) != []
            for info in store.sessions():
                assert info.usage == usage_of(store, info.id)
    figure("kills of writers of a database", kills)


def kill_writer(database: Database, seed: int, seconds: float) -> None:
    command = [sys.executable, "-c", WRITER, database.address, str(seed)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(seconds)
        assert writer.poll() is None
        writer.kill()
    database.execute("UPDATE writer SET until = 'epoch'")  # the next one does not wait for its lease


def listed(store: Store) -> list[SessionInfo]:
    """The sessions, but for what depends on now: who writes them, and when a log was made that says nothing yet."""
    infos = (replace(info, live=False, updated=info.updated if info.events > 1 else None) for info in store.sessions())
    return sorted(infos, key=lambda info: info.id)


def usage_of(store: Store, session: str) -> object:
    fold = UsageFold()
    for event in store[session].read():
        fold.apply(event)
    return known_usage(fold.session())
