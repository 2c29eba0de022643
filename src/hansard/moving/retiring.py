"""Retiring: old sessions go into an archive of compressed logs and then out of the store, explicitly and on the record.

What is deleted was read back from the archive before, line by line and blob by blob. The record of it is a session of its own, in the store
and in the archive: it says what went where, when, by which rule, and the hash of it.
"""

from __future__ import annotations

import time
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from hansard.errors import LogForked, LogLocked, LogRefused, LogReset, UsageError
from hansard.events import SessionLifecycle, session_lifecycle
from hansard.loose import as_object
from hansard.moving.session import compare, moved
from hansard.store import Head, JsonlStore, SessionInfo, Store

PREFIX = "retirement-"
"""How the sessions are called that say what was retired. They are never retired themselves."""
ARCHIVED = "session_archived"
DELETED = "session_deleted"


class Retired(Struct, omit_defaults=True, rename="camel"):
    """What became of one session. ``sha256`` is that of all its lines, ``stored`` what its log takes in the archive."""

    session: str
    state: Literal["archived", "deleted", "would be archived", "would be deleted", "kept"]
    events: int = 0
    bytes: int = 0
    stored: int = 0
    sha256: str = ""
    blobs: int = 0
    problem: str | None = None
    """Why it is still where it was."""


def old(store: Store, before: float) -> list[SessionInfo]:
    """The sessions in which nothing was said since a time, in ms, and that nobody is writing; the oldest first."""
    found = [info for info in store.sessions() if (info.updated or 0) <= before and not info.live and info.problem is None]
    return [info for info in reversed(found) if not info.id.startswith(PREFIX)]


def retired(store: Store) -> dict[tuple[str, str], int]:
    """What was retired from a store, by its own record: the id of each session and of its log, and where its head was."""
    found: dict[tuple[str, str], int] = {}
    for info in store.sessions():
        if info.id.startswith(PREFIX):
            for event in store.read(info.id, types=["session_lifecycle"]):
                if isinstance(event, SessionLifecycle) and event.payload.subtype == DELETED:
                    gone = as_object(event.payload.detail)
                    seq = gone.get("seq")
                    found[str(gone.get("session")), str(gone.get("logId"))] = seq if isinstance(seq, int) else 0
    return found


class Retirement:
    """One run over old sessions of a store. Use it as a context: at its end the record of what was done is closed, and archived too."""

    def __init__(self, store: Store, archive: Path, rule: str, delete: bool) -> None:
        self._store = store
        self._archive = JsonlStore(archive, "always")
        self._place = str(self._archive.root)
        self._rule = rule
        self._delete = delete
        self.record: str | None = None
        """The session that says what was done; None as long as nothing was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        with self._archive:
            self._close_record()

    def retire(self, info: SessionInfo) -> Retired:
        """Archive one session, and delete it if that is wanted. If anything is in the way of that it stays where it is."""
        try:
            head = self._store.head(info.id)
            done, is_new = self._archived(info.id, head)
        except (LogForked, LogLocked, LogRefused, UsageError) as problem:
            return Retired(info.id, "kept", problem=str(problem))
        detail = {"session": info.id, "logId": head.log_id, "seq": head.seq, "title": info.title, "updated": info.updated}
        if is_new or self._delete:  # before anything is deleted: who is stopped in between has said where it is
            self._note(ARCHIVED, f"{info.id} is in {self._place}", detail | _told(done))
        if self._delete:
            try:
                self._store.delete(info.id, head.cursor)
            except (LogLocked, LogReset, UsageError) as problem:
                return replace(done, state="kept", problem=str(problem))
            self._note(DELETED, f"{info.id} is not here any more", detail)
            return replace(done, state="deleted")
        return done

    def _archived(self, name: str, head: Head) -> tuple[Retired, bool]:
        """Bring a session into the archive, read it back there and compress it; true if it was not all there before."""
        one = moved(self._store, self._archive, name)
        if one.problem is not None or one.state == "ahead":
            raise LogForked(one.problem or f"the archive knows more of {name!r} than the store: it went on there")
        total = compare(self._store, self._archive, name, head.seq)
        if _damage(self._archive, name) and not _damage(self._store, name):
            raise LogRefused(f"session {name!r} is as written in the store, and not in the archive")
        packing = self._archive.compress(name)
        done = Retired(name, "archived", head.seq, total.bytes, packing.stored, total.sha256, len(total.blobs))
        return done, one.state != "unchanged"

    # ---- the record

    def _note(self, subtype: str, reason: str, detail: dict[str, Any]) -> None:
        if self.record is None:
            name = f"{PREFIX}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{token_hex(3)}"
            verb = "archived and deleted" if self._delete else "archived"
            self._store.create(name, title=f"Sessions {verb}: {self._rule}", path=self._place, detail={"rule": self._rule})
            self.record = name
        self._store.append(self.record, [session_lifecycle(subtype=subtype, reason=reason, path=self._place, detail=detail)])

    def _close_record(self) -> None:
        """Also those of runs that were stopped before they came to this."""
        if self.record is not None:
            self._store.append(self.record, [session_lifecycle(subtype="closed")])
            self._store.release(self.record)
        for info in self._store.sessions():
            if info.id.startswith(PREFIX) and moved(self._store, self._archive, info.id).state in ("copied", "continued"):
                self._archive.compress(info.id)


def _told(done: Retired) -> dict[str, Any]:
    return {"bytes": done.bytes, "sha256": done.sha256, "blobs": done.blobs}


def _damage(store: Store, session_id: str) -> bool:
    return any(finding.is_damage for finding in store.verify(session_id))
