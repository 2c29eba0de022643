"""The usage of sessions in groups: by agent, day, week, month, model, project, person, or session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from hansard.events.times import to_datetime

if TYPE_CHECKING:
    from hansard.events.ledger import Ledger, LedgerRow, UsageSum
    from hansard.events.prices import PriceTable
    from hansard.store.filters import SessionFilter
    from hansard.store.interface import Store
    from hansard.store.records import SessionInfo

USAGE_GROUPS = ("agent", "day", "week", "month", "model", "project", "person", "session")
"""The ways in which usage can be grouped."""
NO_NAME = "(unknown)"


class UsageReport(NamedTuple):
    """What some sessions used: the rows that count, their groups, and their sum. The ledger is that of all sessions."""

    rows: list[LedgerRow]
    groups: list[tuple[str, UsageSum]]
    total: UsageSum
    ledger: Ledger


def report_usage(store: Store, wanted: SessionFilter, by: str, prices: PriceTable) -> UsageReport:
    """Adds up what the sessions used that a filter means, in groups. ``by`` is one of `USAGE_GROUPS`."""
    from hansard.events.ledger import add_up  # nearly every command knows the names of the groups, and few add up
    from hansard.store.filters import select_sessions
    from hansard.store.usage import read_ledger

    ledger = read_ledger(store, prices)
    sessions = {info.id: info for info in select_sessions(store, wanted)}
    rows = [row for row in ledger.rows() if row.session_id in sessions and wanted.has_time(row.time)]
    total = add_up(rows, [note for name, note in ledger.notes.items() if name in sessions])
    return UsageReport(rows, _groups(rows, ledger, by, sessions), total, ledger)


def _groups(rows: Sequence[LedgerRow], ledger: Ledger, by: str, sessions: Mapping[str, SessionInfo]) -> list[tuple[str, UsageSum]]:
    from hansard.events.ledger import add_up

    name = _name_of(by, sessions)
    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    found: list[tuple[str, UsageSum]] = []
    for group in sorted(groups):
        ids = {row.session_id for row in groups[group]}
        found.append((group, add_up(groups[group], [ledger.notes[session] for session in sorted(ids)])))
    return found


def _name_of(by: str, sessions: Mapping[str, SessionInfo]) -> Callable[[LedgerRow], str]:
    match by:
        case "project":
            names = {name: info.project for name, info in sessions.items()}
        case "person":
            names = {name: info.person for name, info in sessions.items()}
        case _:
            return _NAMES[by]
    return lambda row: names[row.session_id] or NO_NAME


def _day(row: LedgerRow) -> datetime | None:
    from hansard.events.types import EARLIEST_CALENDAR_MS

    return None if row.time is None or row.time < EARLIEST_CALENDAR_MS else to_datetime(row.time, None)


def _date(row: LedgerRow, form: str) -> str:
    day = _day(row)
    return NO_NAME if day is None else f"{day:{form}}"


def _week(row: LedgerRow) -> str:
    day = _day(row)
    return NO_NAME if day is None else f"{day - timedelta(days=day.weekday()):%Y-%m-%d}"


_NAMES: dict[str, Callable[[LedgerRow], str]] = {
    "agent": lambda row: row.agent or NO_NAME,
    "day": lambda row: _date(row, "%Y-%m-%d"),
    "week": _week,
    "month": lambda row: _date(row, "%Y-%m"),
    "model": lambda row: row.model or NO_NAME,
    "session": lambda row: row.session_id,
}
"""What names the group of a row. A week is named by its Monday."""
