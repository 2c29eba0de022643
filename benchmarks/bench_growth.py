"""Cost grows with the work: the same at once, ten times and a hundred times as much, in processor time. docs/growth.svg is drawn of it.

A row says what a unit of the work costs at a hundred times beside ten times: 1 is linear, more is worse. At once is left out of that, it is
mostly the cost of beginning. What looks something up in a log should not even grow.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.bench_export import write_log
from benchmarks.bench_fanout import ours
from benchmarks.bench_import import SESSION, long_session, recorded
from benchmarks.bench_store import chunk
from benchmarks.table import Row, cost, cpu, interleaved, main, process
from hansard.adapters.normalize import normalize
from hansard.events.codec import encode
from hansard.projections import projection_for
from hansard.projections.redaction.redact import redact
from hansard.server.folds import Folds
from hansard.store import JsonlStore
from hansard.store.export import export_session
from tests.recorded import FOLDER, read

SIZES = (1, 10, 100)
LOOKS = 100
GOAL = 1.3
"""A third more for a unit: so much the neighbours on the machine may do."""


class Material:
    """What the work is done with, at one size."""

    def __init__(self, root: Path, unit: int, times: int) -> None:
        self.times = times
        self.events = unit * times
        self.folder = root / str(times)
        write_log(self.folder, self.events)
        self.store = JsonlStore(self.folder)
        self.new = JsonlStore(root / f"new-{times}")
        self.batches = [[chunk(number) for number in range(100)] for _ in range(max(1, self.events // 100))]
        data = read(FOLDER / "claude-stream-json-partial/long/stdout.jsonl")
        self.message = b"".join(map(block_of_one_message, range(unit * times)))
        self.wire = b"".join((data.splitlines(keepends=True) * (self.events // data.count(b"\n") + 1))[: self.events])
        self.file = root / f"{times}" / f"{SESSION}.jsonl"
        with self.file.open("wb") as out:
            out.writelines(long_session(recorded(), self.events, 0))
        self.many = JsonlStore(root / f"many-{times}")
        for number in range(max(1, self.events // 100)):
            self.many[self.many.create(f"s-{number}").session_id].release()


def block_of_one_message(number: int) -> bytes:
    """A frame of Claude Code's with one more block of the same message."""
    return b'{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"%d"}]}}\n' % number


def count(things: Iterable[Any]) -> int:
    return sum(1 for _ in things)


def append(given: Material) -> None:
    """All of it, in batches of 100."""
    session = given.new.create().session_id
    for batch in given.batches:
        given.new[session].append(batch)
    given.new[session].release()


def seek(given: Material) -> None:
    """Any cursor, and the ten events after it."""
    for place in random.Random(1).choices(range(given.events), k=LOOKS):
        count(given.store["s"].read(place, 10))


def export(form: str, given: Material) -> None:
    """In one form, masked."""
    count(export_session(given.store, "s", projection_for(form)(), redact((), ())))


def stand(given: Material) -> None:
    """Where a session stands, asked again and again."""
    folds = Folds(given.store)
    for _ in range(LOOKS):
        folds.snapshot("s")


def bring(given: Material) -> float:
    """Import a session file, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return process(sys.executable, "-m", "hansard", "import", str(given.file), "--store", folder, "--closed").cpu


HERE: dict[str, Callable[[Material], object]] = {
    "normalise": lambda given: count(map(encode, normalize(given.wire, "claude-stream-json"))),
    "normalise, all in one message": lambda given: count(normalize(given.message, "claude-stream-json")),
    "append": append,
    "read": lambda given: count(given.store["s"].read()),
    "verify": lambda given: given.store["s"].verify(),
    "list of sessions": lambda given: JsonlStore(given.many.root).sessions(),
    "where it stands": stand,
    "export markdown": partial(export, "markdown"),
    "export messages": partial(export, "openai-messages"),
    "export AG-UI": partial(export, "ag-ui"),
}
"""What is measured in this process."""


def measured(rounds: int, work: Callable[[int], float]) -> dict[int, list[float]]:
    """Seconds at each size, by turns."""
    found = interleaved(rounds, {str(times): partial(work, times) for times in SIZES})
    return {times: found[str(times)] for times in SIZES}


def row(name: str, taken: dict[int, list[float]], goal: float = GOAL, grows: bool = True) -> Row:
    """What a unit costs at a hundred times beside ten times, and all of it for the drawing."""
    share = (100, 10) if grows else (1, 1)
    large, middle = ([seconds / units for seconds in taken[times]] for times, units in zip((100, 10), share, strict=True))
    made = cost(f"{name}: a unit at 100 times the work", "at 10 times", large, middle, at_most=goal)
    return msgspec.structs.replace(made, points=[(times, sorted(taken[times])[len(taken[times]) // 2]) for times in SIZES])


def rows(short: bool) -> Iterable[Row]:
    """Everything at each size."""
    unit, rounds = (20, 1) if short else (1_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        made = {times: Material(Path(folder), unit, times) for times in SIZES}
        for name, work in HERE.items():
            yield row(name, measured(rounds, lambda times, work=work: cpu(lambda: work(made[times]))))
        looked = measured(rounds, lambda times: cpu(lambda: seek(made[times])))
        yield row(f"any cursor, {LOOKS} times", looked, goal=2.0, grows=False)
        yield row("import", measured(1 if short else 3, lambda times: bring(made[times])))
    events = 50 if short else 2_000
    yield row("fan-out, clients", measured(1 if short else 3, lambda times: times * ours(times, events, 0).cpu))


if __name__ == "__main__":
    main(rows)
