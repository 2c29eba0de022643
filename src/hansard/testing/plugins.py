"""What a form and a store from elsewhere can be held to."""

# ruff: noqa: S101 (these are tests, wherever they run)

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from hansard.errors import SessionExists, UnknownCursor, UnknownSession
from hansard.events import TYPES, Event, assistant_chunk, session_lifecycle, turn_end, turn_start, user_message
from hansard.events.originals import wrap
from hansard.projections import Projected, project, projection_for
from hansard.projections.output import written
from hansard.projections.text import without_frame
from hansard.store import Log, Store

PATIENCE = 30.0
"""Seconds that a follower has to hear of what was written."""


def check_projection(form: str, events: Sequence[Event]) -> bytes:
    """Every event is used or left out with a reason, and the same events give the same bytes. Gives the bytes."""
    projection = projection_for(form)
    assert projection.handled | projection.skipped.keys() == TYPES.keys(), "not every type is used or left"
    assert not projection.handled & projection.skipped.keys(), f"used and left: {sorted(projection.handled & projection.skipped.keys())}"
    assert all(projection.skipped.values()), "a type is left without a reason"
    made = project(events, form)
    data = _bytes(form, made)
    assert made.report.events == len(events), f"{made.report.events} of {len(events)} events are accounted for"
    assert 0 <= made.report.used <= len(events), f"{made.report.used} of {len(events)} events are used"
    assert _bytes(form, project(events, form)) == data, "the same events gave other bytes"
    if not projection.uses_frames:
        assert _bytes(form, project([without_frame(event) for event in events], form)) == data, "it does use frames"
    return data


def _bytes(form: str, pieces: Projected[Any]) -> bytes:
    return b"".join(written(pieces, projection_for(form).output))


def check_store(store: Store, session: str = "check-store") -> None:
    """Checks that a store keeps the promises of `hansard.Store` and `hansard.Log`, in a session that it creates and deletes."""
    log = store[session]
    made = store.create(session, title="A title")
    assert (made.session_id, made.seq) == (session, 1), f"the head of a new log is {made}"
    _raises(SessionExists, lambda: store.create(session))
    said = log.append(_talk())
    assert [event.seq for event in said] == list(range(2, len(said) + 2)), "seq does not go on"
    assert all(event.id and event.session_id == session for event in said), "an event without its id or its session"
    _check_reading(log, said)
    _check_listing(store, log)
    _check_beside(store, log)
    _check_search(store, log)
    asyncio.run(_check_following(log))
    log.release()
    assert not [found for found in log.verify() if found.is_damage], f"damage: {log.verify()}"
    store.delete(session)
    _raises(UnknownSession, lambda: log.head())


def _talk() -> list[Event]:
    chunk = assistant_chunk(text="half a \ud83d emoji, and \u2028")
    chunk.original = wrap(b'{"a":  1}')
    return [turn_start(trigger="user"), user_message(text="Hello"), chunk, turn_end(status="completed")]


def _check_reading(log: Log, said: list[Event]) -> None:
    head = log.head()
    everything = list(log.read())
    assert list(log) == everything, "iterating over a log is not reading it"
    assert [event.seq for event in everything] == list(range(1, head.seq + 1)), "what is read has gaps, or is not all"
    assert [event for event in everything if event.id in {one.id for one in said}] == said, "what is read is not what was written"
    assert list(log.read(2, 2)) == everything[2:4], "after and limit"
    assert list(log.read(before=3)) == everything[:2], "before"
    assert [event.type for event in log.read(types=["user_message"])] == ["user_message"], "types"
    assert list(log.read(head.cursor)) == [], "after the head there is something"
    assert log.tail(2) == everything[-2:], "tail"
    assert [event for block, _ in log.read_blocks(100) for event in block] == everything, "read_blocks"
    assert [record.seq for record in log.records()] == [event.seq for event in everything], "records"
    assert log.original(said[2]) == b'{"a":  1}', "an original did not come back"
    _raises(UnknownCursor, lambda: list(log.read(head.seq + 1)))


def _check_listing(store: Store, log: Log) -> None:
    log.append([session_lifecycle(subtype="renamed", title="Another title")])
    info = next((info for info in store.sessions() if info.id == log.session_id), None)
    assert info is not None, "a session is not in the list"
    assert (info.title, info.status) == ("Another title", "completed"), f"the list says {info}"


def _check_beside(store: Store, log: Log) -> None:
    assert log.get_blob(log.put_blob(b"\0bytes")) == b"\0bytes", "a blob did not come back"
    if store.notes is not None:
        store.notes.put(log.session_id, "note", b"1")
        store.notes.put(log.session_id, "note", b"2")
        assert store.notes.get(log.session_id, "note") in (b"2", None), "a note is an old one"


def _check_search(store: Store, log: Log) -> None:
    if store.search is not None:
        found = store.search.candidates(["hello"], ["user_message"]).sessions
        assert log.session_id in found, "search does not find a session"
        records = [record.seq for record in found[log.session_id]()]
        assert {event.seq for event in log.read(types=["user_message"]) if event.payload.text == "Hello"} <= set(records), (
            "search does not find a record"
        )


async def _check_following(log: Log) -> None:
    head = log.head()
    async with asyncio.timeout(PATIENCE), aclosing(log.follow(head.cursor)) as following:
        log.append([user_message(text="Later")])
        heard = await anext(following)
    assert heard.seq == head.seq + 1, f"a follower heard {heard.seq} after {head.seq}"


def _raises(kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was to be raised")
