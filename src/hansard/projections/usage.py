"""What a session used: tokens and money by turn, by model and in all, as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hansard.events import TYPES, Event
from hansard.projections.projection import Projection
from hansard.projections.reasons import BOOKKEEPING, STREAMING, except_for
from hansard.projections.tally import Context, Reported, Spent, Tally, TurnSpent


class UsageTotals(Struct, rename="camel"):
    """Everything is counted once. ``session`` includes what sub-agents used; None is unknown."""

    session: Spent
    subagents: Spent | None
    models: dict[str, Spent]
    turns: list[TurnSpent]
    context: Context | None
    reported: Reported


class UsageReport(Projection[UsageTotals]):
    """The fold of `tally.py`, and its turns."""

    shape = "document"
    uses = frozenset({"result", "session_init", "session_lifecycle", "turn_end", "turn_start", "usage"})
    leaves = except_for(uses, dict.fromkeys(TYPES, "says nothing of what was used") | BOOKKEEPING | STREAMING)

    def __init__(self) -> None:
        super().__init__()
        self._tally = Tally()
        self._turns: list[TurnSpent] = []

    def take(self, event: Event) -> Iterable[UsageTotals]:
        """Count it."""
        self._turns += self._tally.apply(event)
        return ()

    def finish(self) -> Iterator[UsageTotals]:
        """The document."""
        tally = self._tally
        self._turns += tally.finish()
        yield UsageTotals(tally.session(), tally.subagents(), tally.models(), self._turns, tally.context(), tally.reported)
