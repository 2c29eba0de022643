"""How turns end: every recorded story with the status that each format reports, live or from disk."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from hansard import events as ev
from hansard.adapters import adapter_for
from hansard.adapters.framing import frames
from hansard.testing.truth import STORIES, facts
from tests.recorded import Stream, losses, medium_of, normalize_recording, recordings, streams

NEVER_LOST = {
    "cursor-stream-json": "Cursor documents that a turn that fails ends early, without a result.",
    "opencode-run-json": "Only a signal stops the process without an error line.",
}
"""Formats in which the end of the stream tells how the turn ended."""


class Ending(Struct):
    """How a turn ended in one recording, as one format tells it."""

    recording: str
    story: str
    format: str
    status: str | None
    reason: str | None = None
    """Why the format tells something else than the story's status."""

    @property
    def expected(self) -> str:
        """The status that the story has for every agent."""
        return STORIES[self.story][0]


@cache
def endings() -> list[Ending]:
    """The ends of all recorded turns that have a story, and the ends of streams that stop when a turn has begun."""
    return [*_recorded(), *_lost()]


def _recorded() -> list[Ending]:
    found: list[Ending] = []
    for recording in recordings():
        stories = {number: turn["story"] for number, turn in enumerate(recording.truth["turns"], 1) if "story" in turn}
        if not stories:
            continue
        for format in dict.fromkeys(stream.format for stream in recording.streams):
            events, wire = normalize_recording(recording, format)
            ends = {fact.turn: fact for fact in facts(events, recording.truth, wire, medium_of(recording, format)) if fact.kind == "end"}
            for number, story in stories.items():
                fact = ends.get(number)
                if fact is None:
                    found.append(Ending(recording.id, story, format, _last_status(events), "it does not say how the turn ended"))
                    continue
                excuse = next((loss.reason for loss in losses(recording, format) if loss.covers(fact)), None)
                found.append(Ending(recording.id, story, format, fact.status, excuse))
    return found


def _last_status(events: list[ev.Event]) -> str | None:
    ends = [event.payload.status for event in events if isinstance(event, ev.TurnEnd) and event.parent_tool_call_id is None]
    return ends[-1] if ends else None


def _lost() -> list[Ending]:
    """The first turn of each format that is nothing but an answer, without all of it that comes after its first frame."""
    found: dict[str, Ending] = {}
    for stream in (stream for stream in streams() if stream.recording.path.name in ("text", "thinking")):
        status = None if stream.format in found else stopped_at_start(stream)
        if status is not None:
            found[stream.format] = Ending(stream.recording.id, "lost", stream.format, status, NEVER_LOST.get(stream.format))
    return list(found.values())


def stopped_at_start(stream: Stream) -> str | None:
    """The status of a turn of which nothing comes after its first frame."""
    adapter = adapter_for(stream.format)(stream.context)
    events: list[ev.Event] = []
    for frame in frames([stream.data], adapter.framer()):
        events += adapter.feed(frame)
        if adapter.turn is not None:
            break
    return _last_status([*events, *adapter.finish()])
