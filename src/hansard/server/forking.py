"""A fork: a new log that begins with the events of another, up to a place. The other is not touched."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.errors import UnknownCursor
from hansard.events import Event, SessionLifecycle
from hansard.session.past import LAUNCHED, Past
from hansard.store import Store, lines
from hansard.store.copying import copy_blobs

_OWN = {"created", "checkpoint", "log_recovered", "store_degraded", "closed", "archived", "unarchived", LAUNCHED}
"""What a log says about itself, or about the process that wrote it."""
SOME = 1000


def fork(store: Store, session_id: str, seq: int | None, title: str | None) -> tuple[str, Past]:
    """The new session's name, and what the old one had come to there."""
    head = store.head(session_id)
    at = head.seq if seq is None else seq
    if not 1 <= at <= head.seq:
        raise UnknownCursor(f"there is no event {at}; the log is at {head.seq}")
    first = next(store.read(session_id, limit=1), None)
    header = first.payload if isinstance(first, SessionLifecycle) else None
    given = {"format": header and header.format, "title": title or (header and header.title)}
    made = store.create(**{name: value for name, value in given.items() if value}, parent_session_id=session_id, parent_seq=at)
    past = Past()
    try:
        for block in _copied(store, session_id, made.session_id, at, past):
            store.append(made.session_id, block)
        store.append(made.session_id, list(past.closing("the session was forked here")))
    except BaseException:
        store.delete(made.session_id)
        raise
    store.release(made.session_id)
    return made.session_id, past


def _copied(store: Store, session_id: str, to: str, at: int, past: Past) -> Iterator[list[Event]]:
    block: list[Event] = []
    for record in store.records(session_id, before=at + 1):
        event = lines.event(record)
        if record.damage is None:
            past.apply(event)
        if isinstance(event, SessionLifecycle) and event.source is None and event.payload.subtype in _OWN:
            continue
        copy_blobs(store, session_id, to, record.line)
        event.session_id, event.seq = "", 0
        block.append(event)
        if len(block) >= SOME:
            yield block
            block = []
    yield block
