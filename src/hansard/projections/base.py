"""What every projection is: events in, pieces of its output out as soon as they are sure, and a report of what it left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, Generic, Literal, TypeVar

from msgspec import Struct, field

from hansard.events import TYPES, Event, Unknown
from hansard.events.replays import without_handoff

T = TypeVar("T")

EXTENSION_KEY = "hansard"
"""The name under which a form that has room for others' data carries ours."""

REPEATED = "an agent repeated it when it resumed the session"

Shape = Literal["array", "document", "lines", "text", "bytes", "sse", "sse-done"]
"""How the pieces make a file: a JSON array of them, one JSON document, one JSON object a line, text, bytes as they are, or server-sent
events, the last of which may be ``[DONE]``."""


class Report(Struct, rename="camel"):
    """Every event is used or left out; what was left out is counted by type and reason."""

    events: int = 0
    left_out: dict[str, dict[str, int]] = field(default_factory=dict[str, "dict[str, int]"])
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """What was carried, and not as it was: counted by what was done to it."""
    masked: dict[str, dict[str, int]] = field(default_factory=dict[str, "dict[str, int]"])
    """Secrets that were masked: by kind, where they stood, and how often."""

    @property
    def used(self) -> int:
        """How many events are in the output."""
        return self.events - sum(sum(reasons.values()) for reasons in self.left_out.values())

    def leave(self, kind: str, reason: str, count: int = 1) -> None:
        """Count events that are not in the output."""
        reasons = self.left_out.setdefault(kind, {})
        reasons[reason] = reasons.get(reason, 0) + count

    def note(self, what: str) -> None:
        """Count something that had to be changed to fit."""
        self.notes[what] = self.notes.get(what, 0) + 1


class Projection(Generic[T]):
    """Reads one session's events in order. A subclass says which types it uses and, for each of the others, why not."""

    output: ClassVar[Shape] = "lines"
    handled: ClassVar[frozenset[str]]
    skipped: ClassVar[Mapping[str, str]]
    """Type of event, and why it is not in the output."""
    leaves_unknown: ClassVar[str | None] = "a type this version does not know"
    """Why events of unknown types are left out; None when they are carried."""
    observed: ClassVar[frozenset[str]] = frozenset()
    """Types that are left out and tell it something even so: it looks at them in `feed`."""
    options: ClassVar[frozenset[str]] = frozenset()
    """What can be said to its constructor, by name."""
    carries_replays: ClassVar[bool] = False
    """Whether its output also has what an agent repeated when it resumed the session."""
    uses_frames: ClassVar[bool] = False
    """Whether anything of the verbatim frames is in its output, beside those of events that nothing else says."""
    whole_originals: ClassVar[bool] = False
    """Whether it needs the frames themselves, also those that lie in blobs."""

    def __init__(self) -> None:
        self.report = Report()
        self._reasons = {TYPES[kind]: reason for kind, reason in self.skipped.items()} | {Unknown: self.leaves_unknown}
        self._unheeded = {TYPES[kind] for kind in self.skipped.keys() - self.observed}

    def feed(self, event: Event) -> Iterable[T]:
        """The pieces that this event completes."""
        self.report.events += 1
        reason = REPEATED if event.replay and not self.carries_replays else self._reasons.get(type(event))
        if reason is not None:
            self.report.leave(event.type, reason)
            return ()
        return self.handle(event if self.carries_replays else without_handoff(event))

    def blocks(self, blocks: Iterable[Iterable[Event]]) -> Iterator[list[T]]:
        """The pieces of blocks of events, as blocks."""
        for block in blocks:
            pieces: list[T] = []
            for event in block:
                pieces += self.feed(event)
            yield pieces
        yield list(self.finish())

    def filter_block(self, block: Sequence[Event]) -> Sequence[Event]:
        """The events without those of types that are left out, whatever they say: these are counted, and nobody need look at them."""
        left = [event.type for event in block if type(event) in self._unheeded]
        if not left:
            return block
        self.report.events += len(left)
        for kind, count in Counter(left).items():
            self.report.leave(kind, self.skipped[kind], count)
        return [event for event in block if type(event) not in self._unheeded]

    def handle(self, event: Event) -> Iterable[T]:
        """The pieces that an event of a used type completes. What it holds of no use it passes to `skip`."""
        raise NotImplementedError

    def finish(self) -> Iterable[T]:
        """The pieces that are complete because nothing more comes."""
        return ()

    @property
    def advice(self) -> str | None:
        """What to do with the output, if that is not obvious. Asked when all of it was made."""
        return None

    def skip(self, event: Event, reason: str) -> None:
        """This event is not in the output after all."""
        self.report.leave(event.type, reason)


class Projected(Generic[T]):
    """What a projection makes of events: iterate over it once, then ask for the ``report``."""

    def __init__(self, projection: Projection[T], events: Iterable[Event]) -> None:
        self._projection = projection
        self._events = events

    def __iter__(self) -> Iterator[T]:
        yield from chain.from_iterable(map(self._projection.feed, self._events))
        yield from self._projection.finish()

    @property
    def report(self) -> Report:
        """What was left out so far, by type, with the reason."""
        return self._projection.report

    @property
    def advice(self) -> str | None:
        """What to do with the output, if that is not obvious."""
        return self._projection.advice
