"""What a log says, so that it can be compared with one that was made anew of it."""

from __future__ import annotations

import re

from hansard.agents.renormalize import LOGS_OWN, renormalize
from hansard.events import Event
from hansard.events.codec import encode
from hansard.store import Store

_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def comparable_events(store: Store, session: str, before: str | None = None) -> list[tuple[bytes, bytes]]:
    """The events of a log without what is about the log itself, and their originals. A name that hansard made is a number, in the order
    they come up; but not in the originals, which are those of then.

    ``before`` is the log that it was made of: a conversation that was handed off has names of that one in its text.
    """
    numbers = ({} if before is None else _numbers(store, before)) | _numbers(store, session)
    lines: list[tuple[bytes, bytes]] = []
    for event in _events(store, session):
        original, event.original = event.original, None
        event.session_id, event.seq = "", 0
        line = _ID.sub(lambda found: numbers.get(found.group().decode(), found.group()), encode(event))
        lines.append((line, b"" if original is None else bytes(original)))
    return lines


def _events(store: Store, session: str) -> list[Event]:
    return [event for event in store[session].read() if not (event.type == "session_lifecycle" and event.payload.subtype in LOGS_OWN)]


def _numbers(store: Store, session: str) -> dict[str, bytes]:
    header = next(store[session].read(limit=1))  # what comes late may follow it
    names = dict.fromkeys(name for event in (header, *_events(store, session)) for name in (event.id, event.response_id) if name)
    return {name: b"%d" % number for number, name in enumerate(names)}


def check_again(store: Store, session: str) -> None:
    """The log made anew by the same adapters is the same."""
    made = renormalize(store, session)
    assert store[made].verify() == []
    before, after = comparable_events(store, session), comparable_events(store, made, session)
    for old, new in zip(before, after, strict=False):
        assert new == old, f"{old!r:.700}\n{new!r:.700}"
    assert len(after) == len(before)
