"""One session, imported: its own file, its sub-agents' files as streams of the same log, its attachments as blobs."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from hansard.adapters import layout_of
from hansard.adapters.base import Context, is_imported
from hansard.adapters.linking import Linker, is_linked
from hansard.errors import HansardError, LogLocked, SessionExists, UnknownSession
from hansard.events import MAIN_STREAM_MARK, Event, is_main_stream, session_lifecycle
from hansard.events.summary import Summary, stream_added
from hansard.importing import position
from hansard.importing.job import Attachment, Job, SourceStream, adapter_context, read_frames
from hansard.importing.position import ImportPositions, Position, Replaced, StoredAttachment
from hansard.importing.stream_reader import SnapshotReader, StreamReader, start_time
from hansard.store import Store
from hansard.store import retirements as retired

BATCH_EVENTS = 1000
"""How many events are appended at once."""

BATCH_BYTES = 4 * 1024 * 1024
"""Or so many bytes of originals, whatever is reached first."""

QUIET_SECONDS = 600.0
"""A file that nobody wrote for so many seconds is taken for finished."""


ImportState = Literal["added", "updated", "unchanged", "captured", "in use", "failed"]
"""``captured``: the files were copied, and are read later. ``in use``: another process writes the session, and what is new stays in the
files until the next import."""


class ImportResult(Struct, rename="camel", omit_defaults=True):
    """What became of one session."""

    session_id: str
    state: ImportState
    events: int = 0
    bytes: int = 0
    problem: str | None = None


class _Overtaken(HansardError):
    """Another process has written frames since the log was compared with the files."""


class SessionImport:
    """A session and its files. It can be run again and again: what it has understood is kept in between."""

    def __init__(self, store: Store, job: Job, retired: retired.RetirementCache, stopped: Callable[[], bool] | None = None) -> None:
        self.store = store
        self.job = job
        self._stopped = stopped
        """Whether it is to end, asked between two batches: what is being written is written."""
        self._retired = retired
        self._positions: ImportPositions | None = None
        self._readers: dict[str, StreamReader | SnapshotReader] = {}
        self._batch: list[Event] = []
        self._waiting = 0
        self._exists = False
        self._is_locked = False
        """Whether no other process has been able to write the log since it was compared with the files."""
        self._known: list[Event] | None = None
        """The events of the log, while other streams are compared with them."""

    def run(self, closed: bool = False, quiet: float = QUIET_SECONDS) -> ImportResult:
        """Bring the log up to the files. What is wrong with one session is in the outcome; what is wrong with the disk is raised."""
        outcome = ImportResult(self.job.session_id, "unchanged")
        try:
            try:
                self._run(outcome, closed, quiet)
            except (_Overtaken, SessionExists):  # now that this process is the only one, or the other one is still at it
                self._reset()
                self._run(outcome, closed, quiet)
        except LogLocked:
            self._reset()
            outcome.state = "in use"
        except (HansardError, OSError) as problem:
            self._reset()
            if is_about_the_disk(problem):
                raise
            outcome.state, outcome.problem = "failed", _error_message(problem)
        return outcome

    def _run(self, outcome: ImportResult, closed: bool, quiet: float) -> None:
        self._is_locked = False
        self._load_positions()
        if self._was_retired():
            self._reset()
            return
        existed = self._exists
        looked = [self._read(stream, outcome, closed, quiet) for stream in self.job.streams]
        stored = self._exists and [self._attach(attachment, outcome) for attachment in self.job.attachments]
        if self._exists and any([*looked, *(stored or [])]):
            self._save_positions(outcome)
        self._known = None
        if outcome.events:
            outcome.state = "updated" if existed else "added"
            self._retired.mark_present(self.job.session_id)

    # ---- remembering

    def _load_positions(self) -> None:
        if self._positions is not None:
            log = self.store[self.job.session_id]
            if not self._exists or position.catch_up(self.store, self.job.session_id, self._positions, log.head().seq):
                return
            self._reset()  # another process wrote frames meanwhile
        try:
            head = self.store[self.job.session_id].head()
        except UnknownSession:
            self._positions = ImportPositions(files={}, attached={}, streams={})
            return
        if head.bytes == 0:  # the disk was full before the first event was written
            self.store.delete(self.job.session_id, head.cursor)
            self._positions = ImportPositions(files={}, attached={}, streams={})
            return
        self._exists = True
        noted = position.load(self.store, self.job.session_id)
        if noted is None or not position.catch_up(self.store, self.job.session_id, noted, head.seq):
            self._lock()  # we were stopped before we could note it
            noted = position.rebuild(self.store, self.job.session_id)
        self._positions = noted

    def _lock(self) -> None:
        """Becomes the writer of the log, so that no other process adds to it while it is compared with the files."""
        if self._is_locked:
            return
        log = self.store[self.job.session_id]
        log.append([])
        self._is_locked = True
        if self._positions is not None and not position.catch_up(self.store, self.job.session_id, self._positions, log.head().seq):
            raise _Overtaken

    def _was_retired(self) -> bool:
        """Whether the session is not there because somebody put it into an archive, and its files say nothing new since."""
        if self._exists or not (gone := self._retired.get(self.job.session_id)):
            return False
        return max(stream.state()[1] for stream in self.job.streams) * 1000 <= max(one.at for one in gone)

    def _reset(self) -> None:
        self._positions, self._readers, self._batch, self._waiting, self._known = None, {}, [], 0, None

    @property
    def memory(self) -> ImportPositions:
        """What is remembered about the files."""
        if self._positions is None:
            raise RuntimeError("recall first")
        return self._positions

    def _has_grown(self, name: str | None, now: tuple[int, int], over: bool) -> bool:
        known = self.memory.files.get(name or "")
        return known is None or known.state != now or (over and known.offset not in known.closed)

    def _is_new(self, attachment: Attachment) -> bool:
        known = self.memory.attached.get(attachment.name)
        now = os.stat(attachment.path)
        return known is None or (known.size, known.modified) != (now.st_size, now.st_mtime_ns)

    # ---- reading and writing

    def _read(self, stream: SourceStream, outcome: ImportResult, closed: bool, quiet: float) -> bool:
        """Read a file as far as it goes; false if there was no need to."""
        now, changed = stream.state()
        at = time.time() if self.job.copied is None else self.job.copied
        over = closed or self.job.closed or at - changed >= quiet or stream.is_whole()
        name = self._name(stream)
        if not self._has_grown(name, now, over) or (stream.exported and not over):  # half a document says nothing yet
            return False
        try:
            self._read_stream(stream, name, now, outcome, over)
        except Replaced:
            self._batch, self._waiting = [], 0
            self._readers.pop(name or "", None)
            if self.job.copied is not None and self._contains(stream, name):
                return False  # the file itself was read meanwhile, and has grown since
            self._read_stream(stream, self._new_name(name or self.job.format), now, outcome, over)
        return True

    def _read_stream(self, stream: SourceStream, name: str | None, now: tuple[int, int], outcome: ImportResult, over: bool) -> None:
        reader, linker = self._reader(stream, name), self._linker(name)
        if self._exists:
            self._lock()
        before = reader.known.offset
        parts = chain(reader.resume(), reader.close() if over else ())
        if linker is not None:
            events = list(chain.from_iterable(parts))
            self.memory.handoffs.mark(None if self.job.agent_session is None else self.job.agent_session.id, events)
            linker.place(events)
            late = any(event.after is not None for event in events) and not self.memory.streams  # a session of version 0.1
            parts = iter([[self._added(stream, name)], events] if events and (late or self._is_new_account(name)) else [events])
        for events in parts:
            self._add(events, outcome)
        self._flush(outcome)
        reader.known = reader.position(now)
        if name is None or reader.known.frames:  # a file that was emptied is not a stream yet
            self.memory.files[name or ""] = reader.known
        outcome.bytes += max(reader.offset - before, 0)

    # ---- streams

    def _contains(self, stream: SourceStream, name: str | None) -> bool:
        """Whether the log has everything that is in a file."""
        log = self.store[self.job.session_id]
        with open(stream.path, "rb") as file:
            for event in log.read():
                if event.stream == name and event.original is not None and is_imported(event):
                    frame = log.original(event) + ("\n" if event.eol is None else event.eol).encode()
                    data = file.read(len(frame))
                    if data != frame:
                        return frame.startswith(data)
            return not file.read(1)

    def _name(self, stream: SourceStream) -> str | None:
        """The name that a stream has in the log. The session's own file has none, if the session began with it."""
        later = [name for name, (path, _) in self.memory.streams.items() if path == stream.origin]
        if later:
            return later[-1]
        if stream.name is not None:
            old = stream.name.removeprefix(MAIN_STREAM_MARK)  # version 0.1 named a session's further files like those of subagents
            return old if old in self.memory.files else stream.name
        if not self._exists or self._is_first(stream):
            return None
        moved = [name for name, (path, format) in self.memory.streams.items() if format == self.job.format and not os.path.exists(path)]
        return moved[-1] if moved and self.job.is_agents_own else self._new_name(self.job.format)

    def _is_first(self, stream: SourceStream) -> bool:
        """Whether the session began with this file, perhaps before it was moved."""
        if self.memory.first is None:
            return False
        path, format = self.memory.first
        return path == stream.origin or (format == self.job.format and self.job.is_agents_own)

    def _new_name(self, name: str) -> str:
        """A name for one more stream: of another format, or of a file that was replaced by another one."""
        base = name if name in self.memory.files else MAIN_STREAM_MARK + name.removeprefix(MAIN_STREAM_MARK)
        base = base.partition("~")[0]
        names = chain([base], (f"{base}~{number}" for number in count(2)))
        return next(one for one in names if one not in self.memory.files and one not in self.memory.streams)

    def _is_new_account(self, name: str | None) -> bool:
        return name is not None and name not in self.memory.streams and name not in self.memory.files

    def _added(self, stream: SourceStream, name: str | None) -> Event:
        """The event that names a stream which is added to the session."""
        if name is not None:
            self.memory.streams[name] = (stream.origin, self.job.format)
        self.memory.merged = self.memory.merged or is_main_stream(name)
        return stream_added(name, self.job.format, stream.origin, self.job.agent_session)

    def _linker(self, name: str | None) -> Linker | None:
        """What marks the events that other streams of the session have reported; None if it has one stream."""
        if not self._exists or not is_linked(name, self.memory.files, self.memory.first is not None, self.memory.merged):
            return None
        if self._known is None:
            self._lock()
            self._known = list(self.store[self.job.session_id].read())
        family = self.job.agent_session.family if self.job.agent_session is not None else ""
        return Linker(self._known, name, family, self.job.format, layout_of(self.job.format) is not None)

    def _save_positions(self, outcome: ImportResult) -> None:
        self._flush(outcome)
        self.store[self.job.session_id].release()
        self._is_locked = False
        self.memory.seq = self.store[self.job.session_id].head().seq
        position.save(self.store, self.job.session_id, self.memory)

    def _reader(self, stream: SourceStream, name: str | None) -> StreamReader | SnapshotReader:
        found = self._readers.get(name or "")
        if found is None:
            known = self.memory.files.get(name or "", Position(closed=[]))
            context = adapter_context(self.job.session_id, self.job.format, stream, name)
            context.recorded = self._exists and name is not None and layout_of(self.job.format) is None  # what a wire replays is in the log
            found = self._readers[name or ""] = self._open(stream, context, known)
        return found

    def _open(self, stream: SourceStream, context: Context, known: Position) -> StreamReader | SnapshotReader:
        if stream.rows or stream.document or stream.exported:
            reader = SnapshotReader(partial(read_frames, stream, self.job.format), self.job.format, context, known)
            if self._exists:
                reader.restore(self.store, self.job.session_id)
            return reader
        context.epoch = start_time(stream.path, partial(self._first_time, context.stream))
        return StreamReader(stream.path, self.job.format, context, known)

    def _first_time(self, stream: str | None) -> int | None:
        """When the first frame of a stream arrived, as the log has it."""
        events: Iterable[Event] = self.store[self.job.session_id].read() if self._exists else []
        first = next((event for event in events if event.frame == 1 and event.stream == stream), None)
        return None if first is None else first.timestamp if first.received_at is None else first.received_at

    def _add(self, events: list[Event], outcome: ImportResult) -> None:
        if self._stopped is not None and self._stopped():
            raise KeyboardInterrupt
        self._batch += events
        if events and (original := events[0].original) is not None:
            self._waiting += len(original)
        if len(self._batch) >= BATCH_EVENTS or self._waiting >= BATCH_BYTES:
            self._flush(outcome)

    def _flush(self, outcome: ImportResult) -> None:
        if not self._batch:
            return
        if not self._exists:
            self.store.create(self.job.session_id, **self._header())
            self._exists = self._is_locked = True
            self.memory.first = (self.job.streams[0].origin, self.job.format)
        self._lock()
        written = self.store[self.job.session_id].append(self._batch)
        if self._known is not None:
            self._known += written
        outcome.events += len(self._batch)
        self._batch, self._waiting = [], 0

    def _header(self) -> dict[str, Any]:
        return {
            "format": self.job.format,
            "title": session_title(self._batch),
            "path": self.job.streams[0].origin,
            "provider_session_id": None if self.job.agent_session is None else self.job.agent_session.id,
        }

    def _attach(self, attachment: Attachment, outcome: ImportResult) -> bool:
        """Store a file as a blob; false if it is there already."""
        if not self._is_new(attachment):
            return False
        now = os.stat(attachment.path)
        data = Path(attachment.path).read_bytes()
        blob = sha256(data).hexdigest()
        known = self.memory.attached.get(attachment.name)
        if known is None or known.blob != blob:
            self.store[self.job.session_id].put_blob(data)
            self._add([attachment_event(attachment.name, blob, len(data), now.st_mtime_ns)], outcome)
        self.memory.attached[attachment.name] = StoredAttachment(blob, now.st_size, now.st_mtime_ns)
        return True


def attachment_event(name: str, blob: str, size: int, modified: int) -> Event:
    """The event that names an attachment."""
    event = session_lifecycle(subtype="attached", path=name, blob=blob, size=size)
    event.timestamp = modified // 1_000_000
    return event


def session_title(events: list[Event]) -> str | None:
    """Returns the title of an imported session: its own, else the beginning of the first message of a person."""
    summary = Summary()
    summary.apply_all(events)
    return summary.chosen_title or summary.first_message


def is_about_the_disk(problem: BaseException) -> bool:
    """Whether every other session would fail as well."""
    cause = problem if isinstance(problem, OSError) else problem.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def _error_message(problem: Exception) -> str:
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror or str(problem)
    return str(problem)
