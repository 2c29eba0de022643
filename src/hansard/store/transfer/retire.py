"""Retiring: old sessions go into an archive of compressed logs and then out of the store, explicitly and on the record.

What is deleted was read back from the archive before, line by line and blob by blob. The record of it is a session of its own, in the store
and in the archive: it says what went where, when, by which rule, and the hash of it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from hansard.errors import LogForked, LogLocked, LogRefused, LogReset, UsageError
from hansard.events import session_lifecycle
from hansard.store import Head, JsonlStore, SessionInfo, Store
from hansard.store.retirements import ARCHIVED, CLOSED, DELETED, PREFIX, retirement_fields, retirement_sessions, unrecorded_deletions
from hansard.store.transfer.copy import compare, copy_session


class RetirementResult(Struct, omit_defaults=True, rename="camel"):
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


def find_old_sessions(store: Store, before: float) -> list[SessionInfo]:
    """The sessions in which nothing was said since a time, in ms, and that nobody is writing; the oldest first."""
    found = [info for info in store.sessions() if (info.updated or 0) <= before and not info.live and info.problem is None]
    return [info for info in reversed(found) if not info.id.startswith(PREFIX)]


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
        for info in self._store.sessions():
            if info.id.startswith(PREFIX) and not info.live:
                with suppress(LogLocked):  # another run is finishing it
                    self._finish(info.id)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        with self._archive:
            if kind is None:
                self._close_record()
            elif self.record is not None:  # the next run says what this one did not come to
                self._store[self.record].release()

    def retire(self, info: SessionInfo) -> RetirementResult:
        """Archive one session, and delete it if that is wanted. If anything is in the way of that it stays where it is."""
        try:
            head = self._store[info.id].head()
            done, is_new = self._archived(info.id, head)
        except (LogForked, LogLocked, LogRefused, UsageError) as problem:
            return RetirementResult(info.id, "kept", problem=str(problem))
        detail = {"session": info.id, "logId": head.log_id, "seq": head.seq, "title": info.title, "updated": info.updated}
        if is_new or self._delete:  # before anything is deleted: who is stopped in between has said where it is
            self._note(ARCHIVED, f"{info.id} is in {self._place}", detail | _digest_fields(done))
        if self._delete:
            try:
                self._store.delete(info.id, head.cursor)
            except (LogLocked, LogReset, UsageError) as problem:
                return replace(done, state="kept", problem=str(problem))
            self._note(DELETED, f"{info.id} is not here any more", detail)
            return replace(done, state="deleted")
        return done

    def _archived(self, name: str, head: Head) -> tuple[RetirementResult, bool]:
        """Bring a session into the archive, read it back there and compress it; true if it was not all there before."""
        one = copy_session(self._store, self._archive, name)
        if one.problem is not None or one.state == "ahead":
            raise LogForked(one.problem or f"the archive knows more of {name!r} than the store: it went on there")
        total = compare(self._store, self._archive, name, head.seq)
        if _is_damaged(self._archive, name) and not _is_damaged(self._store, name):
            raise LogRefused(f"session {name!r} is as written in the store, and not in the archive")
        packing = self._archive[name].compress()
        done = RetirementResult(name, "archived", head.seq, total.bytes, packing.stored, total.sha256, len(total.blobs))
        return done, one.state != "unchanged"

    # ---- the record

    def _note(self, subtype: str, reason: str, detail: dict[str, Any]) -> None:
        if self.record is None:
            name = f"{PREFIX}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{token_hex(3)}"
            title = f"Sessions {'archived and deleted' if self._delete else 'archived'}: {self._rule}"
            self._store.create(name, title=title, path=self._place, detail={"rule": self._rule, "delete": self._delete})
            self.record = name
        self._store[self.record].append([session_lifecycle(subtype=subtype, reason=reason, path=self._place, detail=detail)])

    def _finish(self, record: str) -> None:
        """The record of a run that was stopped: what it had deleted by then, and had no time to say, is said now."""
        entries = retirement_fields(self._store, record)
        if entries[CLOSED]:
            return
        for entry in unrecorded_deletions(self._store, entries):
            reason = f"{entry.get('session')} is not here any more; the run was stopped before it said so"
            self._store[record].append([session_lifecycle(subtype=DELETED, reason=reason, detail=entry)])
        self._close(record)

    def _close(self, record: str) -> None:
        self._store[record].append([session_lifecycle(subtype=CLOSED)])
        self._store[record].release()

    def _close_record(self) -> None:
        """Also in the archive, and with it those of runs that were stopped before they came to this."""
        if self.record is not None:
            self._close(self.record)
        for record in retirement_sessions(self._store):
            if copy_session(self._store, self._archive, record).state in ("copied", "continued"):
                self._archive[record].compress()


def _digest_fields(done: RetirementResult) -> dict[str, Any]:
    return {"bytes": done.bytes, "sha256": done.sha256, "blobs": done.blobs}


def _is_damaged(store: Store, session_id: str) -> bool:
    return any(finding.is_damage for finding in store[session_id].verify())
