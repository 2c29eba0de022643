"""What a session used: tokens and money by turn, by model and in all, as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hansard.events import TYPES, Event
from hansard.events.usage_totals import USAGE_TYPES, Context, Reported, TotalUsage, TurnSpent, UsageFold
from hansard.projections.base import Projection
from hansard.projections.omissions import BOOKKEEPING, STREAMING, skip_except


class UsageTotals(Struct, rename="camel"):
    """Everything is counted once. ``session`` includes what subagents used; None is unknown."""

    session: TotalUsage
    subagents: TotalUsage | None
    models: dict[str, TotalUsage]
    turns: list[TurnSpent]
    context: Context | None
    reported: Reported


class UsageReport(Projection[UsageTotals]):
    """The fold of `usage_totals.py`, and its turns."""

    output = "document"
    handled = USAGE_TYPES
    skipped = skip_except(handled, dict.fromkeys(TYPES, "says nothing of what was used") | BOOKKEEPING | STREAMING)

    def __init__(self) -> None:
        super().__init__()
        self._tally = UsageFold()
        self._turns: list[TurnSpent] = []

    def handle(self, event: Event) -> Iterable[UsageTotals]:
        """Count it."""
        self._turns += [settled.spent for settled in self._tally.apply(event)]
        return ()

    def finish(self) -> Iterator[UsageTotals]:
        """The document."""
        tally = self._tally
        self._turns += [settled.spent for settled in tally.finish()]
        yield UsageTotals(tally.session(), tally.subagents(), tally.models(), self._turns, tally.context(), tally.reported)
