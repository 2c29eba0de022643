"""Recordings as the page gets them: events as JSON, without the originals."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hansard.adapters import formats
from hansard.events import Event
from hansard.events.codec import encode
from hansard.events.state import State
from hansard.projections.output import encode as encode_json
from tests.proof import SEED, amount
from tests.recorded import Stream, streams

EVERYWHERE = amount(20, 400)
"""So many events of a recording are compared one by one, others with another HANSARD_SEED: the work grows with the square of their number.
`make soak` does all."""
FEW = 8
LONG = 400
"""A recording of so many events is compared at fewer places."""


def as_json(events: list[Event]) -> str:
    """The events as the server sends them; ASCII, so that half an emoji comes through."""
    lines: list[str] = []
    for event in events:
        original, event.original = event.original, None
        lines.append(json.dumps(json.loads(encode(event))))
        event.original = original
    return f"[{','.join(lines)}]"


def state_changes(events: list[Event], at: Iterable[int]) -> str:
    """What changes in the state between some of the events, as the server sends it, by the number of the event."""
    state, wanted, before, found = State(), set(at), dict[str, Any](), dict[int, dict[str, Any]]()
    for number, event in enumerate(events, 1):
        state.apply(event)
        if number in wanted:
            now = json.loads(encode_json(state.snapshot()))
            found[number] = {name: value for name, value in now.items() if before.get(name, before) != value}
            found[number]["turnList"] = [turn for turn in now["turnList"] if turn not in before.get("turnList", [])]
            before = now
    return json.dumps(found)


def final_state(events: list[Event]) -> str:
    """The state after the last event."""
    return json.dumps(json.loads(encode_json(State.from_events(events).snapshot())))


def known() -> list[Stream]:
    """Every stream of a format that we read."""
    return [stream for stream in streams() if stream.format in formats()]


def places(length: int, most: int) -> list[int]:
    """Where to compare, evenly, and always at the end."""
    step = max(1, -(-length // most))
    return sorted({*range(1 + SEED % step, length + 1, step), length} - {0})
