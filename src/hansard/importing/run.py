"""Many sessions, on all cores when there is enough to do."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hansard.importing.capture import import_sessions
from hansard.importing.identity import Identities
from hansard.importing.job import Job, group_by_session
from hansard.importing.session import ImportResult
from hansard.store import StoreLocation, open_store
from hansard.store.lineage import find_parents
from hansard.store.retirements import RetirementCache

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

PARALLEL_MIN_BYTES = 16 * 1024 * 1024
"""Bytes above which it is worth starting other processes."""


def import_all(
    root: StoreLocation, jobs: list[Job], closed: bool, quiet: float, processes: int | None = None
) -> Iterator[tuple[ImportResult, Job]]:
    """Imports sessions; each outcome as it comes. Then their parents are found."""
    if not jobs:
        return
    if isinstance(root, Path):
        root.mkdir(0o700, parents=True, exist_ok=True)
    with closing(open_store(root)) as store:
        store.update_index(0)  # there is one from now on, and whoever writes a session adds it
        jobs = [*(job for job in jobs if job.copied is not None), *Identities(store).assign(job for job in jobs if job.copied is None)]
    changed: set[str] = set()
    try:
        for result, job in _import(root, jobs, closed, quiet, processes):
            if result.state in ("added", "updated"):
                changed.add(result.session_id)
            yield result, job
    finally:  # also if it is stopped: the next import reads only what is new
        with closing(open_store(root)) as store:
            find_parents(store, changed)


def _import(root: StoreLocation, jobs: list[Job], closed: bool, quiet: float, processes: int | None) -> Iterator[tuple[ImportResult, Job]]:
    groups = group_by_session(jobs)
    if all(job.copied is None for job in jobs):  # the largest first, so that no core waits long for another
        groups.sort(key=lambda group: -sum(job.size for job in group))
    count = min(processes or os.cpu_count() or 1, len(groups))
    if count < 2 or sum(job.size for job in jobs) < PARALLEL_MIN_BYTES:
        with closing(open_store(root)) as store:
            yield from import_sessions(store, jobs, closed, quiet)
        return
    import multiprocessing  # slow to import, and one session needs none of it
    from concurrent.futures import ProcessPoolExecutor, as_completed

    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    with ProcessPoolExecutor(count, spawn, _begin, (str(root), stop)) as pool:
        try:
            with _hold_interrupts():
                waiting = [pool.submit(import_group, str(root), group, closed, quiet) for group in groups]
            for done in as_completed(waiting):
                yield from done.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)  # waits, also for a process that is still starting: it needs our semaphore
            raise


class _ProcessState:
    """What a process that imports for another one knows."""

    memory: RetirementCache
    stop: Event


def _begin(root: str, stop: Event) -> None:
    """The beginning of one process. What was retired is read once: for each session, it would be the whole store each time."""
    _ProcessState.memory, _ProcessState.stop = RetirementCache(open_store(root)), stop


def import_group(root: str, jobs: list[Job], closed: bool, quiet: float) -> list[tuple[ImportResult, Job]]:
    """The part of one process. Told to stop, it closes the log as it is, and the next import goes on from there."""
    with closing(open_store(root)) as store:
        try:
            return list(import_sessions(store, jobs, closed, quiet, _ProcessState.memory, _ProcessState.stop.is_set))
        except KeyboardInterrupt:
            return []


@contextmanager
def _hold_interrupts() -> Generator[None]:
    """Processes that are started meanwhile do not hear Ctrl-C, which reaches all of a terminal: they end when this one says so.

    This one hears it afterward.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
