"""Shipping: what is recorded here is brought to another store as it is written, for as long as somebody wants it.

A recorder without a connection writes to its own folder. Whatever was said meanwhile goes over when the other store can be reached again,
each line once; what is deleted here stays there.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress

from hansard.errors import HansardError, StoreError, TargetUnavailable, UnknownSession
from hansard.store import SessionInfo, Store
from hansard.store.retirements import PREFIX, RetirementCache
from hansard.store.transfer.copy import CopyResult, SessionCopy, check_target, record_failure

LIST_INTERVAL_SECONDS = 1.0
"""Seconds between two looks at all sessions; of those that are being written every line wakes."""
LIST_PAUSE_FACTOR = 25
"""A look that takes long is followed by a pause of so many times as long."""
BATCH_SECONDS = 0.1
"""Seconds from the first new line until it is sent: lines come in flocks."""
MAX_FOLLOWED = 200
"""So many sessions wake at once; the others are looked at."""
MAX_RETRY_SECONDS = 30.0
"""Seconds between two attempts at most."""

Mark = tuple[str, int, int]
Tell = Callable[[str], object]
"""Told in a sentence what a person should know: that the target is away, and that it is back."""


def sessions_to_ship(source: Store, target: Store) -> Iterator[SessionInfo]:
    """The sessions of a store, but for those that were retired at the target and have not gone on since."""
    memory = RetirementCache(target)
    return (info for info in _shippable(source) if not _is_retired(target, memory, info))


def _shippable(source: Store) -> list[SessionInfo]:
    """The sessions; what was retired from this store is said in it alone."""
    return [info for info in source.sessions() if not info.id.startswith(PREFIX)]


def _is_retired(target: Store, memory: RetirementCache, info: SessionInfo) -> bool:
    """Whether a session is not at the target because it was retired there, and has not gone on since: nobody wants it sent again."""
    try:
        target[info.id].head()
    except UnknownSession:
        return any(gone.log_id == info.log_id and info.events <= gone.seq for gone in memory.get(info.id))
    return False


class Shipper:
    """Brings the sessions of one store to another. What was seen of each is remembered, so that a look costs what is new."""

    def __init__(self, source: Store, target: Store, tell: Tell) -> None:
        self._source = source
        self._target = target
        self._tell = tell
        self._retired = RetirementCache(target)
        self._seen: dict[str, Mark] = {}
        self._problems: dict[str, str] = {}
        self._live: dict[str, SessionInfo] = {}
        self._listeners: dict[str, asyncio.Task[None]] = {}
        self._changed: set[str] = set()
        self._wakeup = asyncio.Event()
        self._attempts = 0
        self._next_look = 0.0

    async def watch(self) -> AsyncGenerator[CopyResult]:
        """Bring over what is there, then what comes, for ever. Each session that moved is told, and each problem of one once."""
        try:
            while True:
                try:
                    for info in self._due():
                        if (one := await self._copy(info)) is not None:
                            yield one
                    self._report_available()
                except StoreError as problem:
                    await asyncio.sleep(self._report_unavailable(problem))
                else:
                    await self._wait()
        finally:
            for task in self._listeners.values():
                task.cancel()

    def _due(self) -> list[SessionInfo]:
        """The sessions to look at: those in which something was said just now, and every second all that have changed."""
        rung, self._changed = self._changed, set()
        self._wakeup.clear()
        if self._attempts:
            check_target(self._target)
        elif time.monotonic() < self._next_look:
            return [self._live[name] for name in rung if name in self._live]
        began = time.monotonic()
        self._retired.refresh()
        found = _shippable(self._source)
        self._next_look = time.monotonic() + max(LIST_INTERVAL_SECONDS, LIST_PAUSE_FACTOR * (time.monotonic() - began))
        self._follow_sessions([info for info in found if info.live])
        return [info for info in found if self._seen.get(info.id) != _mark(info)]

    async def _wait(self) -> None:
        # Not `wait_for`: in Python 3.11 it loses a Ctrl-C that comes together with the wake-up (gh-86296).
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0, self._next_look - time.monotonic())):
                await self._wakeup.wait()
            await asyncio.sleep(BATCH_SECONDS)

    async def _copy(self, info: SessionInfo) -> CopyResult | None:
        """Move one session; None if there is nothing to say of it."""
        copy = SessionCopy(self._source, self._target, info.id, info.live)
        try:
            if info.problem is not None:
                raise StoreError(info.problem)
            if info.id in self._seen or not _is_retired(self._target, self._retired, info):
                for _ in copy.steps():
                    await asyncio.sleep(0)  # Ctrl-C is heard here
        except UnknownSession:
            return None  # deleted meanwhile, here; there it stays
        except HansardError as problem:
            record_failure(copy, problem)
            reported, self._problems[info.id] = self._problems.get(info.id), str(problem)
            return None if reported == str(problem) else copy.result
        self._problems.pop(info.id, None)
        self._seen[info.id] = _mark(info)
        return None if copy.result.state in ("unchanged", "ahead") else copy.result

    # ---- being woken

    def _follow_sessions(self, live: list[SessionInfo]) -> None:
        """Have every new line of these sessions ring."""
        self._live = {info.id: info for info in live[:MAX_FOLLOWED]}
        for name, task in list(self._listeners.items()):
            if name not in self._live or task.done():
                self._listeners.pop(name).cancel()
        for name, info in self._live.items():
            if name not in self._listeners:
                self._listeners[name] = asyncio.create_task(self._follow(name, info.events))

    async def _follow(self, name: str, after: int) -> None:
        with suppress(HansardError, OSError):  # gone, or made anew: the next look at all sessions sees it
            async for _ in self._source[name].follow_records(after):
                self._changed.add(name)
                self._wakeup.set()

    # ---- the target comes and goes

    def _report_unavailable(self, problem: StoreError) -> float:
        """Say it once, and how long to wait: longer each time, and not in step with everybody else."""
        if self._attempts == 0:
            which = "target" if isinstance(problem, TargetUnavailable) else "source"
            self._tell(f"the {which} is away: {problem}; shipping goes on when it is back")
        self._attempts += 1
        return min(MAX_RETRY_SECONDS, 0.5 * 2 ** min(self._attempts, 10)) * random.uniform(0.5, 1)  # noqa: S311 (no secret)  # nosec B311

    def _report_available(self) -> None:
        if self._attempts:
            self._attempts = 0
            self._tell("it is back; shipping goes on")


def _mark(info: SessionInfo) -> Mark:
    """What changes when a log does."""
    return info.log_id, info.events, info.bytes
