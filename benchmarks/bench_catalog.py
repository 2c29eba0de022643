"""What a person waits for who has 5,000 sessions: each command as a process of its own, in seconds of processor time, and its memory.

The home is made by `history`: 1.8 GB of sessions of Claude Code and Codex, imported into a store of 3 GB.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.history import RARE, write_history
from benchmarks.table import Process, Row, cost, figure, main, process
from hansard.store import JsonlStore
from hansard.store.files.database import NAME

SESSIONS = (4000, 1000)
SEARCHES = {
    "a rare word": (RARE,),
    "a frequent word": ("import",),
    "a word that is not there": ("zygodactyl",),
    "a part of many words": ("otter",),
    "a phrase": ('"def run"',),
    "two words": ("session", "frequent"),
    "one type of event": ("import", "--type", "user_message"),
}

COPY_AND_HASH = """
import hashlib, os, shutil, sys
source, target = sys.argv[1:]
shutil.copytree(source, target)
for folder, _, names in os.walk(source):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            hashlib.file_digest(file, "sha256")
os.sync()
"""


class Commands:
    """The commands, on one home and one store."""

    def __init__(self, home: Path, store: Path) -> None:
        self._home, self._store = home, store
        self.megabytes = 0.0

    def run(self, *arguments: str) -> Process:
        """Runs a command; a search that finds nothing has done its work."""
        words = [sys.executable, "-m", "hansard", *arguments, "--store", str(self._store)]
        done = process("sh", "-c", '"$@"; test $? -le 1', "sh", *words)
        self.megabytes = max(self.megabytes, done.megabytes)
        return done

    def bring(self, *more: str) -> Process:
        """Imports what is new."""
        return self.run("import", "--home", str(self._home), "--closed", *more)


def rows(short: bool) -> Iterable[Row]:
    """Import, nothing new, lists, searches, totals, one session over HTTP."""
    rounds, sessions = (1, (8, 2)) if short else (5, SESSIONS)
    with tempfile.TemporaryDirectory() as name:
        home, store = Path(name, "home"), Path(name, "store")
        size = write_history(home, *sessions)
        commands = Commands(home, store)
        what = f"{sum(sessions):,} sessions, {size / 1e9:.1f} GB"
        copied = commands.bring("--no-wait").cpu
        hashed = process(sys.executable, "-c", COPY_AND_HASH, str(home), str(Path(name, "copy"))).cpu
        yield cost(f"first import of {what}, until they are safe and listed", "to copy and hash them", [copied], [hashed], at_most=2)
        shutil.rmtree(Path(name, "copy"))
        yield figure("the rest of it, until they are read", [commands.bring("--wait").cpu], "CPU s", at_most=75)
        yield figure("import, nothing new", [commands.bring().cpu for _ in range(rounds)], "CPU s", at_most=0.3)
        yield figure("`sessions`", [commands.run("sessions").cpu for _ in range(rounds)], "CPU s", at_most=0.35)
        taken = [commands.run("search", *words).cpu for words in SEARCHES.values() for _ in range(rounds)]
        yield figure(f"the slowest of {len(SEARCHES)} kinds of searches", [max(taken)], "CPU s", at_most=0.4)
        yield figure("`usage`", [commands.run("usage").cpu for _ in range(rounds)], "CPU s")
        yield figure("memory of all of these", [commands.megabytes], "MB", at_most=80)
        logs = sum(path.stat().st_size for path in store.glob("*/events.jsonl"))
        yield figure("catalog, of the size of the logs", [100 * (store / NAME).stat().st_size / logs], "%", at_most=3)
        yield from lists(store, rounds)


def lists(store: Path, rounds: int) -> Iterable[Row]:
    """What the page waits for."""

    def look() -> float:
        begin = time.process_time()
        with JsonlStore(store) as opened:
            opened.sessions()
        return time.process_time() - begin

    yield figure("the list, read by a server that has just started", [look() for _ in range(rounds)], "CPU s", at_most=0.2)
    with JsonlStore(store) as opened:
        name = opened.sessions()[0].id
        begin = time.process_time()
        for _ in range(100):
            opened.session(name)
        yield figure("one session", [(time.process_time() - begin) * 10], "CPU ms", at_most=5)


if __name__ == "__main__":
    main(rows)
