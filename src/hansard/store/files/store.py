"""The folder engine: a folder per session, whose log is a text file that `cat` and `jq` can read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from math import inf
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

from hansard.errors import LogDeleted, LogReset, SessionExists, StoreError, UnknownSession
from hansard.events import Event
from hansard.store import blobs
from hansard.store.batch import WriterOptions, header_event
from hansard.store.files import compression, paths
from hansard.store.files.captures import FolderCaptures
from hansard.store.files.catalog import FolderCatalog
from hansard.store.files.compression import CompressionResult
from hansard.store.files.description import list_abandoned
from hansard.store.files.ingest import ingest
from hansard.store.files.lock import WriterLock
from hansard.store.files.reader import LogFiles
from hansard.store.files.verify import verify
from hansard.store.files.writer import BackgroundSync, Writer
from hansard.store.ids import TimeOrderedIds, check_session_id, now_ms
from hansard.store.interface import MAX_INLINE_BYTES, Log, Notes, Store
from hansard.store.order import read_event_blocks, read_records
from hansard.store.records import Cursor, Finding, Head, Record, SessionInfo

_BLOCK_BYTES = 64 * 1024
"""How much is decoded at once when events are read."""


class JsonlStore(Store):
    """A `Store` in a folder. ``fsync="always"`` syncs every append; by default only events that must not be lost wait for the disk."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        fsync: Literal["default", "always"] = "default",
        *,
        inline_limit: int = MAX_INLINE_BYTES,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.root = Path(root).resolve()
        self.catalog = FolderCatalog(self.root, self.__getitem__)
        self.search = self.tallies = self.files = self.catalog
        self.writers = FolderWriters(self.root, WriterOptions(fsync == "always", inline_limit, clock), self.catalog)
        self.notes: Notes | None = FolderNotes(self.root)
        self.captures = self._captures = FolderCaptures(self.root)
        self._ids = TimeOrderedIds(clock)

    def __getitem__(self, session_id: str) -> FolderLog:
        """Returns the log of a session, without reading anything."""
        return FolderLog(self.writers, session_id)

    def create(self, session_id: str | None = None, **header: Any) -> Head:
        """Creates a log. ``header`` are fields of its first event: ``format``, ``title``, ``parent_session_id``, …"""
        session_id = self._ids.next() if session_id is None else check_session_id(session_id)
        header_event(session_id, "", header)  # raises for an unknown field before there is a folder
        self.writers.create(session_id, header)
        return self[session_id].head()

    def sessions(self) -> list[SessionInfo]:
        """Returns every session, the one that changed last first."""
        return self.catalog.sessions()

    def session(self, session_id: str) -> SessionInfo:
        """Returns one session of the list, without looking at the others."""
        return self.catalog.session(session_id)

    def update_index(self, seconds: float = inf, advance: Callable[[int], object] | None = None, from_scratch: bool = False) -> bool:
        """Brings the catalog up to the logs; returns False if the time was over."""
        if from_scratch:
            self.catalog.database.drop()
        return self.catalog.update_all(seconds, advance)

    def connect_tables(self) -> sqlite3.Connection:
        """Opens the tables of the catalog."""
        return self.catalog.connect()

    def delete(self, session_id: str, at: Cursor | None = None) -> None:
        """Deletes a session and everything that belongs to it; with ``at`` only if that is still its head, else raises `LogReset`.

        With ``at``, files of the session that were copied and not read yet stay.
        """
        folder = _folder(self.root, session_id)
        self.writers.release(session_id)
        is_captured = at is None and self._remove_capture(session_id)
        if not folder.is_dir():
            if is_captured:
                return
            raise UnknownSession(session_id)
        lock = WriterLock(folder)
        try:
            if at is not None and self[session_id].head().cursor != at:
                raise LogReset(f"session {session_id!r} has gone on since; it is not deleted", folder)
            gone = self.root / f".{session_id}.{token_hex(4)}.deleted"
            os.rename(folder, gone)  # at once for everyone else; the rest may take its time
            shutil.rmtree(gone)
            self.catalog.forget(session_id)
        finally:
            lock.release()

    def _remove_capture(self, session_id: str) -> bool:
        """Removes the files of a session that were copied and not read yet; returns whether there were any."""
        with self._captures.reading(session_id, wait=False) as capture:
            if capture is not None:
                self._captures.remove(session_id)
                self.catalog.forget(session_id)
        return capture is not None

    def abandoned(self) -> list[str]:
        """Returns the sessions whose writer was killed before it released them."""
        return list_abandoned(self.root)

    def close(self) -> None:
        """Stops writing all sessions."""
        self.writers.close()
        self.catalog.close()


class FolderLog(Log):
    """The log of a session in a folder."""

    __slots__ = ("_writers",)  # `store[session_id]` makes one each time

    def __init__(self, writers: FolderWriters, session_id: str) -> None:
        self.session_id = session_id
        self._writers = writers

    @property
    def folder(self) -> Path:
        """The session's folder, whether it exists or not."""
        return _folder(self._writers.root, self.session_id)

    def head(self) -> Head:
        """Returns the end of the log."""
        with LogFiles(self.folder) as log:
            return log.head()

    def append(self, events: Iterable[Event]) -> list[Event]:
        """Writes all of the events or none, and returns them as they are in the log: with id, seq, time and session."""
        try:
            return self._writers.get(self.session_id).append(events)
        except LogDeleted:
            self.release()
            raise

    def ingest(self, lines: Iterable[Record]) -> Head:
        """Appends the lines of another store's log unchanged, in batches, each written completely or not at all."""
        folder = self.folder
        _make_folder(folder)
        ingest(folder, lines)
        self._writers.catalog.update(self.session_id)
        return self.head()

    def release(self) -> None:
        """Stops writing this session, so that another process can."""
        self._writers.release(self.session_id)

    def decode(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Event]:
        """Like `read`, but yields the events as they are written."""
        if types is not None:
            return super().decode(after, limit, before, types)
        size = _BLOCK_BYTES if limit is None else min(_BLOCK_BYTES, 1024 * limit)
        return islice(self._read_events(self._seq(after), before, size), limit)

    def decode_blocks(self, size: int) -> Iterator[tuple[list[Event], int]]:
        """Like `read_blocks`, but yields the events as they are written."""
        with LogFiles(self.folder) as log:
            yield from read_event_blocks(log, size)

    def records(
        self, after: int | Cursor = 0, limit: int | None = None, before: int | None = None, types: Iterable[str] | None = None
    ) -> Iterator[Record]:
        """Like `read`, but yields the lines."""
        found = self._read_records(self._seq(after), before)
        if types is not None:
            wanted = frozenset(types)
            found = (record for record in found if record.type in wanted)
        return islice(found, limit)

    def follow_records(self, after: int | Cursor = 0) -> AsyncGenerator[Record]:
        """Like `follow`, but yields the lines."""
        seq = self._seq(after)
        from hansard.store.files.follow import follow  # with asyncio, which takes longer to import than most commands take to run

        return follow(self.folder, seq)

    def verify(self) -> list[Finding]:
        """Returns everything that is wrong with the log."""
        return verify(self._existing())

    def compress(self) -> CompressionResult:
        """Compresses a log that no one is writing, without loss. It reads as before; a writer decompresses it first."""
        return compression.compress(self.folder)

    def expand(self) -> CompressionResult:
        """Makes a compressed log plain text again."""
        return compression.expand(self.folder)

    def put_blob(self, data: bytes) -> str:
        """Stores bytes next to the log and returns their name, the SHA-256."""
        folder = self._existing()
        try:
            return blobs.put(folder, data)
        except OSError as problem:
            raise StoreError(f"cannot store a blob of session {self.session_id!r}: {problem.strerror}", folder) from problem

    def get_blob(self, sha256: str) -> bytes:
        """Returns the bytes of that name; raises `BlobDamaged` if they are missing or changed."""
        return blobs.get(self._existing(), sha256)

    def _existing(self) -> Path:
        return _existing_folder(self._writers.root, self.session_id)

    def _seq(self, after: int | Cursor) -> int:
        with LogFiles(self.folder) as log:
            return log.seq_of(after)

    def _read_records(self, after: int, before: int | None) -> Iterator[Record]:
        with LogFiles(self.folder) as log:
            for record in read_records(log, after):
                if before is not None and record.seq >= before:
                    return
                yield record

    def _read_events(self, after: int, before: int | None, size: int) -> Iterator[Event]:
        with LogFiles(self.folder) as log:
            for block, _ in read_event_blocks(log, size, after):
                for event in block:
                    if before is not None and event.seq >= before:
                        return
                    yield event


class FolderWriters:
    """The writers of a store: one for each session that it writes."""

    def __init__(self, root: Path, options: WriterOptions, catalog: FolderCatalog) -> None:
        self.root = root
        self.catalog = catalog
        self._options = options
        self._by_session: dict[str, Writer] = {}
        self._guard = threading.RLock()
        self._background_sync = BackgroundSync(self._all)

    def get(self, session_id: str) -> Writer:
        """Returns the writer of a session; the first time it takes the lock, and creates the log if there is none."""
        writer = self._by_session.get(session_id)
        if writer is None:
            with self._guard:
                if session_id not in self._by_session:
                    self._open(session_id, {})
                writer = self._by_session[session_id]
        return writer

    def create(self, session_id: str, header: dict[str, Any]) -> None:
        """Creates a log; raises `SessionExists` if there is one."""
        with self._guard:
            if session_id in self._by_session:
                raise SessionExists(session_id)
            if not self._open(session_id, header):
                self.release(session_id)
                raise SessionExists(session_id)

    def release(self, session_id: str) -> None:
        """Closes the writer of a session, if there is one."""
        with self._guard:
            writer = self._by_session.pop(check_session_id(session_id), None)
        if writer is not None:
            writer.close()
            self.catalog.update(session_id)

    def close(self) -> None:
        """Closes all writers."""
        self._background_sync.stop()
        self._background_sync = BackgroundSync(self._all)
        with ExitStack() as each:  # one that fails does not keep the others
            for session_id in list(self._by_session):
                each.callback(self.release, session_id)

    def _all(self) -> list[Writer]:
        with self._guard:
            return list(self._by_session.values())

    def _open(self, session_id: str, header: dict[str, Any]) -> bool:
        """Takes the lock, and returns whether this created the log."""
        folder = _folder(self.root, session_id)
        _make_folder(folder)
        writer = Writer(folder, self._options, self._background_sync.request)
        self._by_session[session_id] = writer
        if paths.has_log(folder):
            return False
        try:
            writer.create(header)
        except BaseException:
            self.release(session_id)
            raise
        return True


class FolderNotes:
    """Notes as files next to a log."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, session_id: str, name: str, data: bytes) -> None:
        """Keeps a note, and replaces the one of that name."""
        paths.put_note(_existing_folder(self._root, session_id), name, data)

    def get(self, session_id: str, name: str) -> bytes | None:
        """Returns the note of that name, if there is one."""
        return paths.get_note(_existing_folder(self._root, session_id), name)


def _folder(root: Path, session_id: str) -> Path:
    return root / check_session_id(session_id)


def _existing_folder(root: Path, session_id: str) -> Path:
    folder = _folder(root, session_id)
    if not paths.has_log(folder):
        raise UnknownSession(session_id)
    return folder


def _make_folder(folder: Path) -> None:
    try:
        folder.parent.mkdir(0o700, parents=True, exist_ok=True)
        paths.make_folder(folder)
    except OSError as problem:
        raise StoreError(f"cannot create {folder}: {problem.strerror}", folder) from problem
