"""Copies the files of new sessions into the store, which is quick, and reads them into logs later, which takes twenty times as long."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hansard.errors import HansardError, LogLocked, StoreError, UnknownSession
from hansard.importing.identity import Identities
from hansard.importing.job import Attachment, Job, SourceStream, files_of, group_by_session
from hansard.importing.session import ImportResult, SessionImport, is_about_the_disk
from hansard.store import Store, open_store
from hansard.store.captures import Capture, CaptureRequest, Captures
from hansard.store.filters import EVERY_SESSION, SessionFilter
from hansard.store.lineage import find_parents
from hansard.store.query import parse_pattern, parse_query
from hansard.store.retirements import RetirementCache
from hansard.store.search import PAUSE_SECONDS, SearchHit, SearchQuery
from hansard.store.search_text import byte_hints

CAPTURE_MIN_BYTES = 32 * 1024 * 1024
"""How much must be new for its files to be copied before they are read: less is read in two seconds."""


class Captured(Struct):
    """What `capture` did."""

    captures: list[Capture]
    copied: list[Job]
    left: list[Job]
    """What is to be read at once: sessions that have a log, and databases."""


def capture(store: Store, jobs: list[Job], closed: bool, advance: Callable[[int], object] = lambda size: None) -> Captured:
    """Copies the files of sessions that are new in the store. When it returns, they are durable."""
    done, retired, captures = Captured([], [], []), RetirementCache(store), store.captures
    if captures is None:
        return Captured([], [], jobs)
    with captures.capturing():
        known = {one.session_id: one for one in captures.all()}
        for group in group_by_session(Identities(store).assign(jobs)):
            session_id = group[0].session_id
            one = known.get(session_id)
            if one is None and _can_wait(store, group, retired):
                one = _put(captures, group, closed)
            elif one is not None and not _is_of_now(one):
                one = None
            if one is None:
                done.left += group
                continue
            done.captures.append(one)
            done.copied += group
            advance(sum(job.size for job in group))
        captures.sync(done.captures)
    return done


def _can_wait(store: Store, group: list[Job], retired: RetirementCache) -> bool:
    """Whether a session is new. Databases, and files of a session that was retired, are read at once."""
    if any(stream.rows is not None for job in group for stream in job.streams) or retired.get(group[0].session_id):
        return False
    try:
        store[group[0].session_id].head()
    except UnknownSession:
        return True
    except HansardError:
        pass  # the import reports it
    return False


def _put(captures: Captures, group: list[Job], closed: bool) -> Capture | None:
    """Copies the files of a session; None if one cannot be read, which the import then reports, or has a name that is not text."""
    own = {stream.path for job in group for stream in job.streams}
    paths = [path for path in dict.fromkeys(path for job in group for path in files_of(job)) if path in own or os.path.exists(path)]
    first, now = group[0], time.time()
    try:
        jobs = msgspec.Raw(msgspec.json.encode([replace(job, copied=now, closed=closed) for job in group]))
        return captures.put(CaptureRequest(first.session_id, first.format, first.agent_session, int(now * 1000), paths, jobs))
    except (UnicodeEncodeError, OSError) as problem:
        if is_about_the_disk(problem):
            raise StoreError(f"the files of session {first.session_id!r} cannot be copied: {problem}") from problem
        return None


def _is_of_now(capture: Capture) -> bool:
    """Whether the files are still as they were copied."""
    for file in capture.files:
        try:
            now = os.stat(file.path)
        except FileNotFoundError:
            continue  # the copy is all there is
        if (now.st_size, now.st_mtime_ns // 1_000_000) != (file.size, file.modified):
            return False
    return True


# --------------------------------------------------------------------------------------------------------------------
# Reading


def captured_sessions(store: Store) -> set[str]:
    """Returns the sessions that were captured and are not read yet."""
    return set() if store.captures is None else set(store.captures.names())


def captured_jobs(store: Store) -> list[Job]:
    """Returns what was captured and is not read yet, the newest first."""
    captures = store.captures
    return [] if captures is None else [job for one in captures.all() for job in _jobs(one, captures.folder(one.session_id))[:1]]


class CaptureReader:
    """Reads captures into logs. ``stopped`` is asked between two batches of events whether to stop."""

    def __init__(self, store: Store, retired: RetirementCache | None = None, stopped: Callable[[], bool] | None = None) -> None:
        self._store = store
        self.retired = retired or RetirementCache(store)
        self._identities = Identities(store)
        self._stopped = stopped

    def read(self, session_id: str, wait: bool = True) -> ImportResult | None:
        """Reads the captured files of a session; returns None if there are none, or another process has read them by now."""
        captures = self._store.captures
        if captures is None or not captures.has(session_id):
            return None
        try:
            with captures.reading(session_id, wait) as found:
                return None if found is None else self._read(captures, found)
        except LogLocked:
            return ImportResult(session_id, "in use")

    def _read(self, captures: Captures, found: Capture) -> ImportResult:
        result = ImportResult(found.session_id, "unchanged")
        folder = captures.folder(found.session_id)
        if damage := captures.verify(found.session_id):
            if not all(os.path.exists(file.path) for file in found.files):
                return ImportResult(found.session_id, "failed", problem=damage[0].message)
            folder = None  # the power went before the copies were on the disk: the files themselves are still there
        for job in self._identities.assign(_jobs(found, folder)):
            outcome = SessionImport(self._store, job, self.retired, self._stopped).run()
            if outcome.state in ("failed", "in use"):
                return outcome
            self._store[job.session_id].release()
            result = _sum(result, outcome)
        captures.remove(found.session_id)
        return result

    def run(self, session: SessionImport, closed: bool, quiet: float) -> ImportResult:
        """Imports a session: what was captured of it, and then what is new in its files."""
        captured = self.read(session.job.session_id)
        if session.job.copied is not None or (captured is not None and captured.state in ("failed", "in use")):
            return captured or ImportResult(session.job.session_id, "unchanged")
        result = session.run(closed, quiet)
        return result if captured is None else _sum(captured, result)


def _sum(one: ImportResult, other: ImportResult) -> ImportResult:
    """What two imports did with a session."""
    state = other.state if one.state == "unchanged" or other.problem is not None else one.state
    return ImportResult(other.session_id, state, one.events + other.events, one.bytes + other.bytes, other.problem)


def _jobs(capture: Capture, folder: Path | None) -> list[Job]:
    """What is read of a capture: the copies in a folder, or the agent's own files."""
    jobs = msgspec.json.decode(capture.jobs, type=list[Job])
    if folder is None:
        return [replace(job, copied=None) for job in jobs]
    copies = {file.path: str(folder / file.name) for file in capture.files}

    def copied(stream: SourceStream) -> SourceStream:
        sidecar = None if stream.sidecar is None else copies.get(stream.sidecar)
        parents = tuple(copies[path] for path in stream.parents if path in copies)
        return replace(stream, path=copies[stream.path], copy_of=stream.path, sidecar=sidecar, parents=parents)

    return [
        replace(
            job,
            streams=[copied(stream) for stream in job.streams],
            attachments=[Attachment(copies[one.path], one.name) for one in job.attachments if one.path in copies],
        )
        for job in jobs
    ]


def import_sessions(
    store: Store,
    jobs: list[Job],
    closed: bool,
    quiet: float,
    retired: RetirementCache | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Iterator[tuple[ImportResult, Job]]:
    """Imports sessions one after the other."""
    reader = CaptureReader(store, retired, stopped)
    for job in jobs:
        yield reader.run(SessionImport(store, job, reader.retired, stopped), closed, quiet), job


def open_session(store: Store, session_id: str) -> None:
    """Reads a session that was only captured so far, and finds its parent. Raises what keeps it from being read."""
    if store.captures is None or not store.captures.has(session_id):
        return
    result = CaptureReader(store).read(session_id)
    if result is not None and result.problem is not None:
        raise HansardError(f"session {session_id!r} cannot be read: {result.problem}")
    if result is not None and result.events:
        find_parents(store, {session_id})


def search_captured(
    store: Store,
    found: Iterable[SearchHit | None],
    query: str,
    sessions: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    regex: bool = False,
    find: Callable[[str], int] | None = None,
    *,
    scopes: Collection[str] = (),
    wanted: SessionFilter = EVERY_SESSION,
) -> Iterator[SearchHit | None]:
    """Yields what a search has ``found`` in logs, and then what is in the sessions that were only captured so far, the newest first.

    Reads those whose files have what is searched, and yields what is found in their logs. Yields None when there was no hit for a while. A
    session that another process reads meanwhile is searched, and each place is found once.
    """
    if store.captures is None or not (captured := store.captures.all()):
        return iter(found)
    if sessions is None:
        sessions = {info.id for info in store.captures.sessions() if wanted.matches_captured(info)}
    among = set(sessions)
    names = [one.session_id for one in captured if one.session_id in among]
    hints = byte_hints((parse_pattern(query) if regex else parse_query(query)).words)

    def search(session_id: str) -> Iterator[SearchHit | None]:
        return SearchQuery(store, query, [session_id], types, regex, find, scopes=scopes).stream()

    return _each_once(chain(found, _read_and_search(store, names, hints, search)))


def _each_once(hits: Iterable[SearchHit | None]) -> Iterator[SearchHit | None]:
    known = set[tuple[str, int]]()
    for hit in hits:
        if hit is None:
            yield None
        elif (hit.session_id, hit.seq) not in known:
            known.add((hit.session_id, hit.seq))
            yield hit


def _read_and_search(
    store: Store, names: Iterable[str], hints: list[bytes], search: Callable[[str], Iterator[SearchHit | None]]
) -> Iterator[SearchHit | None]:
    captures, reader = cast(Captures, store.captures), CaptureReader(store)
    read, yielded = set[str](), time.monotonic()
    try:
        for name in names:
            result = reader.read(name) if captures.contains(name, hints) else None
            if result is not None:
                read.add(result.session_id)
            if not captures.has(name):
                with suppress(UnknownSession):  # deleted meanwhile
                    for hit in search(name if result is None else result.session_id):
                        yielded = time.monotonic()
                        yield hit
            if time.monotonic() > yielded + PAUSE_SECONDS:
                yielded = time.monotonic()
                yield None
    finally:
        if read:
            find_parents(store, read)


def read_all(store: Store, stopped: Callable[[], bool]) -> None:
    """Reads what was captured, the newest first, until it is all read or this is stopped."""
    reader, read = CaptureReader(store, stopped=stopped), set[str]()
    try:
        for capture in () if store.captures is None else store.captures.all():
            if stopped():
                break
            if reader.read(capture.session_id, wait=False) is not None:
                read.add(capture.session_id)
    except KeyboardInterrupt:
        pass  # stopped within a session: the log has a part of it, and the next one goes on from there
    finally:
        find_parents(store, read)


def main(folder: str) -> None:
    """Reads what was captured in a store, until stdin is closed: the process that started this is gone. Other processes come first."""
    os.nice(19)
    closed = select.poll()
    closed.register(0, select.POLLIN)
    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        asked.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal; the server then asks for the end
    with open_store(Path(folder)) as store:
        read_all(store, lambda: asked.is_set() or bool(closed.poll(0)))


if __name__ == "__main__":
    main(sys.argv[1])
