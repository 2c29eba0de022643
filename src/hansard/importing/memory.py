"""Remembers the files that were imported before: a file that has not changed since is not opened again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from hansard.importing.discovery import Discovery, FileList
from hansard.importing.job import Job, files_of
from hansard.importing.session import ImportResult
from hansard.store import SeenFile, Store

SAVED_AT_ONCE = 500
"""After how many sessions is written down what was seen."""


class ImportMemory:
    """What one import knows of files, and adds to what is known."""

    def __init__(self, store: Store | None, listed: FileList, closed: bool, quiet: float) -> None:
        self._files = None if store is None else store.files
        self._listed = listed.files
        self._closed = closed
        self._quiet_since = time.time() - quiet
        self._known: dict[str, list[SeenFile]] = {} if self._files is None else self._files.seen()
        self._new: list[SeenFile] = []

    def nothing_new(self) -> Discovery | None:
        """Returns what a discovery would find, if every file is known and has not changed: no session, and the files of no known format."""
        if not self._known or not all(map(self._is_unchanged, self._listed)):
            return None
        return Discovery(jobs=[], unknown=[path for path in self._listed if self._known[path][0].outcome == UNKNOWN], problems=[])

    def unchanged(self) -> list[ImportResult]:
        """Returns the sessions of the files that have not changed."""
        sessions = {seen.session for path in self._listed if self._is_unchanged(path) for seen in self._known[path]}
        return [ImportResult(session, "unchanged") for session in sorted(sessions - {""})]

    def changed_jobs(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yields the jobs of which a file is new or has changed."""
        return (job for job in jobs if not all(self._is_unchanged(path) for path in files_of(job) if path in self._listed))

    def note_others(self, found: Discovery) -> None:
        """Notes the files that belong to no session, but for those that are known and have not changed."""
        used = {path for job in found.jobs for path in files_of(job)}
        unknown = set(found.unknown)
        problems = " ".join(found.problems)
        for path in self._listed.keys() - used:
            if path not in problems and not self._is_unchanged(path):
                self._note(path, "", UNKNOWN if path in unknown else OTHER)
        self.save()

    def note(self, job: Job, result: ImportResult) -> None:
        """Notes what became of the files of a session. Those of one that failed or is in use are looked at again."""
        if result.state not in ("failed", "in use"):
            for path in files_of(job):
                self._note(path, result.session_id, IMPORTED)
        if len(self._new) >= SAVED_AT_ONCE:
            self.save()

    def note_captured(self, jobs: Iterable[Job]) -> None:
        """Notes the files that were copied, and will be read into logs later."""
        for job in jobs:
            for path in files_of(job):
                self._note(path, job.session_id, CAPTURED)
        self.save()

    def save(self) -> None:
        """Writes down what was noted."""
        if self._files is not None and self._new:
            self._files.note(self._new)
        self._new = []

    def _note(self, path: str, session: str, outcome: str) -> None:
        file = self._listed.get(path)
        if file is not None:
            self._new.append(SeenFile(path, session, file.mark, outcome, self._closed or file.modified <= self._quiet_since))

    def _is_unchanged(self, path: str) -> bool:
        """Whether nothing in a file is new, and it was closed if it is to be closed now."""
        file, seen = self._listed.get(path), self._known.get(path)
        if file is None or not seen:
            return False
        over = self._closed or file.modified <= self._quiet_since
        return all(one.mark == file.mark and (one.closed or not over) for one in seen)


IMPORTED, CAPTURED, UNKNOWN, OTHER = "imported", "captured", "unknown", "other"
"""What became of a file: a session has it; it was copied; no format is known that begins so; it is nothing that is imported."""
