"""What a form and a store from elsewhere can be held to."""

# ruff: noqa: S101 (these are tests, wherever they run)

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from hansard.errors import SessionExists, UnknownCursor, UnknownSession
from hansard.events import TYPES, Event, assistant_chunk, session_lifecycle, turn_end, turn_start, user_message
from hansard.originals import wrap
from hansard.projections import Projected, project, projection_for
from hansard.projections.words import without_frame
from hansard.projections.writing import written
from hansard.store import Store

PATIENCE = 30.0
"""Seconds that a follower has to hear of what was written."""


def check_projection(form: str, events: Sequence[Event]) -> bytes:
    """Every event is used or left out with a reason, and the same events give the same bytes. Gives the bytes."""
    projection = projection_for(form)
    assert projection.uses | projection.leaves.keys() == TYPES.keys(), "not every type is used or left"
    assert not projection.uses & projection.leaves.keys(), f"used and left: {sorted(projection.uses & projection.leaves.keys())}"
    assert all(projection.leaves.values()), "a type is left without a reason"
    made = project(events, form)
    data = _bytes(form, made)
    assert made.report.events == len(events), f"{made.report.events} of {len(events)} events are accounted for"
    assert 0 <= made.report.used <= len(events), f"{made.report.used} of {len(events)} events are used"
    assert _bytes(form, project(events, form)) == data, "the same events gave other bytes"
    if not projection.uses_frames:
        assert _bytes(form, project([without_frame(event) for event in events], form)) == data, "it does use frames"
    return data


def _bytes(form: str, pieces: Projected[Any]) -> bytes:
    return b"".join(written(pieces, projection_for(form).shape))


def check_store(store: Store, session: str = "check-store") -> None:
    """A store does what `hansard.Store` says, in a session of its own that is not there before and gone after."""
    made = store.create(session, title="A title")
    assert (made.session_id, made.seq) == (session, 1), f"a new log is at {made}"
    _raises(SessionExists, lambda: store.create(session))
    said = store.append(session, _talk())
    assert [event.seq for event in said] == list(range(2, len(said) + 2)), "seq does not go on"
    assert all(event.id and event.session_id == session for event in said), "an event without its id or its session"
    _check_reading(store, session, said)
    _check_listing(store, session)
    _check_beside(store, session)
    asyncio.run(_check_following(store, session))
    store.release(session)
    assert not [found for found in store.verify(session) if found.is_damage], f"damage: {store.verify(session)}"
    store.delete(session)
    _raises(UnknownSession, lambda: store.head(session))


def _talk() -> list[Event]:
    chunk = assistant_chunk(text="half a \ud83d emoji, and \u2028")
    chunk.original = wrap(b'{"a":  1}')
    return [turn_start(trigger="user"), user_message(text="Hello"), chunk, turn_end(status="completed")]


def _check_reading(store: Store, session: str, said: list[Event]) -> None:
    head = store.head(session)
    everything = list(store.read(session))
    assert [event.seq for event in everything] == list(range(1, head.seq + 1)), "what is read has gaps, or is not all"
    assert [event for event in everything if event.id in {one.id for one in said}] == said, "what is read is not what was written"
    assert list(store.read(session, 2, 2)) == everything[2:4], "after and limit"
    assert list(store.read(session, before=3)) == everything[:2], "before"
    assert [event.type for event in store.read(session, types=["user_message"])] == ["user_message"], "types"
    assert list(store.read(session, head.cursor)) == [], "after the head there is something"
    assert store.tail(session, 2) == everything[-2:], "tail"
    assert [event for block, _ in store.read_blocks(session, 100) for event in block] == everything, "read_blocks"
    assert [record.seq for record in store.records(session)] == [event.seq for event in everything], "records"
    assert store.original(session, said[2]) == b'{"a":  1}', "an original did not come back"
    _raises(UnknownCursor, lambda: list(store.read(session, head.seq + 1)))


def _check_listing(store: Store, session: str) -> None:
    store.append(session, [session_lifecycle(subtype="renamed", title="Another title")])
    info = next((info for info in store.sessions() if info.id == session), None)
    assert info is not None, "a session is not in the list"
    assert (info.title, info.status) == ("Another title", "completed"), f"the list says {info}"


def _check_beside(store: Store, session: str) -> None:
    assert store.get_blob(session, store.put_blob(session, b"\0bytes")) == b"\0bytes", "a blob did not come back"
    store.put_note(session, "note", b"1")
    store.put_note(session, "note", b"2")
    assert store.get_note(session, "note") in (b"2", None), "a note is an old one"


async def _check_following(store: Store, session: str) -> None:
    head = store.head(session)
    following = store.follow(session, head.cursor)
    store.append(session, [user_message(text="Later")])
    heard = await asyncio.wait_for(anext(following), PATIENCE)
    assert heard.seq == head.seq + 1, f"a follower heard {heard.seq} after {head.seq}"


def _raises(kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was to be raised")
