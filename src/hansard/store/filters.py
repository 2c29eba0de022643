"""The filters of lists and tables: the same words on the command line, on the page, over HTTP, and in Python."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from hansard.errors import UsageError
from hansard.events.agent_family import agent_family
from hansard.store.interface import Store
from hansard.store.records import SessionInfo

FILTER_WORDS: Mapping[str, str] = {
    "since": "Not before this time: 7d, 12h, 2w, today, yesterday, or a date.",
    "until": "Before this time; a date means the end of that day.",
    "project": "Only this project: a name, a path, or . for here.",
    "agent": "Only this agent, like claude or codex.",
    "model": "Only sessions with this model, or one that begins so.",
    "status": "Only with this status: completed, error, interrupted, …, or failed.",
    "touched": "Only sessions that read or changed this file.",
    "person": "Only sessions of this person.",
    "cost_over": "Only sessions that cost more than this many US dollars.",
}
"""The names of the filters, with what they do."""
REPEATABLE_FILTERS = frozenset({"project", "agent", "model", "status", "person"})
"""The filters that can be given several times: one of the values must be true."""
FAILED = frozenset({"error", "lost", "refused", "max_tokens", "denied"})
"""The statuses of turns that did not end as they should. A person interrupts a turn on purpose."""
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])")


class SessionFilter(Struct, frozen=True, kw_only=True):
    """What a session must be. None and empty lists allow everything."""

    since: int | None = None
    until: int | None = None
    """The first moment that does not count."""
    projects: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    touched: str | None = None
    """The absolute path of a file."""
    persons: tuple[str, ...] = ()
    cost_over: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it allows every session."""
        return self == EVERY_SESSION

    def matches(self, info: SessionInfo) -> bool:
        """Whether the list of sessions shows that this one is meant. `touched` and `cost_over` need tables: see `select_sessions`."""
        return (
            (self.since is None or (info.updated or 0) >= self.since)
            and (self.until is None or (info.created or info.updated or 0) < self.until)
            and (not self.projects or any(_is_project(info, project) for project in self.projects))
            and (not self.agents or any(_is_agent(info, agent) for agent in self.agents))
            and (not self.models or any(model.casefold().startswith(wanted.casefold()) for model in info.models for wanted in self.models))
            and (not self.statuses or has_status(self.statuses, info.status))
            and (not self.persons or (info.person or "").casefold() in {person.casefold() for person in self.persons})
        )

    def matches_captured(self, info: SessionInfo) -> bool:
        """Whether a session is meant of which the files were only copied so far: nothing is known of what it did and cost."""
        return self.touched is None and self.cost_over is None and self.matches(info)

    def has_time(self, time: int | None) -> bool:
        """Whether a moment is in the time that is meant. One that is not known is."""
        return time is None or ((self.since is None or time >= self.since) and (self.until is None or time < self.until))


EVERY_SESSION = SessionFilter()


def has_status(statuses: Collection[str], status: str | None) -> bool:
    """Returns whether a status is among those that are meant."""
    return status in statuses or ("failed" in statuses and status in FAILED)


def parse_filter(words: Mapping[str, Any], now: datetime, folder: str | None = None) -> SessionFilter:
    """Returns a filter from words as a person gives them: a text for each of `FILTER_WORDS`, or a list of alternatives.

    ``folder`` is what `.` and relative paths mean.
    """
    if unknown := sorted(words.keys() - FILTER_WORDS.keys()):
        raise UsageError(f"unknown filter {unknown[0]!r}; the filters are {', '.join(FILTER_WORDS)}")
    given = {name: [text for text in ([value] if isinstance(value, str) else value or ()) if text] for name, value in words.items()}
    texts = {name: values for name, values in given.items() if values}
    since, until = (parse_time(texts[name][-1], now, is_end=name == "until") if name in texts else None for name in ("since", "until"))
    touched = texts.get("touched", [None])[-1]
    return SessionFilter(
        since=since,
        until=until,
        projects=tuple(_project(project, folder) for project in texts.get("project", ())),
        agents=tuple(texts.get("agent", ())),
        models=tuple(texts.get("model", ())),
        statuses=tuple(texts.get("status", ())),
        touched=None if touched is None else _absolute(touched, folder),
        persons=tuple(texts.get("person", ())),
        cost_over=_amount(texts["cost_over"][-1]) if "cost_over" in texts else None,
    )


def parse_time(text: str, now: datetime, is_end: bool = False) -> int:
    """Returns a moment in milliseconds: some time ago (7d), a day (today, yesterday, 2026-11-19), or a date with a time.

    With ``is_end``, a day means its end.
    """
    word = text.strip().casefold()
    if ago := _AGO.fullmatch(word):
        try:
            return _ms(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        except OverflowError:
            return 0
    days = {"today": 0, "yesterday": -1}
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in days:
        return _ms(_days_later(day, days[word] + is_end))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"not a time: {text!r}; use 7d, 12h, 2w, today, yesterday, 2026-11-19, or 2026-11-19T08:30") from None
    moment = moment if moment.tzinfo is not None else _local(moment, now.tzinfo)
    is_day = re.fullmatch(r"[\d-]+(W\d+(-?\d)?)?", text.strip()) is not None
    return _ms(_days_later(moment, 1) if is_day and is_end else moment)


def select_sessions(store: Store, wanted: SessionFilter) -> list[SessionInfo]:
    """Returns the sessions that a filter means, the one that changed last first."""
    found = [info for info in store.sessions() if wanted.matches(info)]
    if wanted.touched is not None and found:
        names = {touch.session for touch in touched_files(store, wanted.touched)}
        found = [info for info in found if info.id in names]
    if wanted.cost_over is not None and found:
        costs = session_costs(store)
        found = [info for info in found if (costs.get(info.id) or 0) > wanted.cost_over]
    return found


class Touch(Struct, frozen=True):
    """A call that read or changed a file."""

    session: str
    seq: int
    path: str
    """The absolute path, where the folder of the call is known."""


def touched_files(store: Store, path: str) -> list[Touch]:
    """Returns the calls that read or changed a file, in the order of the table."""
    name = PurePosixPath(path).name
    question = (
        "SELECT call.session, call.seq, call.path, sessions.cwd FROM {} AS call JOIN sessions USING (session)"
        " WHERE call.path = :name OR call.path LIKE :ending ESCAPE '\\'"
    )
    ending = "%/" + re.sub(r"([\\%_])", r"\\\1", name)
    union = " UNION ".join(question.format(table) for table in ("tool_calls", "edits"))
    rows = store.query(union, {"name": name, "ending": ending})
    touches = [Touch(session, seq, absolute_path(said, cwd)) for session, seq, said, cwd in rows]
    return [touch for touch in touches if is_same_file(touch.path, path)]


def absolute_path(path: str, folder: str | None) -> str:
    """Returns a path as seen from the root, where the folder is known."""
    return os.path.normpath(path if folder is None else f"{folder}/{path}" if not path.startswith(("/", "~")) else path)


def is_same_file(path: str, other: str) -> bool:
    """Returns whether two paths mean the same file. Of a relative one, the end must be the same."""
    if path.startswith("/") and other.startswith("/"):
        return path == other or os.path.realpath(path) == os.path.realpath(other)
    return f"/{path}".endswith(f"/{other.lstrip('/')}") or f"/{other}".endswith(f"/{path.lstrip('/')}")


def session_costs(store: Store) -> dict[str, float]:
    """Returns what sessions cost, by their ids; those without a known cost are left out."""
    from hansard.store.usage import load_prices, read_ledger  # it reads all sessions

    costs: dict[str, float] = {}
    for row in read_ledger(store, load_prices(getattr(store, "root", None))).rows():
        if row.cost_usd is not None:
            costs[row.session_id] = costs.get(row.session_id, 0.0) + row.cost_usd
    return costs


def _is_project(info: SessionInfo, project: str) -> bool:
    if not project.startswith("/"):
        return project.casefold() in {(info.project or "").casefold(), (info.remote or "").casefold()}
    folders = [folder for folder in (info.cwd, info.repository) if folder is not None]
    return any(folder == project or folder.startswith(f"{project.rstrip('/')}/") for folder in folders) or (
        info.repository is not None and project.startswith(f"{info.repository.rstrip('/')}/")
    )


def _is_agent(info: SessionInfo, agent: str) -> bool:
    families = {one.family for one in info.agent_sessions} | {agent_family(name) for name in (info.agent, info.format) if name}
    return agent.casefold() in {name.casefold() for name in (*families, info.agent or "", info.format or "")}


def _project(text: str, folder: str | None) -> str:
    is_path = text in (".", "..", "~") or ("/" in text and "://" not in text)
    return _absolute(text, folder) if is_path else text


def _absolute(text: str, folder: str | None) -> str:
    path = os.path.expanduser(text)
    return os.path.normpath(path if path.startswith("/") or folder is None else f"{folder}/{path}")


def _amount(text: Any) -> float:
    try:
        return float(str(text).lstrip("$"))
    except ValueError:
        raise UsageError(f"not an amount in US dollars: {text!r}") from None


def _local(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()


def _days_later(day: datetime, days: int) -> datetime:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return datetime.max.replace(tzinfo=day.tzinfo)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
