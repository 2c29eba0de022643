"""What a person waits for who has 5,000 sessions: each command as a process of its own, in seconds of processor time, and its memory.

The home is made by `history`: 1.8 GB of sessions of Claude Code and Codex, imported into a store of 3 GB. agentsview does the same with the
same home; its server counts, too. The growth is that of a store of short sessions, and of one with ten times as many.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.history import RARE, write_history
from benchmarks.scorecard.peer import NotInstalled, environment
from benchmarks.scorecard.peers.agentsview import ALONE, AgentsView
from benchmarks.table import Process, Row, cost, figure, interleaved, main, process
from hansard.events import assistant_done, user_message
from hansard.store import JsonlStore
from hansard.store.files.database import NAME
from tests.server.served import Process as Server

SESSIONS = (4000, 1000)
SPARSE = (5000, 50_000)
SEARCHES = {
    "a rare word": (RARE,),
    "a frequent word": ("import",),
    "a word that is not there": ("zygodactyl",),
    "a part of many words": ("otter",),
    "a phrase": ('"def run"',),
    "two words": ("session", "frequent"),
    "one type of event": ("import", "--type", "user_message"),
}
THEIR_SEARCHES = {
    "a phrase": ("def run",),
    "two words": ("--fts", "session frequent"),
    "one type of event": ("import", "--in", "messages"),
}
EVERYTHING = ("--include-one-shot", "--include-automated", "--include-children", "--limit", "100")
"""What makes agentsview search all of its sessions, and show as many places as we do."""
MIN_SEARCHES = 20
"""A percentile of fewer is only their highest."""
IDLE_SECONDS = 20
SETTLED = 0.02
"""The share of a core below which a program is done with what it does first."""

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
        self.home, self.store = home, store
        self.megabytes = 0.0

    def words(self, *arguments: str) -> list[str]:
        """How a command is called."""
        return [sys.executable, "-m", "hansard", *arguments, "--store", str(self.store)]

    def run(self, *arguments: str) -> float:
        """Runs a command and returns its processor time; a search that finds nothing has done its work."""
        done = process("sh", "-c", '"$@"; test $? -le 1', "sh", *self.words(*arguments))
        self.megabytes = max(self.megabytes, done.megabytes)
        return done.cpu

    def bring(self, *more: str) -> float:
        """Imports what is new."""
        return self.run("import", "--home", str(self.home), "--closed", *more)

    def idle(self, seconds: float) -> float:
        """The share of a core that `import --watch` takes while nothing happens."""
        command = self.words("import", "--home", str(self.home), "--watch")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:
            try:
                settle(watcher.pid)
                share = spent(watcher.pid, seconds) / seconds
                self.megabytes = max(self.megabytes, peak(watcher.pid))
                return share
            finally:
                watcher.terminate()


class Theirs:
    """agentsview with a home, which is that of the user who runs it. It is not installed for a short run."""

    def __init__(self, home: Path, short: bool) -> None:
        self._program, self._home = AgentsView(), home
        self._server = 0
        self.megabytes = 0.0
        self.is_there = not short
        try:
            if not short:
                self._program.install()
        except NotInstalled as problem:
            print(f"skipped {self.name}: it does not install here: {problem}", file=sys.stderr)
            self.is_there = False

    @property
    def name(self) -> str:
        return f"{self._program.name} {self._program.version}"

    def sync(self) -> float:
        """Takes in what is new, without a server."""
        return self._run([*self._program.command], **ALONE).cpu

    def search(self, kind: str) -> float:
        """The processor time of a search, that of the server included."""
        before = ticks(self._server)
        words = THEIR_SEARCHES.get(kind, SEARCHES[kind])
        return self._run([self._program.command[0], "session", "search", *words, *EVERYTHING]).cpu + ticks(self._server) - before

    def _run(self, command: list[str], **more: str) -> Process:
        done = process("env", "-i", *(f"{name}={value}" for name, value in environment(self._home, **more).items()), *command)
        self.megabytes = max(self.megabytes, done.megabytes)
        return done

    @contextmanager
    def serving(self) -> Generator[None]:
        """Its server, which a search needs."""
        command = [self._program.command[0], "serve", "--no-browser", "--port", "0"]
        quiet = environment(self._home, AGENTSVIEW_TELEMETRY_ENABLED="0")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet, cwd=self._home) as started:
            try:
                settle(started.pid)
                self._server = started.pid
                yield
                self.megabytes = max(self.megabytes, peak(started.pid))
            finally:
                started.terminate()


def ticks(pid: int) -> float:
    """The processor time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(pid: int) -> float:
    """The most megabytes that a process had in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def spent(pid: int, seconds: float) -> float:
    """The processor time of a process in the next seconds."""
    before = ticks(pid)
    time.sleep(seconds)
    return ticks(pid) - before


def settle(pid: int) -> None:
    """Waits until a process has nothing to do."""
    while not ticks(pid) or spent(pid, 1) > SETTLED:
        pass


def rows(short: bool) -> Iterable[Row]:
    """Import, nothing new, lists, searches, the server, watching, totals; then the growth."""
    rounds, sessions = (1, (8, 2)) if short else (3, SESSIONS)
    with tempfile.TemporaryDirectory() as name:
        commands = Commands(Path(name, "home"), Path(name, "store"))
        size = write_history(commands.home, *sessions)
        theirs = Theirs(commands.home, short)
        yield from first_imports(commands, theirs, f"{sum(sessions):,} sessions, {size / 1e9:.1f} GB")
        yield from afterward(commands, theirs, rounds)
        yield from searches(commands, theirs, rounds)
        yield from served(commands, rounds)
        yield figure("`import --watch`, idle", [100 * commands.idle(1 if short else IDLE_SECONDS)], "% of a core", at_most=0.5)
        yield figure("memory of all of these", [commands.megabytes], "MB", at_most=80)
        commands.megabytes = 0.0
        yield figure("`usage`", [commands.run("usage") for _ in range(rounds)], "CPU s")
        yield figure("memory of `usage`", [commands.megabytes], "MB")
        if theirs.is_there:
            yield figure(f"memory of {theirs.name}", [theirs.megabytes], "MB")
        logs = sum(path.stat().st_size for path in commands.store.glob("*/events.jsonl"))
        yield figure("catalog, of the size of the logs", [100 * (commands.store / NAME).stat().st_size / logs], "%", at_most=3)
    yield from growth(*((20, 40) if short else SPARSE), rounds)


def first_imports(commands: Commands, theirs: Theirs, what: str) -> Iterator[Row]:
    """Until the sessions are safe, and until they are read."""
    copied = commands.bring("--no-wait")
    copy = commands.home.with_name("copy")
    hashed = process(sys.executable, "-c", COPY_AND_HASH, str(commands.home), str(copy)).cpu
    shutil.rmtree(copy)
    yield cost(f"first import of {what}, until they are safe and listed", "to copy and hash them", [copied], [hashed], at_most=2)
    yield figure(f"first import of {what}, until they are safe and listed", [copied], "CPU s")
    read = copied + commands.bring("--wait")
    yield figure("first import, until they are read", [read], "CPU s", at_most=75)
    if theirs.is_there:
        yield cost("first import, until they are read", theirs.name, [read], [theirs.sync()])


def afterward(commands: Commands, theirs: Theirs, rounds: int) -> Iterator[Row]:
    """What people do again and again."""
    contenders = {"ours": commands.bring, "theirs": theirs.sync}
    taken = interleaved(rounds, contenders if theirs.is_there else {"ours": commands.bring})
    yield figure("import, nothing new", taken["ours"], "CPU s", at_most=0.3)
    if theirs.is_there:
        yield cost("import, nothing new", theirs.name, taken["ours"], taken["theirs"])
    yield figure("`sessions`", [commands.run("sessions") for _ in range(rounds)], "CPU s", at_most=0.35)


def searches(commands: Commands, theirs: Theirs, rounds: int) -> Iterator[Row]:
    """Every kind, by turns with agentsview."""
    contenders: dict[str, Callable[[], float]] = {
        f"ours {kind}": lambda kind=kind: commands.run("search", *SEARCHES[kind]) for kind in SEARCHES
    }
    if not theirs.is_there:
        taken = interleaved(rounds, contenders)
    else:
        contenders |= {f"theirs {kind}": lambda kind=kind: theirs.search(kind) for kind in SEARCHES}
        with theirs.serving():
            taken = interleaved(rounds, contenders)
    ours = [seconds for kind in SEARCHES for seconds in taken[f"ours {kind}"]]
    yield figure(f"search, {len(SEARCHES)} kinds: p95", [percentile(ours)], "CPU s", at_most=0.4)
    for kind in SEARCHES:
        yield figure(f"search for {kind}", taken[f"ours {kind}"], "CPU s")
    if theirs.is_there:
        others = [seconds for kind in SEARCHES for seconds in taken[f"theirs {kind}"]]
        yield cost(f"search, {len(SEARCHES)} kinds: p95", theirs.name, [percentile(ours)], [percentile(others)], at_most=1)


def percentile(values: list[float]) -> float:
    """Of a hundred of them 95 took no longer."""
    return statistics.quantiles(values, n=20)[-1] if len(values) >= MIN_SEARCHES else max(values)


def served(commands: Commands, rounds: int) -> Iterator[Row]:
    """What the page waits for."""
    first, one, again = [], [], []
    for _ in range(rounds):
        with serving(commands.store) as (server, get):
            first.append(get("/api/sessions"))
            again.append(get("/api/sessions"))
            with JsonlStore(commands.store) as store:
                name = store.sessions()[-1].id
            get(f"/api/sessions/{name}")
            one.append(10 * sum(get(f"/api/sessions/{name}") for _ in range(100)))
            commands.megabytes = max(commands.megabytes, peak(server))
    yield figure("the first list of the page", first, "CPU s", at_most=0.2)
    yield figure("the list, again", again, "CPU s", at_most=0.2)
    yield figure("one session over HTTP", one, "CPU ms", at_most=5)


@contextmanager
def serving(store: Path) -> Generator[tuple[int, Callable[[str], float]]]:
    """A server that has just started: its process, and a function that asks it for something and returns its processor time."""
    server = Server(store)

    def get(path: str) -> float:
        before = ticks(server.pid)
        with urlopen(Request(server.address + path, headers=server.headers())) as answer:
            answer.read()
        return ticks(server.pid) - before

    try:
        settle(server.pid)
        yield server.pid, get
    finally:
        server.stop()


def growth(few: int, many: int, rounds: int) -> Iterator[Row]:
    """Stores of short sessions, one with ten times as many as the other."""
    with tempfile.TemporaryDirectory() as name:
        stores = {count: Path(name, str(count)) for count in (few, many)}
        for count, store in stores.items():
            write_sparse(store, count)
        found = {count: Commands(store, store) for count, store in stores.items()}
        taken = interleaved(rounds, {str(count): lambda count=count: found[count].run("search", RARE) for count in stores})
        what = f"{many:,} short sessions"
        yield cost(f"{what}: search for a rare word", f"{few:,}", taken[str(many)], taken[str(few)], at_most=2)
        lists: dict[int, list[float]] = {few: [], many: []}
        ones: dict[int, list[float]] = {few: [], many: []}
        for _ in range(rounds):
            for count, store in stores.items():
                with serving(store) as (_, get):
                    get("/api/sessions")
                    lists[count].append(sum(get("/api/sessions") for _ in range(20)))
                    ones[count].append(sum(get(f"/api/sessions/s{few // 2:06}") for _ in range(100)))
        yield cost(f"{what}: the newest page of the list", f"{few:,}", lists[many], lists[few], at_most=2)
        yield cost(f"{what}: one session over HTTP", f"{few:,}", ones[many], ones[few], at_most=2)


def write_sparse(root: Path, count: int) -> None:
    """Writes a store of short sessions; five of them have a rare word."""
    with JsonlStore(root) as store:
        store["s000000"].append([user_message(text="what is seldom said"), assistant_done(text="nothing that matters here")])
    log = (root / "s000000/events.jsonl").read_bytes()
    for number in range(1, count):
        folder = root / f"s{number:06}"
        folder.mkdir(0o700)
        data = log.replace(b"s000000", folder.name.encode())
        (folder / "events.jsonl").write_bytes(data.replace(b"what", RARE.encode()) if number % (count // 5) == 1 else data)
    with JsonlStore(root) as store:
        store.update_index()


if __name__ == "__main__":
    main(rows)
