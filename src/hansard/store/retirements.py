"""What was retired from a store, by its own record: sessions that say what was archived and deleted, when and by which rule."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec import Struct

from hansard.errors import UsageError
from hansard.events import SessionLifecycle
from hansard.events.lenient import as_object
from hansard.store import Store

PREFIX = "retirement-"
"""How the sessions are called that say what was retired. They are never retired themselves."""
CREATED, ARCHIVED, DELETED, CLOSED = "created", "session_archived", "session_deleted", "closed"
"""The words of the record."""


class RetiredSession(Struct, frozen=True):
    """A session that is not in the store any more: which log it was, where its head was, and when it was deleted, in ms."""

    session: str
    log_id: str
    seq: int
    at: int


def retirement_sessions(store: Store) -> list[str]:
    """The sessions that say what was retired."""
    return [info.id for info in store.sessions() if info.id.startswith(PREFIX)]


def retirement_fields(store: Store, record: str) -> dict[str, list[dict[str, Any]]]:
    """What a record says, by its words."""
    found: dict[str, list[dict[str, Any]]] = {ARCHIVED: [], DELETED: [], CREATED: [], CLOSED: []}
    for event in store[record].read(types=["session_lifecycle"]):
        if isinstance(event, SessionLifecycle) and event.payload.subtype in found:
            found[event.payload.subtype].append(as_object(event.payload.detail) | {"at": event.timestamp})
    return found


def unrecorded_deletions(store: Store, entries: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the entries of sessions that an unfinished run announced and deleted, but did not yet record as deleted.

    A run announces a deletion before it makes it. It can be killed in between, and the next run cannot finish the record before the lease
    of the killed one is over. Until then the announcement and the missing log together say that the session was retired.
    """
    if entries[CLOSED] or not any(entry.get("delete") for entry in entries[CREATED]):
        return []
    recorded = {entry.get("session") for entry in entries[DELETED]}
    return [entry for entry in entries[ARCHIVED] if entry.get("session") not in recorded and not _has_log(store, entry)]


def _has_log(store: Store, entry: dict[str, Any]) -> bool:
    with suppress(UsageError):
        return store[str(entry.get("session"))].head().log_id == entry.get("logId")
    return False


def list_retired(store: Store) -> list[RetiredSession]:
    """Everything that was retired from a store."""
    found: list[RetiredSession] = []
    for record in retirement_sessions(store):
        entries = retirement_fields(store, record)
        for gone in entries[DELETED] + unrecorded_deletions(store, entries):
            seq = gone.get("seq")
            found.append(RetiredSession(str(gone.get("session")), str(gone.get("logId")), seq if isinstance(seq, int) else 0, gone["at"]))
    return found


class RetirementCache:
    """The same for who asks again and again. The record is read for a session that was not asked for before, and once in a round."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, list[RetiredSession]] = {}
        self._others: set[str] = set()
        self._is_fresh = False

    def refresh(self) -> None:
        """A new round: meanwhile more may have been retired."""
        self._is_fresh = False

    def mark_present(self, session_id: str) -> None:
        """The session is there now; should it be missing again, that is news."""
        self._others.discard(session_id)

    def get(self, session_id: str) -> list[RetiredSession]:
        """The logs of that name that were retired."""
        if session_id not in self._known and session_id not in self._others:
            self._read()
            if session_id not in self._known:
                self._others.add(session_id)
        return self._known.get(session_id, [])

    def _read(self) -> None:
        if self._is_fresh:
            return
        self._is_fresh = True
        self._known = {}
        for gone in list_retired(self._store):
            self._known.setdefault(gone.session, []).append(gone)
