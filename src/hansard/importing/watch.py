"""Imports what is new for as long as anyone listens: files that grow, and files that come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from msgspec import Struct

from hansard.importing.capture import CaptureReader, captured_jobs
from hansard.importing.changes import Changes, Polling
from hansard.importing.discovery import WAL, Discovery, file_mark, list_files
from hansard.importing.identity import Identities
from hansard.importing.job import Job, files_of
from hansard.importing.memory import ImportMemory
from hansard.importing.session import ImportResult, SessionImport
from hansard.store import Store, StoreLocation, open_store
from hansard.store.lineage import find_parents
from hansard.store.retirements import RetirementCache

MAX_KEPT_SESSIONS = 64
"""How many sessions stay understood while they are watched; the others are read again when they grow."""
RETRY_SECONDS = 2.0
"""How long a session that is in use, or that failed, is left alone."""
LOOK_SECONDS = 30.0
"""How long the watcher waits, at most, before it looks whether there are new places to watch."""
DISCOVERY_SHARE = 4
"""How many times as long as a discovery the pause after it is."""


class _Watched(Struct):
    """A job, as it was when it was last run. ``due`` is when it is to be run again although no file has changed."""

    job: Job
    mark: str = ""
    due: float = 0.0


class Watcher:
    """The sessions that are watched. ``find`` discovers them."""

    def __init__(self, store: Store, find: Callable[[], Discovery], quiet: float) -> None:
        self._store = store
        self._find = find
        self._quiet = quiet
        self._retired = RetirementCache(store)
        self._captures = CaptureReader(store, self._retired)
        self._watched: dict[str, _Watched] = {}
        self._by_path: dict[str, set[str]] = {}
        self._databases: set[str] = set()
        self._kept: dict[str, SessionImport] = {}
        self._reported: dict[str, str] = {}
        self._next_discovery = 0.0
        self._missed = False
        """Whether a file changed that no job has, and there was no time to discover what it is."""

    def read_captured(self) -> Iterator[ImportResult]:
        """Reads the sessions of which the files were only copied so far."""
        read: set[str] = set()
        for job in captured_jobs(self._store):
            outcome = self._captures.read(job.session_id)
            if outcome is not None:
                read.add(outcome.session_id)
                yield outcome
        if read:
            find_parents(self._store, read)

    def run(self, changed: set[str] | None) -> Iterator[ImportResult]:
        """Imports what is new in these files, or in all. Each problem is reported once."""
        grown: set[str] = set()
        for key in self._select(changed):
            outcome = self._run(self._watched[key])
            if outcome.state in ("added", "updated"):
                grown.add(outcome.session_id)
            news = outcome.problem or outcome.state
            if outcome.events or (outcome.state != "unchanged" and self._reported.get(key) != news):
                yield outcome
            self._reported[key] = news
        if grown:
            find_parents(self._store, grown)

    def pause(self) -> float:
        """Returns how long there is nothing to do, if no file changes."""
        due = [watched.due for watched in self._watched.values() if watched.due]
        times = [*due, self._next_discovery] if self._missed else due
        return max(0.0, min(min(times, default=0.0) - time.time(), LOOK_SECONDS)) if times else LOOK_SECONDS

    def _select(self, changed: set[str] | None) -> list[str]:
        """The jobs to run, by key."""
        now = time.time()
        if changed is None or self._missed or any(self._is_unknown(path) for path in changed):
            self._missed = changed is not None and now < self._next_discovery
            if not self._missed:
                self._discover()
                changed = None
        keys = self._watched if changed is None else {key for path in changed for key in self._by_path.get(path.removesuffix(WAL), ())}
        found = {key for key in keys if self._watched[key].mark != _mark(self._watched[key].job)}
        found |= {key for key, watched in self._watched.items() if 0 < watched.due <= now}
        return [key for key in self._watched if key in found and os.path.exists(self._watched[key].job.streams[0].path)]

    def _is_unknown(self, path: str) -> bool:
        """Whether it takes a discovery to say which sessions are in a file, as for a database."""
        path = path.removesuffix(WAL)
        return path not in self._by_path or path in self._databases

    def _discover(self) -> None:
        began = time.time()
        self._retired.refresh()
        jobs = self._find().jobs
        if not self._watched:
            memory = ImportMemory(self._store, list_files(Path(path) for job in jobs for path in files_of(job)), False, self._quiet)
            new = {id(job) for job in memory.changed_jobs(jobs)}
            known = [job for job in jobs if id(job) not in new]
        else:
            known = []
        before, known_ids = self._watched, {id(job) for job in known}
        self._watched = {_key(job): _Watched(job, _mark(job), self._closing_time(job)) for job in known}
        for job in Identities(self._store).assign(job for job in jobs if id(job) not in known_ids):
            watched = self._watched[_key(job)] = before.get(_key(job), _Watched(job))
            watched.job = job
        self._by_path = {}
        for key, watched in self._watched.items():
            for path in files_of(watched.job):
                self._by_path.setdefault(path, set()).add(key)
        self._databases = {job.streams[0].path for job in jobs if job.streams[0].rows is not None}
        self._next_discovery = time.time() + DISCOVERY_SHARE * (time.time() - began)

    def _run(self, watched: _Watched) -> ImportResult:
        key = _key(watched.job)
        watched.mark = _mark(watched.job)
        session = self._kept.pop(key, None) or SessionImport(self._store, watched.job, self._retired)
        session.job = watched.job
        outcome = self._captures.run(session, False, self._quiet)
        watched.due = self._closing_time(watched.job) if outcome.state not in ("failed", "in use") else time.time() + RETRY_SECONDS
        if outcome.state in ("added", "updated"):
            self._kept[key] = session
            for old in list(self._kept)[:-MAX_KEPT_SESSIONS]:
                del self._kept[old]
        return outcome

    def _closing_time(self, job: Job) -> float:
        """When what is open in a session is closed, because its files have been quiet; 0 if that is in the past."""
        times = [0.0]
        for stream in job.streams:
            with suppress(OSError):
                times.append(stream.state()[1] + self._quiet)
        return max(times) if max(times) > time.time() else 0.0


def _key(job: Job) -> str:
    """The name of a job, which stays when it is found out to which session of the store it belongs."""
    first = job.streams[0]
    return first.path if first.rows is None else f"{first.path} {first.rows.ids[0]}"


def _mark(job: Job) -> str:
    """What changes when a file of a job does."""
    marks: list[str] = []
    for path in files_of(job):
        with suppress(OSError):
            marks.append(file_mark(os.stat(path), path + WAL))
    return " ".join(marks)


def watch(
    root: StoreLocation, find: Callable[[], Discovery], quiet: float, rounds: int | None = None, changes: Changes | None = None
) -> Iterator[ImportResult]:
    """Imports what is new whenever a file changes. ``rounds`` limits how often."""
    changes, changed = changes or Polling(), None
    with closing(open_store(root)) as store:
        watcher = Watcher(store, find, quiet)
        yield from watcher.read_captured()
        while rounds is None or rounds > 0:
            yield from watcher.run(changed)
            if rounds is not None:
                rounds -= 1
            changed = changes.wait(watcher.pause())
