"""The embedded store: a folder per session, its log a text file that `cat` and `jq` can read."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

from hansard.errors import LogDeleted, LogReset, SessionExists, StoreError, UnknownSession
from hansard.events import Event
from hansard.store import blobs, files, packing
from hansard.store.base import INLINE_LIMIT, Engine
from hansard.store.batch import Options, created
from hansard.store.behind import SyncBehind
from hansard.store.ids import TimeOrderedIds, check_session_id, now_ms
from hansard.store.interface import Asked, Cursor, Finding, Head, Record, SessionInfo
from hansard.store.listing import Listing, list_abandoned
from hansard.store.lock import WriterLock
from hansard.store.order import shown, shown_blocks
from hansard.store.packing import Packing
from hansard.store.reader import Log
from hansard.store.transfer import transfer
from hansard.store.verify import verify
from hansard.store.writer import Writer

_AT_ONCE = 64 * 1024
"""So many bytes are decoded at once where events are read."""


class JsonlStore(Engine):
    """A `Store` in a folder. ``fsync="always"`` syncs every append; by default only what must not be lost waits for the disk."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        fsync: Literal["default", "always"] = "default",
        *,
        inline_limit: int = INLINE_LIMIT,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.root = Path(root).resolve()
        self._options = Options(fsync == "always", inline_limit, clock)
        self._ids = TimeOrderedIds(clock)
        self._listing = Listing(self.root)
        self._writers: dict[str, Writer] = {}
        self._guard = threading.RLock()
        self._behind = SyncBehind(self._all_writers)

    # ---- writing

    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """A new log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""
        session_id = self._ids.next() if session_id is None else check_session_id(session_id)
        created(session_id, "", header)  # a field that does not exist is noticed before there is a folder
        with self._guard:
            if session_id in self._writers:
                raise SessionExists(session_id)
            if not self._open_writer(session_id, header):
                self.release(session_id)
                raise SessionExists(session_id)
        return self.head(session_id)

    def append(self, session_id: str, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none, and return them as they are in the log: with id, seq, time and session."""
        writer = self._writers.get(session_id) or self._writer(session_id)
        try:
            return writer.append(events)
        except LogDeleted:
            self.release(session_id)
            raise

    def transfer(self, session_id: str, lines: Iterable[Record]) -> Head:
        """Append lines of another store's log as they stand there, byte for byte, in batches, each of them all or nothing."""
        folder = self._folder(session_id)
        self._make_folder(folder)
        transfer(folder, lines)
        return self.head(session_id)

    def release(self, session_id: str) -> None:
        """Stop writing this session, so that somebody else may."""
        with self._guard:
            writer = self._writers.pop(check_session_id(session_id), None)
        if writer is not None:
            writer.close()

    def close(self) -> None:
        """Stop writing all sessions."""
        self._behind.stop()
        self._behind = SyncBehind(self._all_writers)
        with ExitStack() as each:  # one that fails does not keep the others
            for session_id in list(self._writers):
                each.callback(self.release, session_id)

    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Remove a session with everything that belongs to it; with ``at`` only if its head is still there, else `LogReset`."""
        folder = self._folder(session_id)
        self.release(session_id)
        if not folder.is_dir():
            raise UnknownSession(session_id)
        lock = WriterLock(folder)
        try:
            if at is not None and self.head(session_id).cursor != at:
                raise LogReset(f"session {session_id!r} has gone on since; it is not deleted", folder)
            gone = self.root / f".{session_id}.{token_hex(4)}.deleted"
            os.rename(folder, gone)  # at once for everybody else; the rest may take its time
            shutil.rmtree(gone)
        finally:
            lock.release()

    # ---- reading

    def head(self, session_id: str) -> Head:
        """How far the log has got."""
        with self._log(session_id) as log:
            return log.head()

    def read(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Event]:
        """Events in order of ``seq``, in constant memory. A damaged line comes as a ``raw`` event with ``seq`` 0."""
        if types is not None:
            return super().read(session_id, after, limit, before, types)
        with self._log(session_id) as log:
            seq = log.seq_of(after)
        size = _AT_ONCE if limit is None else min(_AT_ONCE, 1024 * limit)
        return islice(self._events(session_id, seq, before, size), limit)

    def read_blocks(self, session_id: str, size: int) -> Iterator[tuple[list[Event], int]]:
        """All of a log's events in blocks of about ``size`` bytes, and how many bytes each is: the fastest way to read everything."""
        with self._log(session_id) as log:
            yield from shown_blocks(log, size)

    def records(
        self,
        session_id: str,
        after: int | Cursor = 0,
        limit: int | None = None,
        before: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[Record]:
        """Like `read`, but as lines, for sending on."""
        with self._log(session_id) as log:
            seq = log.seq_of(after)
        found = self._records(session_id, seq, before)
        if types is not None:
            wanted = frozenset(types)
            found = (record for record in found if record.type in wanted)
        return islice(found, limit)

    def saying(self, words: Sequence[str], types: Iterable[str]) -> frozenset[str] | None:
        """Nobody knows: there is no index that could be behind the logs."""
        return None

    def said(self, session_id: str, words: Sequence[str], types: Iterable[str]) -> Iterator[Record]:
        """All of these types."""
        return self.records(session_id, types=types)

    def follow_records(self, session_id: str, after: int | Cursor = 0) -> AsyncIterator[Record]:
        """Like `follow`, but as lines."""
        with self._log(session_id) as log:
            seq = log.seq_of(after)
        from hansard.store.follow import follow  # with asyncio, which takes longer to import than most commands take to run

        return follow(self._folder(session_id), seq)

    def sessions(self) -> list[SessionInfo]:
        """Every session, the one that changed last first."""
        return self._listing.sessions()

    def abandoned(self) -> list[str]:
        """The sessions whose last writer is gone and did not let go of them: it was killed."""
        return list_abandoned(self.root)

    def compress(self, session_id: str) -> Packing:
        """Compress a log that nobody is writing, without loss. Everything reads it as before; who writes it again unpacks it first."""
        return packing.compress(self._folder(session_id))

    def expand(self, session_id: str) -> Packing:
        """Make a compressed log plain text again."""
        return packing.expand(self._folder(session_id))

    def verify(self, session_id: str) -> list[Finding]:
        """Everything that is wrong with a log."""
        return verify(self._existing(session_id))

    # ---- other processes: a folder is for one at a time, and who comes second is told who was first

    async def ask(self, session_id: str, name: str, words: bytes) -> bytes | None:
        """None: whoever wants something of a session opens it, and hears then if somebody else writes it."""
        return None

    async def asked(self) -> AsyncIterator[Asked]:
        """Nothing, for ever."""
        import asyncio

        await asyncio.Event().wait()
        yield Asked("", "", b"")

    def answer(self, asked: Asked, words: bytes | None) -> None:
        """Nobody asked."""

    # ---- large things

    def put_blob(self, session_id: str, data: bytes) -> str:
        """Store bytes beside the log; they are named by their SHA-256."""
        folder = self._existing(session_id)
        try:
            return blobs.put(folder, data)
        except OSError as problem:
            raise StoreError(f"cannot store a blob of session {session_id!r}: {problem.strerror}", folder) from problem

    def get_blob(self, session_id: str, sha256: str) -> bytes:
        """The bytes of that name, checked."""
        return blobs.get(self._existing(session_id), sha256)

    def put_note(self, session_id: str, name: str, data: bytes) -> None:
        """Keep a note beside the log, in the place of the one of that name. It may be lost: it says what the log says, only sooner."""
        files.put_note(self._existing(session_id), name, data)

    def get_note(self, session_id: str, name: str) -> bytes | None:
        """The note of that name, if there is one."""
        return files.get_note(self._existing(session_id), name)

    # ---- within

    def _folder(self, session_id: str) -> Path:
        return self.root / check_session_id(session_id)

    def _existing(self, session_id: str) -> Path:
        folder = self._folder(session_id)
        if not files.has_log(folder):
            raise UnknownSession(session_id)
        return folder

    def _log(self, session_id: str) -> Log:
        return Log(self._folder(session_id))

    def _records(self, session_id: str, after: int, before: int | None) -> Iterator[Record]:
        with self._log(session_id) as log:
            for record in shown(log, after):
                if before is not None and record.seq >= before:
                    return
                yield record

    def _events(self, session_id: str, after: int, before: int | None, size: int) -> Iterator[Event]:
        with self._log(session_id) as log:
            for block, _ in shown_blocks(log, size, after):
                for event in block:
                    if before is not None and event.seq >= before:
                        return
                    yield event

    def _make_folder(self, folder: Path) -> None:
        try:
            self.root.mkdir(0o700, parents=True, exist_ok=True)
            files.make_folder(folder)
        except OSError as problem:
            raise StoreError(f"cannot create {folder}: {problem.strerror}", folder) from problem

    def _all_writers(self) -> list[Writer]:
        with self._guard:
            return list(self._writers.values())

    def _writer(self, session_id: str) -> Writer:
        with self._guard:
            if session_id not in self._writers:
                self._open_writer(session_id, {})
            return self._writers[session_id]

    def _open_writer(self, session_id: str, header: dict[str, Any]) -> bool:
        """Take the lock; true if the log was made by this."""
        folder = self._folder(session_id)
        self._make_folder(folder)
        writer = Writer(folder, self._options, self._behind.want)
        self._writers[session_id] = writer
        if files.has_log(folder):
            return False
        try:
            writer.create(header)
        except BaseException:
            self.release(session_id)
            raise
        return True
