"""What a session used, kept in its row: counted on with every batch that says something of it, and from the log where that is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from hansard.events import Event
from hansard.projections.tally import Tally
from hansard.projections.usage import UsageReport

_SAYS_SO = {"usage", "result"}


class Spending:
    """The tally of one log, for its writer. ``read`` gives the events of some types that are in the log now."""

    def __init__(self, read: Callable[[frozenset[str]], Iterable[Event]]) -> None:
        self._read = read
        self._tally: Tally | None = None
        self._ahead = False
        """Whether events are counted of which nobody knows yet whether they are written."""

    def count(self, events: Iterable[Event]) -> str | None:
        """What the session will have used when these are written, as JSON; None while nobody has said anything."""
        told = [event for event in events if event.type in UsageReport.uses]
        if self._ahead:
            self._tally, self._ahead = None, False
        if self._tally is None and any(event.type in _SAYS_SO for event in told):
            self._tally = Tally()
            for event in self._read(UsageReport.uses):
                self._tally.apply(event)
        if self._tally is None:
            return None
        for event in told:
            self._tally.apply(event)
        self._ahead = self._ahead or bool(told)
        return msgspec.json.encode(self._tally.session()).decode()

    def written(self) -> None:
        """They are."""
        self._ahead = False
