"""The thread that syncs behind the writers' backs: what need not be on the disk at once is there within a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from hansard.store.writer import Writer

INTERVAL = 0.25


class SyncBehind:
    """Syncs all writers a moment after one of them has written. It sleeps while nothing happens."""

    def __init__(self, writers: Callable[[], Iterable[Writer]]) -> None:
        self._writers = writers
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def want(self) -> None:
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
        while self._wanted.wait() and not self._stopped.wait(INTERVAL):
            self._wanted.clear()
            if self._stopped.is_set():  # the call to stop came just before, and its wish was cleared with the others
                return
            for writer in self._writers():
                writer.sync_behind()
