"""What a log says, so that it can be compared with one that was made anew of it."""

from __future__ import annotations

import re

from hansard.agents.renormalize import LOGS_OWN, renormalize
from hansard.events.codec import encode
from hansard.store import Store

_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def comparable_events(store: Store, session: str) -> list[tuple[bytes, bytes]]:
    """The events of a log without what is about the log itself, and their originals. A name that hansard made is a number, in the order
    they come up; but not in the originals, which are those of then."""
    events = [event for event in store[session].read() if not (event.type == "session_lifecycle" and event.payload.subtype in LOGS_OWN)]
    names = dict.fromkeys(name for event in events for name in (event.id, event.response_id) if name)
    numbers = {name: b"%d" % number for number, name in enumerate(names)}
    lines: list[tuple[bytes, bytes]] = []
    for event in events:
        original, event.original = event.original, None
        event.session_id, event.seq = "", 0
        line = _ID.sub(lambda found: numbers.get(found.group().decode(), found.group()), encode(event))
        lines.append((line, b"" if original is None else bytes(original)))
    return lines


def check_again(store: Store, session: str) -> None:
    """The log made anew by the same adapters is the same."""
    made = renormalize(store, session)
    assert store[made].verify() == []
    before, after = comparable_events(store, session), comparable_events(store, made)
    for old, new in zip(before, after, strict=False):
        assert new == old, f"{old!r:.700}\n{new!r:.700}"
    assert len(after) == len(before)
