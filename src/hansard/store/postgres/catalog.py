"""The list of sessions, search and usage: columns that the writers keep up to date beside the lines.

An event's search text is a lowercase column with a trigram index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from psycopg import Connection, sql

from hansard.events import Event
from hansard.events.usage_totals import USAGE_TYPES, TotalUsage, UsageFold
from hansard.store.postgres.connection import Pool
from hansard.store.postgres.rows import clean, decode_state
from hansard.store.records import SessionChanges, SessionInfo, known_usage, place_fields

_ROWS = """
SELECT s.id, s.log_id, s.title, s.agent, s.format, s.archived, s.seq, s.created, s.updated, s.bytes, s.status,
       lives(w.until), s.state, s.usage
FROM session s LEFT JOIN writer w ON w.id = s.holder
"""
_LIST = f"{_ROWS}WHERE %(only)s::text IS NULL OR s.id = %(only)s ORDER BY s.updated DESC, s.id"
_CHANGED_IDS = """
SELECT id FROM session WHERE changed >= %(since)s
UNION ALL SELECT h.id FROM session h LEFT JOIN writer l ON l.id = h.holder WHERE h.holder IS NOT NULL AND NOT lives(l.until)
"""
"""The second part: if a writer is killed, nothing changes in the table."""
CHANGED = f"{_ROWS}WHERE s.id IN ({_CHANGED_IDS}) ORDER BY s.updated DESC, s.id"
_DELETED = """
SELECT session_id FROM deleted d WHERE at >= %(since)s AND NOT EXISTS (SELECT FROM session s WHERE s.id = d.session_id)
"""
LATE = timedelta(minutes=1)
"""How long a change may take until others see it: what changed shortly before the last look is read again."""
_ABANDONED = """
SELECT s.id FROM session s LEFT JOIN writer w ON w.id = s.holder
WHERE s.holder IS NOT NULL AND NOT s.copying AND NOT lives(w.until)
ORDER BY s.id
"""


def sessions(pool: Pool, only: str | None = None) -> list[SessionInfo]:
    """Every session, the one that changed last first; or only one of them."""
    return _infos(pool.query(lambda connection: connection.execute(_LIST, {"only": only}).fetchall()))


def changes(pool: Pool, mark: datetime | None) -> SessionChanges:
    """What changed since a mark; without one, every session."""

    def read(connection: Connection[Any]) -> SessionChanges:
        now = connection.execute("SELECT now()").fetchone()
        after = None if now is None else now[0]
        if mark is None:
            return SessionChanges(_infos(connection.execute(_LIST, {"only": None}).fetchall()), mark=after)
        since = {"since": mark - LATE}
        gone = [name for (name,) in connection.execute(_DELETED, since).fetchall()]
        return SessionChanges(_infos(connection.execute(CHANGED, since).fetchall()), gone, after)

    return pool.query(read)


def _infos(rows: Iterable[tuple[Any, ...]]) -> list[SessionInfo]:
    return [
        SessionInfo(
            id=id,
            log_id=log_id,
            title=title,
            agent=agent,
            format=format,
            archived=archived,
            events=seq,
            created=created,
            updated=updated,
            bytes=size,
            status=status,
            live=live,
            usage=None if usage is None else known_usage(msgspec.convert(usage, TotalUsage)),
            **place_fields(decode_state(state)[2]),
        )
        for id, log_id, title, agent, format, archived, seq, created, updated, size, status, live, state, usage in rows
    ]


def abandoned(pool: Pool) -> list[str]:
    """The sessions whose holder is gone and did not let go of them."""
    return [name for (name,) in pool.query(lambda connection: connection.execute(_ABANDONED).fetchall())]


def search_sessions(pool: Pool, words: Sequence[str], types: Iterable[str]) -> frozenset[str]:
    """The sessions in which an event of these types says all the words."""
    text = sql.SQL("SELECT DISTINCT session_id FROM event WHERE type = ANY(%(types)s) AND {says}").format(says=search_condition(words))
    values = {"types": list(types), **search_patterns(words)}
    return frozenset(name for (name,) in pool.query(lambda connection: connection.execute(text, values).fetchall()))


def search_condition(words: Sequence[str]) -> sql.Composed:
    """The condition that all the words are said. One for each, because the index answers no other form."""
    conditions = [sql.SQL("said LIKE {}").format(sql.Placeholder(name)) for name in search_patterns(words)]
    return sql.SQL(" AND ").join([sql.SQL("TRUE"), *conditions])


def search_patterns(words: Sequence[str]) -> dict[str, str]:
    """The values of that condition."""
    escapes = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
    return {f"word{number}": f"%{clean(word).translate(escapes)}%" for number, word in enumerate(words)}


_REPORTING_TYPES = {"usage", "result"}
"""The types that report usage; the other ones only say what it belongs to."""


class RowUsage:
    """The tally of one log, for its writer. ``read`` gives the events of some types that are in the log now."""

    def __init__(self, read: Callable[[frozenset[str]], Iterable[Event]]) -> None:
        self._read = read
        self._tally: UsageFold | None = None
        self._uncommitted = False
        """Whether events are counted of which nobody knows yet whether they are written."""

    def add(self, events: Iterable[Event]) -> str | None:
        """What the session will have used when these are written, as JSON; None while nobody has said anything."""
        counted = [event for event in events if event.type in USAGE_TYPES]
        if self._uncommitted:
            self._tally, self._uncommitted = None, False
        if self._tally is None and any(event.type in _REPORTING_TYPES for event in counted):
            self._tally = UsageFold()
            for event in self._read(USAGE_TYPES):
                self._tally.apply(event)
        if self._tally is None:
            return None
        for event in counted:
            self._tally.apply(event)
        self._uncommitted = self._uncommitted or bool(counted)
        return msgspec.json.encode(self._tally.session()).decode()

    def commit(self) -> None:
        """They are."""
        self._uncommitted = False
