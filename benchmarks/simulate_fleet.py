"""A thousand servers and a million sessions, from measured costs: ``python benchmarks/simulate_fleet.py [--write docs]``.

A cell is one database and the servers that use it; a session belongs to one cell, by a hash of its id. Each database is a queue: in every
step of 20 ms so much work arrives (drawn by chance, from a seed) and its cores do so much of it; what is left waits. The costs of each
piece of work are those of `docs/costs.json`, which `benchmarks/measure_costs.py` measured. What is assumed of the fleet stands in `Fleet`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

COSTS = Path(__file__).parents[1] / "docs" / "costs.json"
STEP = 0.02
PAGES = {"scale.md": ("costs", "simulated"), "deployment.md": ("sizes",)}
"""Which tables stand on which page of docs/, between marks."""

BEAT = 2.0
PACE = 0.004
LIST_PACE, LIST_EASE = 0.5, 25
"""As in the code: a heartbeat, the pause between two notifications, the looks at the list."""
RETRY = 1.0
"""A database that was away is tried again after so long."""


@dataclass(frozen=True)
class Fleet:
    """What is assumed."""

    servers: int = 1_000
    sessions: int = 1_000_000
    running: float = 0.02
    """The share of the sessions whose agent speaks right now."""
    appends: float = 4.0
    """Appends a second of one that speaks, on average."""
    batch: float = 5.0
    """Events of an append."""
    skew: float = 1.5
    """The exponent of the Pareto distribution of both: few sessions say, and are looked at, much more than others."""
    hottest: float = 50.0
    """No session is more than so many times the average."""
    subscribers: float = 1.0
    """Of a session that speaks, on average; each on any server of the cell."""
    hot: int = 10
    hot_subscribers: int = 2_000
    """Besides, so many sessions that everybody looks at."""
    watched: float = 1.0
    """The share of servers on which somebody watches the list of all sessions."""
    connections: int = 10
    """Of a server to its database: eight in the pool, one that listens, one for the lease."""
    cores: int = 8
    """Of a database."""
    seconds: float = 60.0
    outage: float = 10.0
    """So long the database of the first cell is away in the middle."""
    listening: bool = True
    """Whether followers are woken by notifications; else they look once a second."""


@dataclass
class Session:
    """One that speaks."""

    rate: float
    subscribers: int


@dataclass
class Cell:
    """A database and its servers."""

    servers: int
    sessions: int
    speaking: list[Session] = field(default_factory=list)
    backlog: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """How long an append took, and how many did."""
    worst: float = 0.0
    """The longest backlog after the outage, in seconds of all cores."""
    recovered: float | None = None


def pareto(luck: random.Random, fleet: Fleet) -> float:
    """A rate relative to the average."""
    scale = (fleet.skew - 1) / fleet.skew
    return min(fleet.hottest, scale * luck.paretovariate(fleet.skew))


def poisson(luck: random.Random, mean: float) -> int:
    """A number of arrivals."""
    if mean > 30:
        return max(0, round(luck.gauss(mean, math.sqrt(mean))))
    limit, number, product = math.exp(-mean), 0, luck.random()
    while product > limit:
        number += 1
        product *= luck.random()
    return number


def make(fleet: Fleet, cells: int, luck: random.Random) -> list[Cell]:
    """Servers are dealt out evenly, sessions by the hash of their id."""
    made = [Cell(fleet.servers // cells + (number < fleet.servers % cells), 0) for number in range(cells)]
    share = fleet.sessions / cells
    for cell in made:
        cell.sessions = round(luck.gauss(share, math.sqrt(share)))
    for _ in range(round(fleet.sessions * fleet.running)):
        session = Session(fleet.appends * pareto(luck, fleet), poisson(luck, fleet.subscribers * pareto(luck, fleet)))
        made[luck.randrange(cells)].speaking.append(session)
    for _ in range(fleet.hot):
        made[luck.randrange(cells)].speaking.append(Session(fleet.appends * fleet.hottest, fleet.hot_subscribers))
    return made


def followers(session: Session, servers: int) -> float:
    """On so many servers, other than its own, somebody looks at it."""
    return (servers - 1) * (1 - (1 - 1 / servers) ** session.subscribers)


@dataclass(frozen=True)
class Work:
    """What arrives at a database: so often a second, and each so many processor seconds."""

    name: str
    rate: float
    cost: float


def work_of(cell: Cell, fleet: Fleet, cost: dict[str, float]) -> list[Work]:
    """Everything the servers of a cell ask of their database."""
    us = 1e-6
    appends = sum(session.rate for session in cell.speaking)
    by_server = appends / cell.servers
    told = cell.servers * by_server / (1 + by_server * PACE)  # what is written within a pause is told together
    looks = sum(min(session.rate, 1 / STEP) * followers(session, cell.servers) for session in cell.speaking)
    polled = sum(min(session.rate, 1.0) * followers(session, cell.servers) for session in cell.speaking)
    look = cell.sessions * (cost["list_us"] + cost["list_db_us"]) * us
    return [
        Work("appends", appends, (cost["append_db_us"] + fleet.batch * cost["event_db_us"]) * us),
        Work("follow", looks if fleet.listening else polled, cost["wake_db_us"] * us),
        Work("notify", told if fleet.listening else 0, (cost["notify_db_us"] + cell.servers * cost["listener_db_us"]) * us),
        Work("list", fleet.watched * cell.servers / max(LIST_PACE, LIST_EASE * look), cell.sessions * cost["list_db_us"] * us),
        Work("beats", cell.servers / BEAT, cost["beat_db_us"] * us),
    ]


def run(cell: Cell, fleet: Fleet, cost: dict[str, float], luck: random.Random, fails: bool) -> None:
    """Step by step. After an outage everybody connects anew within a retry, and every speaking session writes what it kept, at once."""
    work = work_of(cell, fleet, cost)
    room = fleet.cores * STEP
    gone, back = (fleet.seconds / 3, fleet.seconds / 3 + fleet.outage) if fails else (math.inf, math.inf)
    steps_of_storm = RETRY / STEP
    connect = cell.servers * fleet.connections * cost["connect_db_us"] * 1e-6
    looked = sum(followers(session, cell.servers) for session in cell.speaking) * cost["wake_db_us"] * 1e-6
    kept = sum(session.rate for session in cell.speaking) * fleet.outage * fleet.batch * cost["event_db_us"] * 1e-6
    kept += len(cell.speaking) * cost["append_db_us"] * 1e-6
    fsync = 1 / cost["fsyncs_s"]
    for number in range(int(fleet.seconds / STEP)):
        now = number * STEP
        if gone <= now < back:
            continue  # agents wait at full pipes; nothing arrives
        counts = {one.name: poisson(luck, one.rate * STEP) for one in work}
        arrived = sum(counts[one.name] * one.cost for one in work)
        if back <= now < back + RETRY:
            arrived += (connect + looked + kept) / steps_of_storm
        for one in work:
            cell.busy[one.name] = cell.busy.get(one.name, 0.0) + counts[one.name] * one.cost
        before = cell.backlog
        cell.backlog = max(0.0, before + arrived - room)
        wait = (before + arrived / 2) / fleet.cores * (before + arrived > room) + fsync * (0.5 + luck.random()) + work[0].cost
        cell.waits.append((wait, counts["appends"]))
        if now >= back:
            cell.worst = max(cell.worst, cell.backlog / fleet.cores)
            if cell.recovered is None and now >= back + RETRY and cell.backlog == 0.0:
                cell.recovered = now - back


def quantile(waits: list[tuple[float, float]], share: float) -> float:
    """Of weighted values."""
    waits = sorted(waits)
    left = share * sum(weight for _, weight in waits)
    for wait, weight in waits:
        left -= weight
        if left <= 0:
            return wait
    return waits[-1][0]


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    cells: int
    servers: int
    connections: int
    parts: dict[str, float]
    mean: float
    worst: float
    p50: float
    p99: float
    wal: float
    recovery: float | None
    server: float


def simulate(fleet: Fleet, cells: int, cost: dict[str, float], seed: int) -> Result:
    """One fleet, one seed."""
    luck = random.Random(seed)
    made = make(fleet, cells, luck)
    for number, cell in enumerate(made):
        run(cell, fleet, cost, luck, fails=number == 0)
    lived = [fleet.seconds - (fleet.outage if number == 0 else 0) for number in range(cells)]
    loads = [sum(cell.busy.values()) / seconds for cell, seconds in zip(made, lived, strict=True)]
    names = made[0].busy
    calm = [wait for cell in made[1:] or made for wait in cell.waits]
    appends = sum(session.rate for cell in made for session in cell.speaking)
    return Result(
        cells,
        max(cell.servers for cell in made),
        max(cell.servers for cell in made) * fleet.connections,
        {name: sum(cell.busy[name] for cell in made) / sum(lived) for name in names},
        sum(loads) / cells,
        max(loads),
        quantile(calm, 0.5),
        quantile(calm, 0.99),
        max(sum(session.rate for session in cell.speaking) for cell in made) * (cost["append_wal"] + fleet.batch * cost["event_wal"]) / 1e6,
        made[0].recovered,
        _server_load(fleet, made, appends, cost),
    )


def _server_load(fleet: Fleet, made: list[Cell], appends: float, cost: dict[str, float]) -> float:
    """Cores of a server, on average, for the store and its subscribers: without the agents themselves and their formats."""
    deliveries = sum(session.rate * session.subscribers for cell in made for session in cell.speaking) * fleet.batch
    wakes = sum(
        min(session.rate, 30) * (1 + followers(session, cell.servers)) for cell in made for session in cell.speaking if session.subscribers
    )
    listed = sum(
        cell.servers
        * cell.sessions
        * cost["list_us"]
        / max(LIST_PACE, LIST_EASE * cell.sessions * (cost["list_us"] + cost["list_db_us"]) * 1e-6)
        for cell in made
    )
    total = (
        appends * (cost["append_us"] + fleet.batch * cost["event_us"]) + deliveries * cost["delivery_us"] + wakes * cost["wake_us"] + listed
    )
    return total * 1e-6 / fleet.servers


def row(result: Result, cores: int) -> str:
    """Of the table."""
    over = result.worst >= cores
    parts = " | ".join(f"{_short(result.parts[name])}" for name in ("appends", "follow", "notify", "list", "beats"))
    times = "— | —" if over else f"{1000 * result.p50:.1f} | {1000 * result.p99:.1f}"
    recovery = "never" if over or result.recovery is None else f"{result.recovery:.1f}"
    return (
        f"| {result.cells} | {result.servers} | {result.connections:,} | {parts} | {_short(result.mean)} | {_short(result.worst)} "
        f"| {times} | {result.wal:.1f} | {recovery} | {result.server:.2f} |"
    )


def _short(cores: float) -> str:
    return f"{cores:,.0f}" if cores >= 100 else f"{cores:.1f}" if cores >= 10 else f"{cores:.2f}"


COLUMNS = [
    "databases",
    "servers each",
    "connections each",
    *("appends", "follow", "notify", "list", "beats"),
    "all, cores",
    "worst, cores",
    "append p50 ms",
    "p99 ms",
    "WAL MB/s, worst",
    "after a failover, s",
    "cores of a server",
]


def table(fleet: Fleet, cells: list[int], cost: dict[str, float], seeds: int) -> str:
    """Rows for numbers of cells; of several seeds the worst in what is worst."""
    rows: list[str] = []
    for number in cells:
        found = [simulate(fleet, number, cost, seed) for seed in range(1, seeds + 1)]
        last = max(found, key=lambda result: result.worst)
        rows.append(row(replace(last, p99=max(result.p99 for result in found)), fleet.cores))
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows]) + "\n"


def costs_table(cost: dict[str, Any]) -> str:
    """What was measured, for people."""
    each = ["database, µs", "server, µs", "bytes of WAL"]
    rows = [
        ("an append, besides its events", cost["append_db_us"], cost["append_us"], cost["append_wal"]),
        ("an event in it (620 bytes)", cost["event_db_us"], cost["event_us"], cost["event_wal"]),
        ("a notification", cost["notify_db_us"], cost["notify_us"], None),
        ("… for each connection that listens, to whatever", cost["listener_db_us"], None, None),
        ("a follower that is woken and reads what is new (one per server and session)", cost["wake_db_us"], cost["wake_us"], None),
        ("an event delivered to a subscriber", None, cost["delivery_us"], None),
        ("a seek to any cursor, then 100 lines", cost["seek_db_us"], cost["seek_us"], None),
        ("a heartbeat, every two seconds", cost["beat_db_us"], cost["beat_us"], cost["beat_wal"]),
        ("a session in the list, at each look", cost["list_db_us"], cost["list_us"], None),
        ("a new connection, with a password over TCP", cost["connect_db_us"], cost["connect_us"], None),
    ]
    lines = [f"| {name} | {' | '.join('' if value is None else f'{value:,.4g}' for value in values)} |" for name, *values in rows]
    about = f"{cost['date']}, {cost['cores']} cores ({cost['processor']}), PostgreSQL {cost['postgresql']}, Python {cost['python']}"
    return "\n".join([f"Measured {about}:", "", f"| | {' | '.join(each)} |", "|---|---|---|---|", *lines]) + "\n"


def sizes_table(cost: dict[str, Any]) -> str:
    """What is to be had ready."""
    mb = 1024 * 1024
    rows = [
        ("an event in a folder, as text", f"{cost['disk_folder']:,.0f} bytes"),
        ("an event in the tables", f"{cost['disk_table']:,.0f} bytes"),
        ("an event in the keys", f"{cost['disk_keys']:,.0f} bytes"),
        ("an event in the index for searching", f"{cost['disk_search']:,.0f} bytes"),
        ("memory of a server that does nothing", f"{cost['server_bytes'] / mb:,.0f} MB"),
        ("memory of a subscription in it", f"{cost['subscription_bytes'] / 1024:,.1f} KB"),
        ("memory of a connection in the database, besides what all share", f"{cost['backend_bytes'] / mb:,.1f} MB"),
    ]
    about = f"Measured {cost['date']} on the {cost['disk_events']:,} events of the recordings in `tests/`, PostgreSQL {cost['postgresql']}:"
    return "\n".join([about, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]) + "\n"


def simulated(fleet: Fleet, cells: list[int], cost: dict[str, float], seeds: int) -> str:
    """The fleet as it is, and as it would be without what costs most."""
    ways = {
        f"What the databases do, in cores, by cause; of seeds 1 to {seeds} the worst:": fleet,
        "The same without notifications, followers look once a second:": replace(fleet, listening=False),
        "The same with notifications, and nobody watches the list of all sessions:": replace(fleet, watched=0.0),
    }
    return "\n".join(f"{words}\n\n{table(each, cells, cost, seeds)}" for words, each in ways.items())


def put(page: Path, name: str, text: str) -> None:
    """Into a page, between its marks."""
    begin, end = f"<!-- {name}: make scale -->", f"<!-- /{name} -->"
    before, _, rest = page.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{page} has no {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--costs", type=Path, default=COSTS)
    options.add_argument("--cells", type=int, nargs="+", default=[1, 10, 20, 40, 100])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--write", type=Path, metavar="DOCS", help="put the tables into the pages of this folder")
    given = options.parse_args()
    cost = json.loads(given.costs.read_text())
    tables = {
        "costs": costs_table(cost),
        "sizes": sizes_table(cost),
        "simulated": simulated(Fleet(seconds=given.seconds), given.cells, cost, given.seeds),
    }
    print(*tables.values(), sep="\n")
    for page, names in PAGES.items() if given.write else ():
        for name in names:
            put(given.write / page, name, tables[name])


if __name__ == "__main__":
    main()
