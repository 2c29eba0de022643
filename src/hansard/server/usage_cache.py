"""What each session used, for the list: folded from the logs a little at a time, the newest first, and only what is new of each."""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import Struct, field

from hansard.errors import HansardError
from hansard.events.usage_totals import USAGE_TYPES, TotalUsage, UsageFold
from hansard.store import SessionInfo, Store, lines

AT_ONCE = 0.1
"""Seconds that one look at the list may take for this."""


class Counted(Struct):
    """How far a log was counted, and what that came to."""

    log_id: str
    seq: int = 0
    usage: UsageFold = field(default_factory=UsageFold)


class Totals:
    """Tokens and money by session."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Counted] = {}

    def count(self, sessions: Iterable[SessionInfo]) -> None:
        """Count what is new, as far as the time goes. What is left is counted at the next look."""
        until = time.monotonic() + AT_ONCE
        for info in sessions:
            known = self._known.get(info.id)
            if known is None or known.log_id != info.log_id:
                known = self._known[info.id] = Counted(info.log_id)
            if known.seq < info.events and info.problem is None:
                self._count(info.id, known, until)
            if time.monotonic() > until:
                return

    def get(self, info: SessionInfo) -> TotalUsage | None:
        """What is known of a session."""
        known = self._known.get(info.id)
        return None if known is None or known.log_id != info.log_id else known.usage.session()

    def _count(self, session: str, known: Counted, until: float) -> None:
        try:
            for record in self._store[session].records(known.seq):
                if record.type in USAGE_TYPES:
                    known.usage.apply(lines.decode_record(record))
                known.seq = max(known.seq, record.seq)
                if known.seq % 256 == 0 and time.monotonic() > until:
                    return
        except (HansardError, OSError):
            pass  # it is gone, or cannot be read; the list says so itself
