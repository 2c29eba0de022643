"""docs/performance.md: what users get, from the last run of every benchmark (docs/bench.json)."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.results import SCRIPTS, last
from benchmarks.table import Row
from tools.features import NOTICE, table


class Figure(NamedTuple):
    """A row of the page: its text, and the row of a benchmark that it shows; with ``beside``, a ratio to that."""

    text: str
    script: str
    what: str
    beside: str = ""


MILLION = "1,000,000 events, 1.06 GB"
IMPORT = "import 24 MB, 20,000 lines"
PAGE = "a page of 100,000 events"
FIRST = "first import of 5,000 sessions, 1.8 GB"
RECORD = [
    Figure("Append to a folder, one event at a time", "store", "append one by one, by the clock"),
    Figure("Append to a folder, 100 events at a time", "store", "append in batches of 100, by the clock"),
    Figure("Append to PostgreSQL, one event at a time", "postgres", "append one by one"),
    Figure("Append to PostgreSQL, 10 events at a time", "postgres", "append in batches of 10"),
    Figure("Append to PostgreSQL, 1,000 events at a time", "postgres", "append in batches of 1,000"),
    Figure("Read typed events from a folder", "store", "read, as events"),
    Figure("Open a log of 1 million events (1.06 GB) to append", "store", f"{MILLION}: opened for append"),
    Figure("Find any position in that log and read 100 events", "store", f"{MILLION}: any cursor, then 100: by the clock"),
]
LIVE = [
    Figure("From one process to another, through a folder: median", "follow", "follow in another process, p50"),
    Figure("The same, 99th percentile", "follow", "follow in another process, p99"),
    Figure("Through PostgreSQL: median", "postgres", "follow, p50"),
    Figure("The same, 99th percentile", "postgres", "follow, p99"),
    Figure("To 100 clients of one server, 200 events per second: median", "fanout", "100 clients, 200 events/s: p50"),
    Figure("The same, 99th percentile", "fanout", "100 clients, 200 events/s: p99"),
    Figure("To 1,000 clients, 30 events per second: 99th percentile", "fanout", "1,000 clients, 30 events/s: p99"),
]
MEMORY = [
    Figure("Import a session of 24 MB", "import", "import 24 MB: memory"),
    Figure("Import a session of 1 GB", "import", "import 1,000 MB: memory"),
    Figure("Export a session to any format", "export", "export, any form: memory"),
    Figure("Each connected client of a server", "fanout", "1,000 clients: memory of each"),
    Figure("The page with a session of 100,000 events: JavaScript heap", "page", f"{PAGE}: heap"),
]
BROWSER = [
    Figure("First paint of a session of 100,000 events", "page", f"{PAGE}: first paint"),
    Figure("Elements in the DOM at that size", "page", f"{PAGE}: elements"),
    Figure("One frame while you scroll", "page", f"{PAGE}: a frame of scrolling"),
    Figure("Events per second while the agent writes", "page", f"{PAGE}: events a second live"),
]
COMPARED = [
    Figure(
        "Import of a 24 MB session, compared with claude-code-log 1.7.0", "import", "import 24 MB, 20,000 lines", "claude-code-log 1.7.0"
    ),
    Figure("The same, compared with agentsview 0.46.1", "import", "import 24 MB, 20,000 lines", "agentsview 0.46.1"),
    Figure("`hansard --version`, compared with `python -c 'import msgspec'`", "start", "hansard --version", "import msgspec"),
]
MANY = [
    Figure("First import, until the sessions are safe and listed", "catalog", f"{FIRST}, until they are safe and listed"),
    Figure(
        "The same, compared with copying and hashing the files",
        "catalog",
        f"{FIRST}, until they are safe and listed",
        "to copy and hash them",
    ),
    Figure("Import when nothing is new", "catalog", "import, nothing new"),
    Figure("`hansard import --watch` while nothing happens", "catalog", "`import --watch`, idle"),
    Figure("`hansard sessions`", "catalog", "`sessions`"),
    Figure("`hansard search`: 95 of 100 searches take at most", "catalog", "search, 7 kinds: p95"),
    Figure("`hansard usage`: the totals of all sessions", "catalog", "`usage`"),
    Figure("The first list of the page, after the server has started", "catalog", "the first list of the page"),
    Figure("One session over HTTP", "catalog", "one session over HTTP"),
    Figure("The most memory that any but `hansard usage` takes", "catalog", "memory of all of these"),
    Figure("Memory of `hansard usage`", "catalog", "memory of `usage`"),
    Figure("Size of the catalog, compared with the logs", "catalog", "catalog, of the size of the logs"),
]
HEAD = """# Performance

What you can expect from hansard on a small computer, and how to measure it on yours.

Each result is the median of several rounds, followed by the lowest and the highest round. They were measured on 2 cores with {python}.
Some runs shared the cores with other programs, so an idle computer does better. `make bench` measures all of it again and rewrites this
page (`make bench ARGS=store` measures one part); `make scorecard` repeats the [comparison with other tools](scorecard.md).

"""
AFTER_RECORD = """
An append to a folder returns when the lines are written to the file, and survives a crash of the process. The ends of turns, permission
requests, and decisions are also synced to the disk before the append returns; `fsync="always"` syncs every append.

"""
BEFORE_MANY = """## Many sessions

With 5,000 sessions of Claude Code and Codex: 1.8 GB of the agents' files, 3.2 GB of logs. Each command is a process of its own, and its
result is the processor time it takes, with the start of Python.

"""
AFTER_MANY = """
A search is for a rare, a frequent, or an absent word, part of a word, a phrase, two words, or in one type of event. Everything but the
first import reads [the catalog](decisions/0029-catalog.md) instead of the logs.

"""
AFTER_LIVE = """
The server collects the events of 33 ms before it sends them, which is most of its median. A client that reads slowly delays no one else:
it reads the log at its own pace.

"""
SIZES = """## Size

A log keeps every byte that the agent sent next to the typed event, so it is larger than the agent's output: about 1.7 times for streamed
text. `hansard compress` makes closed logs smaller without loss, the recorded long sessions about 22 times. [The log
format](log-format.md) has the details.

"""
AFTER_COMPARED = """
These are processor times, so less is better. Conversion takes most of an import: reading one message takes 10 to 25 µs in most formats.
Several sessions are imported on all cores (`--jobs`).

## Export

Exporting reads the log, masks secrets, and writes the format piece by piece, so memory stays flat. Only `atif` and `usage`, which
are one document each, are held until the end. An export takes {fast:.1f} times as long as reading the events for the fastest
format (`{fastest}`), and {slow:.1f} times for the slowest (`{slowest}`).
"""
GROWTH = """
## Growth

![Cost at 1, 10 and 100 times the work](growth.svg)

Lines on or below the dashed one grow at most in proportion to the work. A line above it is a bug; please report one.

[Decision 27](decisions/0027-where-the-time-goes.md) records what makes hansard as fast as it is, and what was tried without success. [A
fleet on PostgreSQL](scale.md) has the costs of a large installation.
"""


def performance() -> str:
    """The page."""
    known = {name: {(row.what, row.beside): row for row in found.rows} for name, found in last().items() if name in SCRIPTS}
    [python] = {found.machine.partition(",")[0] for name, found in last().items() if name in SCRIPTS}

    def figures(listed: list[Figure]) -> str:
        return table(
            ["", "Result", "Range"], [[figure.text, *_cells(known[figure.script][figure.what, figure.beside])] for figure in listed]
        )

    speeds = sorted((row.median, row.what.removeprefix("export ").strip("`")) for row in known["export"].values() if row.beside)
    (slow, slowest), (fast, fastest) = speeds[0], speeds[-1]
    return "".join(
        [
            NOTICE + HEAD.format(python=python),
            "## Record and read\n\n" + figures(RECORD) + AFTER_RECORD,
            "## Live view\n\nThe time from an append until a reader has the event.\n\n" + figures(LIVE) + AFTER_LIVE,
            "## The page\n\n" + figures(BROWSER) + "\n",
            BEFORE_MANY + figures(MANY) + AFTER_MANY,
            "## Memory\n\n" + figures(MEMORY) + "\n",
            SIZES + "## Import and start\n\n" + figures(COMPARED),
            AFTER_COMPARED.format(fast=1 / fast, fastest=fastest, slow=1 / slow, slowest=slowest),
            GROWTH,
        ]
    )


def _cells(row: Row) -> list[str]:
    unit = f" {row.unit}" if row.unit else ""
    if row.beside:
        return [f"{row.median:.2f} ×", f"{row.low:.2f}–{row.high:.2f} ×"]
    low, high = _number(row.low), _number(row.high)
    return [f"{_number(row.median)}{unit}", f"{low}{unit}" if low == high else f"{low}–{high}{unit}"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
