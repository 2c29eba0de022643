"""What was retired from a store, by its own record: sessions that say what was archived and deleted, when and by which rule."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from hansard.events import SessionLifecycle
from hansard.loose import as_object
from hansard.store import Store

PREFIX = "retirement-"
"""How the sessions are called that say what was retired. They are never retired themselves."""
CREATED, ARCHIVED, DELETED, CLOSED = "created", "session_archived", "session_deleted", "closed"
"""The words of the record."""


class Gone(Struct, frozen=True):
    """A session that is not in the store any more: which log it was, where its head was, and when it was deleted, in ms."""

    session: str
    log_id: str
    seq: int
    at: int


def records(store: Store) -> list[str]:
    """The sessions that say what was retired."""
    return [info.id for info in store.sessions() if info.id.startswith(PREFIX)]


def said(store: Store, record: str) -> dict[str, list[dict[str, Any]]]:
    """What a record says, by its words."""
    found: dict[str, list[dict[str, Any]]] = {ARCHIVED: [], DELETED: [], CREATED: [], CLOSED: []}
    for event in store.read(record, types=["session_lifecycle"]):
        if isinstance(event, SessionLifecycle) and event.payload.subtype in found:
            found[event.payload.subtype].append(as_object(event.payload.detail) | {"at": event.timestamp})
    return found


def retired(store: Store) -> list[Gone]:
    """Everything that was retired from a store."""
    return [
        Gone(str(gone.get("session")), str(gone.get("logId")), seq if isinstance(seq := gone.get("seq"), int) else 0, gone["at"])
        for record in records(store)
        for gone in said(store, record)[DELETED]
    ]


class Memory:
    """The same for who asks again and again. The record is read for a session that was not asked for before, and once in a round."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, list[Gone]] = {}
        self._others: set[str] = set()
        self._is_fresh = False

    def begin(self) -> None:
        """A new round: meanwhile more may have been retired."""
        self._is_fresh = False

    def came(self, session_id: str) -> None:
        """The session is there now; should it be missing again, that is news."""
        self._others.discard(session_id)

    def of(self, session_id: str) -> list[Gone]:
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
        for gone in retired(self._store):
            self._known.setdefault(gone.session, []).append(gone)
