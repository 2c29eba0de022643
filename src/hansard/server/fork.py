"""A fork: a new log that begins with the events of another, up to a place. The other is not touched."""

from __future__ import annotations

from collections.abc import Iterator

from hansard.agents.session_state import SessionState
from hansard.errors import UnknownCursor
from hansard.events import Event, SessionLifecycle, is_main_agent
from hansard.events.lineage import PARENT_FOUND, Lineage, parent_found
from hansard.events.replays import mark
from hansard.events.summary import LAUNCHED_SUBTYPE
from hansard.store import Store, lines
from hansard.store.transfer.copy import copy_blobs

_OWN = {"created", "checkpoint", "log_recovered", "store_degraded", "closed", "archived", "unarchived", PARENT_FOUND, LAUNCHED_SUBTYPE}
"""What a log says about itself, or about the process that wrote it."""
SOME = 1000


def fork(store: Store, session_id: str, seq: int | None, title: str | None) -> tuple[str, SessionState]:
    """The new session's name, and what the old one had come to there."""
    head = store[session_id].head()
    at = head.seq if seq is None else seq
    if not 1 <= at <= head.seq:
        raise UnknownCursor(f"there is no event {at}; the log is at {head.seq}")
    first = next(store[session_id].read(limit=1), None)
    header = first.payload if isinstance(first, SessionLifecycle) else None
    given = {"format": header and header.format, "title": title or (header and header.title)}
    made = store.create(**{name: value for name, value in given.items() if value}, parent_session_id=session_id, parent_seq=at)
    past, last = SessionState(), made.seq
    try:
        for block in _copied(store, session_id, made.session_id, at, past):
            last = max([last, *(event.seq for event in store[made.session_id].append(block))])
        copied = ((made.seq + 1, last),) if last > made.seq else ()
        turns = [event.seq for event in store[session_id].read(before=at + 1, types=("turn_start",)) if is_main_agent(event)]
        turn_seq = turns[-1] if turns else None
        lineage = Lineage("fork", session_id=session_id, log_id=head.log_id, seq=at, turn_seq=turn_seq, copied=copied)
        store[made.session_id].append([parent_found(lineage)])
        store[made.session_id].append(list(past.closing_events("the session was forked here")))
    except BaseException:
        store.delete(made.session_id)
        raise
    store[made.session_id].release()
    return made.session_id, past


def _copied(store: Store, session_id: str, to: str, at: int, past: SessionState) -> Iterator[list[Event]]:
    block: list[Event] = []
    unmarked = store[session_id].unmarked_replays()
    for record in store[session_id].records(before=at + 1):
        event = mark(lines.decode_record(record), unmarked)
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
