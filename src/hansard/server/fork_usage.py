"""What forks used themselves, for the list of sessions. What a fork copied counts for its parent."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from hansard.errors import HansardError
from hansard.events import TurnStart, is_main_agent
from hansard.events.lineage import Lineage
from hansard.events.usage_totals import COST, TOKENS, USAGE_TYPES, TotalUsage, UsageFold
from hansard.store import Log, SessionInfo, Store

COUNT_SECONDS = 0.1
"""How long one look at the list may count the usage of forks."""


class ForkUsage:
    """The usage of a fork, without what it has from its parent. Its running totals may begin with those of the parent."""

    def __init__(self, store: Store, info: SessionInfo, lineage: Lineage) -> None:
        self.log_id = info.log_id
        self.lineage = lineage
        self._log = store[info.id]
        self._usage = UsageFold()
        self._seq = 0
        for event in self._log.read(types=USAGE_TYPES):
            if lineage.is_copied(event.seq):
                self._usage.apply(event)
        self._copied = self._usage.session()
        self._parent = _usage_before(store[lineage.session_id or ""], lineage.seq or 0)

    def total(self) -> TotalUsage:
        """Reads what is new, and returns the sum."""
        for event in self._log.read(self._seq, types=USAGE_TYPES):
            self._seq = event.seq
            if not self.lineage.is_copied(event.seq):
                self._usage.apply(event)
        whole = self._usage.session()
        own: dict[str, Any] = {}
        for name in (*TOKENS, COST):
            inherited = self._parent if name in self._usage.running else self._copied
            count = getattr(whole, name)
            own[name] = None if count is None else max(0, count - (getattr(inherited, name) or 0))
        return msgspec.structs.replace(whole, **own)


def _usage_before(log: Log, seq: int) -> TotalUsage:
    """Returns what a session used up to the end of the turn that an event is in."""
    usage = UsageFold()
    for event in log.read(types=USAGE_TYPES):
        if event.seq > seq and isinstance(event, TurnStart) and is_main_agent(event):
            break
        usage.apply(event)
    return usage.session()


class ForkTotals:
    """The usage of all forks whose parents are in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._forks: dict[str, ForkUsage] = {}
        self._own: dict[str, tuple[int, TotalUsage]] = {}
        """What each fork used, and up to which event."""

    def replace(self, sessions: Iterable[SessionInfo]) -> list[SessionInfo]:
        """Returns the sessions, the forks among them with what they used themselves. The rest is counted at the next look."""
        until, infos = time.monotonic() + COUNT_SECONDS, list(sessions)
        logs = {info.id: info.log_id for info in infos}
        return [self._replace(info, info.copies_of(logs), until) for info in infos]

    def _replace(self, info: SessionInfo, lineage: Lineage | None, until: float) -> SessionInfo:
        if lineage is None or not lineage.copied or info.problem is not None:
            return info
        fork = self._forks.get(info.id)
        is_known = fork is not None and (fork.log_id, fork.lineage) == (info.log_id, lineage)
        counted, total = self._own.get(info.id, (0, None)) if is_known else (0, None)
        if counted < info.events and time.monotonic() < until:
            with suppress(HansardError, OSError):  # it is gone, or cannot be read; the list reports it
                if fork is None or not is_known:
                    fork = self._forks[info.id] = ForkUsage(self._store, info, lineage)
                total = fork.total()
                self._own[info.id] = info.events, total
        return msgspec.structs.replace(info, usage=total)
