"""Recordings as the page gets them: events as JSON, without the originals."""

from __future__ import annotations

import json

from hansard.adapters import formats
from hansard.events import Event
from hansard.events.codec import encode
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


def known() -> list[Stream]:
    """Every stream of a format that we read."""
    return [stream for stream in streams() if stream.format in formats()]


def places(length: int, most: int) -> list[int]:
    """Where to compare, evenly, and always at the end."""
    step = max(1, -(-length // most))
    return sorted({*range(1 + SEED % step, length + 1, step), length} - {0})
