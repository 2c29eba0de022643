"""The turns of the main agent: the number, the title, and the end of each."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from hansard.events.structs import prepare
from hansard.events.summary import message_title
from hansard.events.types import EARLIEST_CALENDAR_MS, Event, TurnEnd, TurnStart, UserMessage
from hansard.events.usage_totals import TotalUsage

T = TypeVar("T")

MAX_TURNS = 10_000
"""How many turns are kept. The oldest go first."""


class Turn(Struct, rename="camel", frozen=True):
    """A turn of the main agent."""

    id: str
    seq: int
    """Its first event."""
    number: int
    """Its position among all turns of the session, from 1."""
    title: str | None = None
    """The beginning of the message that started it."""
    status: str = "running"
    """How it ended; ``running`` until it ends."""
    started: int | None = None
    duration_ms: int | None = None
    usage: TotalUsage | None = None
    """What it used, with its subagents."""


class TurnList(Struct):
    """The fold: `start`, `end` and `name` are called with the main agent's events, in order."""

    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """The turns that have an id."""
    count: int = 0
    """The number of turns that began, also without an id."""
    began: dict[str, int] = field(default_factory=dict[str, int])
    """When the open turns began, by id: as hansard received them, or else as their agent says."""

    def start(self, event: TurnStart) -> Turn | None:
        """A turn begins."""
        self.count += 1
        if event.turn_id:
            _put(self.began, event.turn_id, _received(event))
        return self.change(event, number=self.count, status="running", started=calendar_time(event), duration_ms=None)

    def end(self, event: TurnEnd) -> Turn | None:
        """A turn ends."""
        began = self.began.pop(event.turn_id or "", None)
        return self.change(event, status=event.payload.status, duration_ms=None if began is None else _time_since(began, _received(event)))

    def name(self, event: UserMessage) -> Turn | None:
        """The first message of a turn that is a prompt is its title."""
        known = self.turns.get(event.turn_id or "")
        is_title = event.payload.author != "harness" and (known is None or known.title is None)
        return self.change(event, title=message_title(event.payload.text)) if is_title else None

    def change(self, event: Event, **changes: Any) -> Turn | None:
        """Changes the turn of an event; the first event of a turn puts it into the list."""
        name = event.turn_id
        if not name:
            return None
        known = self.turns.get(name) or Turn(name, event.seq, self.count + 1)
        return _put(self.turns, name, replace(known, **changes))


def _put(table: dict[str, T], name: str, value: T) -> T:
    table[name] = value
    if len(table) > MAX_TURNS:
        del table[next(iter(table))]
    return value


def calendar_time(event: Event) -> int | None:
    """Returns when an event happened, if that is known: a recording may count from its start."""
    return event.timestamp if event.timestamp >= EARLIEST_CALENDAR_MS else None


def _received(event: Event) -> int:
    return event.timestamp if event.received_at is None else event.received_at


def _time_since(start: int, end: int) -> int | None:
    """Returns the milliseconds between two moments of the same clock."""
    same_clock = (start >= EARLIEST_CALENDAR_MS) == (end >= EARLIEST_CALENDAR_MS)
    return end - start if same_clock and 0 <= start <= end else None


prepare(globals())
