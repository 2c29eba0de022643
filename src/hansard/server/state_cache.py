"""Where sessions stand that are not open here: folded from their logs, and of a log that was asked for before only what is new of it."""

from __future__ import annotations

import threading
from collections import OrderedDict

from msgspec import Struct, field

from hansard.events.state import Snapshot, State
from hansard.store import Store

KEPT = 64
"""So many folds are kept, of the sessions that were asked for last."""


class Folded(Struct):
    """A log as far as it was read."""

    log_id: str
    state: State = field(default_factory=State)
    turn: threading.Lock = field(default_factory=threading.Lock)


class States:
    """One fold for all who ask. On threads: a long log takes its time when it is asked for first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Folded] = OrderedDict()
        self._looking = threading.Lock()

    def get(self, session_id: str) -> Snapshot:
        """Where it stands now."""
        known = self._find(session_id, self._store[session_id].head().log_id)
        with known.turn:
            for event in self._store[session_id].read(known.state.seq):
                known.state.apply(event)
            return known.state.snapshot()

    def _find(self, session_id: str, log_id: str) -> Folded:
        with self._looking:
            known = self._known.pop(session_id, None)
            if known is None or known.log_id != log_id:
                known = Folded(log_id)
            self._known[session_id] = known
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return known
