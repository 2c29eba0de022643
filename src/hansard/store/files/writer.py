"""Writes a log: stamps events, writes each batch at once, syncs what must be durable, and leaves nothing half done.

The writer takes the lock with the first event and holds it until `close`. It never changes or cuts anything it has acknowledged.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hansard.errors import AppendFailed, LogDeleted, StoreError
from hansard.events import Event, session_lifecycle
from hansard.store import blobs
from hansard.store.batch import Batch, WriterOptions, header_event
from hansard.store.checkpoint import Chain
from hansard.store.files import paths as files
from hansard.store.files.compression import decompress_segment
from hansard.store.files.lock import WriterLock
from hansard.store.files.recovery import inspect_tail, recovery_event
from hansard.store.ids import TimeOrderedIds

MAX_UNSYNCED_BYTES = 16 * 1024 * 1024
"""So much may wait for the sync in the background; it is kept in memory until then, in case the sync fails."""


class Writer:
    """The one who writes a log."""

    def __init__(self, folder: Path, options: WriterOptions, dirty: Callable[[], None]) -> None:
        self.session_id = folder.name
        self._options = options
        self._ids = TimeOrderedIds(options.clock)
        self._seq = 0
        self._chain: Chain = Chain()
        self._folder = folder
        self._dirty = dirty
        self._closed = False
        self._append_failed = False
        """Whether the last thing that was to be written was not."""
        self._fd = -1
        self._segment = 1
        self._size = 0
        self._guard = threading.RLock()
        # Only one sync at a time: two on one descriptor share a failure, and only one of them would hear of it.
        self._syncing = threading.Lock()
        self._sync_failed: str | None = None
        self._degraded: str | None = None
        self._unsynced: deque[tuple[int, bytes]] = deque()
        self._total = 0
        self._synced = 0
        self._lock = WriterLock(folder)

    # ---- the public side

    def create(self, header: dict[str, Any]) -> None:
        """Make the log and write its first event."""
        with self._guard:
            try:
                self._fd = files.open_file(self._folder, files.LOG, files.CREATE)
                files.sync_folder(self._folder)
                self._append([header_event(self.session_id, self._ids.next(), header)])
            except OSError as problem:
                raise self._append_error(problem) from problem

    def append(self, events: Iterable[Event]) -> list[Event]:
        """Write all of the events or none."""
        with self._guard:
            try:
                self._prepare()
                stamped = self._append(events)
                self._report_degraded()
            except OSError as problem:
                self._append_failed = True
                raise self._append_error(problem) from problem
            self._append_failed = False
            return stamped

    def sync_in_background(self) -> None:
        """Sync what was written, without keeping an append waiting; called by the thread that does this for all logs."""
        with self._guard:
            fd, mark = self._fd, self._total
            if fd < 0 or mark == self._synced:
                return
        self._try_sync(fd, mark)
        with self._guard, suppress(StoreError, OSError):  # tried again at the next append, which then says why it fails
            self._replace_file_after_failed_sync()
            self._report_degraded()

    def close(self) -> None:
        """Cover what was written with a checkpoint, sync, and let the next writer in."""
        with self._guard:
            try:
                self._seal()
                if self._fd >= 0 and self._total > self._synced:
                    self._sync()
                    self._report_degraded()
            except OSError as problem:
                raise self._append_error(problem) from problem
            finally:
                self._closed = True
                self._drop_file()
                self._lock.release(done=not self._append_failed)

    def _append_error(self, problem: OSError) -> AppendFailed:
        return AppendFailed(f"cannot write session {self.session_id!r}: {problem.strerror}", self._folder)

    # ---- opening

    def _prepare(self) -> None:
        if self._closed:
            raise StoreError(f"session {self.session_id!r} was released while it was being written", self._folder)
        if self._fd >= 0 and not self._is_unchanged():
            self._drop_file()
        if self._fd < 0:
            try:
                self._open()
            except BaseException:
                self._drop_file()  # what is not recovered is not written to
                raise
        self._replace_file_after_failed_sync()

    def _is_unchanged(self) -> bool:
        now = os.fstat(self._fd)
        if now.st_nlink == 0:
            raise LogDeleted(f"the log of session {self.session_id!r} was removed while it was being written", self._folder)
        return now.st_size == self._size

    def _open(self) -> None:
        state = inspect_tail(self._folder)
        self._segment = state.segment
        decompress_segment(self._folder, self._segment)
        self._fd = files.open_file(self._folder, files.segment_name(self._segment), files.APPEND)
        files.restrict_permissions(self._fd)
        self._size = os.fstat(self._fd).st_size
        self._seq, self._chain = state.seq, state.chain
        self._ids.start_above(state.last_id)
        repair: list[Event] = []
        if state.seq == 0:  # the power went while the log was being created
            repair.append(header_event(self.session_id, self._ids.next(), {}))
        if state.torn is not None:
            repair.append(recovery_event(state.torn))
        self._append(repair, b"" if state.terminated else b"\n")

    def _drop_file(self) -> None:
        with self._syncing:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1
            self._unsynced.clear()
            self._synced = self._total

    # ---- writing

    def _append(self, events: Iterable[Event], line_end: bytes = b"", checkpoint: bool = False) -> list[Event]:
        batch = Batch(self.session_id, partial(blobs.put, self._folder), self._options, self._ids, self._seq, self._chain)
        stamped = batch.add(list(events))
        if checkpoint:
            batch.add_checkpoint()
        unhashed = b"".join(batch.unhashed)
        data = b"".join([line_end, *batch.hashed, unhashed])
        if data:
            segment = self._segment
            self._write(data, batch.durable or self._options.strict)
            self._seq, self._chain = batch.seq, batch.chain
            self._chain.add(unhashed, batch.open)
            if self._segment == segment:  # last: until then the log is not as we left it, and would be looked at again
                self._size += len(data)
        return stamped

    def _seal(self) -> None:
        """A log that is closed ends in a checkpoint. Where it cannot be written, the log is as whole as that of a killed writer."""
        if self._fd >= 0 and self._chain.is_open and not self._sync_failed:
            with suppress(OSError, StoreError):
                if self._is_unchanged():
                    self._append([], checkpoint=True)

    def _write(self, data: bytes, durable: bool) -> None:
        total, segment = self._total, self._segment
        try:
            files.write_all(self._fd, data)
            self._total += len(data)
            self._unsynced.append((self._total, data))
            if durable or self._total - self._synced > MAX_UNSYNCED_BYTES:
                self._sync()
            else:
                self._dirty()
        except BaseException:
            if self._segment == segment:
                self._undo_write(total)
            else:  # interrupted just after the change of files: look at the log again
                self._drop_file()
            raise

    def _undo_write(self, total: int) -> None:
        """Cut off our own unacknowledged tail. Where that fails, the next append finds the log changed and recovers it."""
        if self._total > total:
            self._unsynced.pop()
            self._total = total
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)

    # ---- syncing

    def _sync(self) -> None:
        self._try_sync(self._fd, self._total)
        self._replace_file_after_failed_sync()

    def _try_sync(self, fd: int, mark: int) -> None:
        with self._syncing:
            if self._sync_failed or self._fd != fd:
                return
            try:
                os.fdatasync(fd)
            except OSError as problem:
                self._sync_failed = problem.strerror
                return
            self._synced = max(mark, self._synced)
            while self._unsynced and self._unsynced[0][0] <= mark:
                self._unsynced.popleft()

    def _replace_file_after_failed_sync(self) -> None:
        """After a failed sync: never ask that descriptor again. What it may have lost is written anew, into a new file."""
        if not self._sync_failed:
            return
        number = self._segment + 1 if self._unsynced else self._segment
        fd = self._new_segment(number) if self._unsynced else files.open_file(self._folder, files.segment_name(number), files.APPEND)
        with self._syncing:
            os.close(self._fd)
            self._fd, self._segment, self._size = fd, number, os.fstat(fd).st_size
            self._unsynced.clear()
            self._synced = self._total
            self._degraded, self._sync_failed = self._sync_failed, None

    def _new_segment(self, number: int) -> int:
        """A file that begins with everything since the last good sync. It gets its name when it is safe on the disk."""
        name = files.segment_name(number)
        unfinished = self._folder / f"{name}.unfinished"
        unfinished.unlink(missing_ok=True)
        fd = files.open_file(self._folder, unfinished.name, files.CREATE)
        try:
            files.write_all(fd, b"".join(data for _, data in self._unsynced))
            os.fsync(fd)
            os.rename(unfinished, self._folder / name)
            files.sync_folder(self._folder)
        except BaseException:
            os.close(fd)
            for path in (unfinished, self._folder / name):  # readers must not take it for the log
                path.unlink(missing_ok=True)
            raise
        return fd

    def _report_degraded(self) -> None:
        """Say that a sync failed. Where that cannot be said now, the next append says it: the batch before it was acknowledged."""
        if self._degraded:
            detail = {"file": files.segment_name(self._segment)}
            notice = session_lifecycle(subtype="store_degraded", reason=f"a sync failed: {self._degraded}", detail=detail)
            with suppress(OSError, StoreError):
                self._append([notice])
                self._degraded = None


SYNC_INTERVAL_SECONDS = 0.25


class BackgroundSync:
    """Syncs all writers a moment after one of them has written. It sleeps while nothing happens."""

    def __init__(self, writers: Callable[[], Iterable[Writer]]) -> None:
        self._writers = writers
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Something was written."""
        if self._wanted.is_set():
            return
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hansard-sync", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._wanted.wait() and not self._stopped.wait(SYNC_INTERVAL_SECONDS):
            self._wanted.clear()
            if self._stopped.is_set():  # the call to stop came just before, and its wish was cleared with the others
                return
            for writer in self._writers():
                writer.sync_in_background()
