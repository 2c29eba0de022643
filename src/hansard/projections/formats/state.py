"""The state of a session after its last event, as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hansard import events as ev
from hansard.events.state import FOLDED, Snapshot, State
from hansard.projections.base import Projection
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except


class StateDocument(Projection[Snapshot]):
    """The snapshot after the last event."""

    output = "document"
    handled = FOLDED
    observed = frozenset(ev.TYPES)
    skipped = skip_except(handled, dict.fromkeys(ev.TYPES, "changes nothing about where the session stands") | BOOKKEEPING | STREAMING)

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def feed(self, event: ev.Event) -> Iterable[Snapshot]:
        """Every event says how far the log goes, also one that says nothing else."""
        self._state.apply(event)
        return super().feed(event)

    def handle(self, event: ev.Event) -> Iterable[Snapshot]:
        """It is taken in already."""
        return ()

    def finish(self) -> Iterator[Snapshot]:
        """The document."""
        yield self._state.snapshot()
