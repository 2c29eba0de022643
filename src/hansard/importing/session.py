"""One session, imported: its own file, its sub-agents' files as streams of the same log, its attachments as blobs."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from hansard import retired
from hansard.adapter import Context
from hansard.errors import HansardError, UnknownSession
from hansard.events import Event, SessionLifecycle, UserMessage, session_lifecycle
from hansard.importing import position
from hansard.importing.clock import epoch_of
from hansard.importing.job import Attachment, Job, Stream, context, frames_now
from hansard.importing.position import Attached, Memory, Position, Replaced
from hansard.importing.reading import Reading
from hansard.importing.stated import Stated
from hansard.store import Store

BATCH = 1000
"""So many events are appended at once."""

BATCH_BYTES = 4 * 1024 * 1024
"""Or so many bytes of originals, whatever is reached first."""

QUIET = 600.0
"""A file that nobody wrote for so many seconds is taken for finished."""

_TITLE = 200

State = Literal["added", "updated", "unchanged", "replaced", "failed"]


class Outcome(Struct, rename="camel", omit_defaults=True):
    """What became of one session."""

    session_id: str
    state: State
    events: int = 0
    bytes: int = 0
    problem: str | None = None


class SessionImport:
    """A session and its files. It can be run again and again: what it has understood is kept in between."""

    def __init__(self, store: Store, job: Job, retired: retired.Memory, stopped: Callable[[], bool] | None = None) -> None:
        self.store = store
        self.job = job
        self._stopped = stopped
        """Whether it is to end, asked between two batches: what is being written is written."""
        self._retired = retired
        self._memory: Memory | None = None
        self._readings: dict[str, Reading | Stated] = {}
        self._batch: list[Event] = []
        self._waiting = 0
        self._exists = False

    def run(self, closed: bool = False, quiet: float = QUIET) -> Outcome:
        """Bring the log up to the files. What is wrong with one session is in the outcome; what is wrong with the disk is raised."""
        outcome = Outcome(self.job.session_id, "unchanged")
        try:
            self._recall()
            if self._was_retired():
                self._forget()
                return outcome
            existed = self._exists
            looked = [self._read(stream, outcome, closed, quiet) for stream in self.job.streams]
            stored = self._exists and [self._attach(attachment, outcome) for attachment in self.job.attachments]
            if self._exists and any([*looked, *(stored or [])]):
                self._note(outcome)
            if outcome.events:
                outcome.state = "updated" if existed else "added"
                self._retired.came(self.job.session_id)
        except Replaced as problem:
            self._forget()
            outcome.state, outcome.problem = "replaced", str(problem)
        except (HansardError, OSError) as problem:
            self._forget()
            if _is_about_the_disk(problem):
                raise
            outcome.state, outcome.problem = "failed", _words(problem)
        return outcome

    # ---- remembering

    def _recall(self) -> None:
        if self._memory is not None:
            return
        try:
            head = self.store.head(self.job.session_id)
        except UnknownSession:
            self._memory = Memory(files={}, attached={})
            return
        if head.bytes == 0:  # the disk was full before the first event was written
            self.store.delete(self.job.session_id)
            self._memory = Memory(files={}, attached={})
            return
        self._exists = True
        noted = position.load(self.store, self.job.session_id)
        if noted is None or noted.seq != head.seq:  # somebody else wrote, or we were stopped before we could note it
            noted = position.recall(self.store, self.job.session_id)
        self._memory = noted

    def _was_retired(self) -> bool:
        """Whether the session is not there because somebody put it into an archive, and its files say nothing new since."""
        if self._exists or not (gone := self._retired.of(self.job.session_id)):
            return False
        return max(stream.state()[1] for stream in self.job.streams) * 1000 <= max(one.at for one in gone)

    def _forget(self) -> None:
        self._memory, self._readings, self._batch, self._waiting = None, {}, [], 0

    @property
    def memory(self) -> Memory:
        """What is remembered about the files."""
        if self._memory is None:
            raise RuntimeError("recall first")
        return self._memory

    def _has_grown(self, stream: Stream, now: tuple[int, int], over: bool) -> bool:
        known = self.memory.files.get(stream.name or "")
        return known is None or known.state != now or (over and known.offset not in known.closed)

    def _is_new(self, attachment: Attachment) -> bool:
        known = self.memory.attached.get(attachment.name)
        now = os.stat(attachment.path)
        return known is None or (known.size, known.modified) != (now.st_size, now.st_mtime_ns)

    # ---- reading and writing

    def _read(self, stream: Stream, outcome: Outcome, closed: bool, quiet: float) -> bool:
        """Read a file as far as it goes; false if there was no need to."""
        now, changed = stream.state()
        over = closed or time.time() - changed >= quiet or stream.is_whole()
        if not self._has_grown(stream, now, over) or (stream.exported and not over):  # half a document says nothing yet
            return False
        reading = self._reading(stream)
        before = reading.known.offset
        for events in reading.go_on():
            self._add(events, outcome)
        if over:
            for events in reading.close():
                self._add(events, outcome)
        self._flush(outcome)
        reading.known = reading.position(now)
        self.memory.files[stream.name or ""] = reading.known
        outcome.bytes += max(reading.offset - before, 0)
        return True

    def _note(self, outcome: Outcome) -> None:
        self._flush(outcome)
        self.memory.seq = self.store.head(self.job.session_id).seq
        self.store.release(self.job.session_id)
        position.save(self.store, self.job.session_id, self.memory)

    def _reading(self, stream: Stream) -> Reading | Stated:
        name = stream.name or ""
        found = self._readings.get(name)
        if found is None:
            known = self.memory.files.get(name, Position(closed=[]))
            told = context(self.job.session_id, self.job.format, stream)
            found = self._readings[name] = self._open(stream, told, known)
        return found

    def _open(self, stream: Stream, told: Context, known: Position) -> Reading | Stated:
        if stream.rows or stream.document or stream.exported:
            stated = Stated(partial(frames_now, stream, self.job.format), self.job.format, told, known)
            if self._exists:
                stated.recall(self.store, self.job.session_id)
            return stated
        told.epoch = epoch_of(stream.path, partial(self._first_time, stream.name))
        return Reading(stream.path, self.job.format, told, known)

    def _first_time(self, stream: str | None) -> int | None:
        """When the first frame of a stream arrived, as the log has it."""
        events: Iterable[Event] = self.store.read(self.job.session_id) if self._exists else []
        first = next((event for event in events if event.frame == 1 and event.stream == stream), None)
        return None if first is None else first.timestamp if first.received_at is None else first.received_at

    def _add(self, events: list[Event], outcome: Outcome) -> None:
        if self._stopped is not None and self._stopped():
            raise KeyboardInterrupt
        self._batch += events
        if events and (original := events[0].original) is not None:
            self._waiting += len(original)
        if len(self._batch) >= BATCH or self._waiting >= BATCH_BYTES:
            self._flush(outcome)

    def _flush(self, outcome: Outcome) -> None:
        if not self._batch:
            return
        if not self._exists:
            self.store.create(self.job.session_id, **self._header())
            self._exists = True
        self.store.append(self.job.session_id, self._batch)
        outcome.events += len(self._batch)
        self._batch, self._waiting = [], 0

    def _header(self) -> dict[str, Any]:
        return {
            "format": self.job.format,
            "title": title_of(self._batch),
            "path": self.job.streams[0].path,
            "provider_session_id": self.job.provider_session_id,
        }

    def _attach(self, attachment: Attachment, outcome: Outcome) -> bool:
        """Store a file as a blob; false if it is there already."""
        if not self._is_new(attachment):
            return False
        now = os.stat(attachment.path)
        data = Path(attachment.path).read_bytes()
        blob = sha256(data).hexdigest()
        known = self.memory.attached.get(attachment.name)
        if known is None or known.blob != blob:
            self.store.put_blob(self.job.session_id, data)
            self._add([attached(attachment.name, blob, len(data), now.st_mtime_ns)], outcome)
        self.memory.attached[attachment.name] = Attached(blob, now.st_size, now.st_mtime_ns)
        return True


def attached(name: str, blob: str, size: int, modified: int) -> Event:
    """The event that names an attachment."""
    event = session_lifecycle(subtype="attached", path=name, blob=blob, size=size)
    event.timestamp = modified // 1_000_000
    return event


def title_of(events: list[Event]) -> str | None:
    """What to call a session: its own title, else the first thing a person said."""
    said: str | None = None
    for event in events:
        if isinstance(event, SessionLifecycle) and event.payload.title:
            return event.payload.title
        if said is None and isinstance(event, UserMessage) and event.payload.author == "human" and event.payload.text.strip():
            said = event.payload.text.strip()[:_TITLE]
    return said


def _is_about_the_disk(problem: BaseException) -> bool:
    """Whether every other session would fail as well."""
    cause = problem if isinstance(problem, OSError) else problem.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror or str(problem)
    return str(problem)


def imported(
    store: Store,
    jobs: list[Job],
    closed: bool,
    quiet: float,
    memory: retired.Memory | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Iterator[tuple[Outcome, int]]:
    """Import sessions one after the other; each outcome with the bytes its files have."""
    memory = memory or retired.Memory(store)
    for job in jobs:
        size = job.size
        yield SessionImport(store, job, memory, stopped).run(closed, quiet), size
