"""Verifying a log in a folder: one pass over its lines, and a list of everything that is not as it was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hansard.store import blobs
from hansard.store.checks import LogChecker
from hansard.store.files import lock, paths
from hansard.store.files.reader import LogFiles, Reader, RepeatFinder
from hansard.store.records import Finding, Record


class _FolderSource:
    """A log in a folder."""

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._reader = Reader(log)
        self.earlier = RepeatFinder(log).earlier
        self.blob = partial(blobs.get, log.folder)

    def lines(self) -> Iterator[Record]:
        """All whole lines from the beginning on."""
        self._reader = Reader(self._log)
        while found := self._reader.next():
            yield from found

    def unterminated(self) -> list[Record]:
        """What stands behind the last line end, once all lines are read."""
        return self._reader.unterminated()

    def has_blob(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return os.path.lexists(self._log.folder / paths.BLOBS / name)

    def problems(self) -> list[Finding]:
        """Frames of a compressed file that cannot be read; a file that is empty."""
        found = [Finding("frame", problem, segment=one.number) for one in self._log.segments for problem in one.file.problems]
        return found if self._log.size else [*found, Finding("empty", "the log is empty")]

    def is_held(self) -> bool:
        """Whether somebody is writing it."""
        return lock.is_held(self._log.folder)


def verify(folder: Path) -> list[Finding]:
    """Everything that is wrong with a log, in the order of the file."""
    with LogFiles(folder) as log:
        kept = _FolderSource(log)
        check = LogChecker(kept)
        for record in kept.lines():
            check.line(record)
        for record in kept.unterminated():
            check.unfinished(record)
        check.end()
        return check.findings
