"""Writes lines with a single statement, so that a batch is written completely or not at all. Its first part is the fence: a process that no
longer holds the session, or does not know where the log ends, writes nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, field
from psycopg import Connection, postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format

from hansard.events import Event, SessionLifecycle
from hansard.events.summary import Summary, is_checkpoint
from hansard.store.records import Damage
from hansard.store.search_text import SEARCHED_TYPES, search_text

# psycopg adapts any list, and asks each element for its type: half the cost of an append. These arrays are encoded here instead, in the
# binary format of https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c (array_recv).
_pack_int = struct.Struct("!iq").pack
_pack_length = struct.Struct("!i").pack
_NULL = _pack_length(-1)


class _Array:
    """The bytes of an array. What becomes a parameter is not copied again: a batch is half a megabyte."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.data = b"".join(parts)


class IntArray(_Array):
    """An ``int8[]``."""


class TextArray(_Array):
    """A ``text[]``."""


class BytesArray(_Array):
    """A ``bytea[]``."""


def int_array(values: Sequence[int]) -> IntArray:
    """Returns the values, none of which is None, as an array parameter."""
    return IntArray([_array_header("int8", len(values)), *[_pack_int(8, value) for value in values]])


def text_array(values: Sequence[str | None]) -> TextArray:
    """Returns the values as an array parameter. None of them may hold a NUL or half of a surrogate pair."""
    data = [None if value is None else value.encode() for value in values]
    has_null = None in data
    return TextArray(
        [_array_header("text", len(values), has_null), *[_NULL if one is None else _pack_length(len(one)) + one for one in data]]
    )


def bytes_array(values: Sequence[bytes]) -> BytesArray:
    """Returns the values, none of which is None, as an array parameter."""
    return BytesArray([_array_header("bytea", len(values)), *[part for value in values for part in (_pack_length(len(value)), value)]])


def _array_header(kind: str, length: int, has_null: bool = False) -> bytes:
    oid = postgres.types[kind].oid
    return struct.pack("!iiIii", 1, has_null, oid, length, 1) if length else struct.pack("!iiI", 0, 0, oid)


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return obj.data


class _IntDumper(_ArrayDumper):
    oid = postgres.types["int8"].array_oid


class _TextDumper(_ArrayDumper):
    oid = postgres.types["text"].array_oid


class _BytesDumper(_ArrayDumper):
    oid = postgres.types["bytea"].array_oid


def register_dumpers() -> None:
    """Make them known to psycopg, for all connections."""
    for kind, dumper in ((IntArray, _IntDumper), (TextArray, _TextDumper), (BytesArray, _BytesDumper)):
        postgres.adapters.register_dumper(kind, dumper)


register_dumpers()


_MAX_TIME = 2**63 - 1


class EventColumns(Struct):
    """The rows of records, column by column."""

    seqs: list[int] = field(default_factory=list[int])
    starts: list[int] = field(default_factory=list[int])
    times: list[int] = field(default_factory=list[int])
    types: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])
    lines: list[bytes] = field(default_factory=list[bytes])
    search_texts: list[str | None] = field(default_factory=list[str | None])


class DamagedLine(Struct, frozen=True, gc=False):
    """The row of a line that is no record."""

    after: int
    number: int
    start: int
    reason: Damage
    line: bytes


class LogEnd(Struct):
    """Where a log ends, and what is known of it there."""

    log_id: str = ""
    seq: int = 0
    bytes: int = 0
    damaged: int = 0
    trailing_damage: int = 0
    """The number of damaged lines after the last record."""
    checkpoint: int = 0
    """The seq of the last checkpoint."""
    last_id: str = ""
    summary: Summary = field(default_factory=Summary)

    def add(self, rows: EventColumns, events: list[Event], lines: list[bytes], seqs: list[int], types: list[str]) -> None:
        """Put the rows of events that come next to the others; ``lines`` are without their line ends."""
        if not events:
            return
        *starts, end = accumulate([len(line) + 1 for line in lines], initial=self.bytes)
        rows.seqs += seqs
        rows.starts += starts
        rows.times += _clamp_times([event.timestamp for event in events])
        rows.types += _clean_all(types)
        rows.ids += _clean_all([event.id for event in events])
        rows.lines += lines
        rows.search_texts += [
            clean(search_text(event).lower()) if kind in SEARCHED_TYPES else None for event, kind in zip(events, types, strict=True)
        ]
        self.summary.apply_all(events)
        if SessionLifecycle in set(map(type, events)):
            self.log_id = clean(self.summary.log_id)
            lifecycle = [event for event in events if isinstance(event, SessionLifecycle)]
            self.checkpoint = next((event.seq for event in reversed(lifecycle) if is_checkpoint(event)), self.checkpoint)
        self.last_id = events[-1].id
        self.seq, self.bytes, self.trailing_damage = seqs[-1], end, 0

    def add_damaged(self, line: bytes, reason: Damage) -> DamagedLine:
        """The row of a damaged line that comes next."""
        self.trailing_damage += 1
        self.damaged += 1
        row = DamagedLine(self.seq, self.trailing_damage, self.bytes, reason, line)
        self.bytes += len(line) + 1
        return row


class Rows(Struct):
    """Lines on their way into the log: where it ended before, where it ends then, and what stands between."""

    before: LogEnd
    end: LogEnd
    lines: EventColumns = field(default_factory=EventColumns)
    usage: str | None = None
    """What the session has used by then; None: as before."""
    damaged: list[DamagedLine] = field(default_factory=list[DamagedLine])


_UPDATE_SESSION = """
WITH fence AS (
    UPDATE session SET
        log_id = %(log_id)s, seq = %(seq)s, bytes = %(bytes)s, damaged = %(damaged)s, title = %(title)s, agent = %(agent)s,
        format = %(format)s, parent_session_id = %(parent)s, archived = %(archived)s, created = %(created)s,
        updated = coalesce(%(said)s, %(now)s), status = %(status)s, state = %(state)b, usage = coalesce(%(usage)s::jsonb, usage),
        changed = date_trunc('second', clock_timestamp())
    WHERE id = %(session)s AND holder = %(holder)s AND epoch = %(epoch)s AND log_id = %(was)s AND bytes = %(from)s
    RETURNING 1
)"""
_INSERT_SESSION = """
WITH fence AS (
    INSERT INTO session (id, holder, epoch, copying, log_id, seq, bytes, damaged, title, agent, format, parent_session_id, archived,
                         created, updated, status, state, usage)
    VALUES (%(session)s, %(holder)s, %(epoch)s, %(copying)s, %(log_id)s, %(seq)s, %(bytes)s, %(damaged)s, %(title)s, %(agent)s,
            %(format)s, %(parent)s, %(archived)s, %(created)s, coalesce(%(said)s, %(now)s), %(status)s, %(state)b,
            %(usage)s::jsonb)
    ON CONFLICT (id) DO NOTHING
    RETURNING 1
)"""
# Behind SELECT the arrays go row by row into the table; behind FROM each would be stored once more first.
_INSERT_EVENTS = """, written AS (
    INSERT INTO event (session_id, seq, start, time, type, id, line, said)
    SELECT %(session)s, unnest(%(seqs)b::int8[]), unnest(%(starts)b::int8[]), unnest(%(times)b::int8[]), unnest(%(types)b::text[]),
           unnest(%(ids)b::text[]), unnest(%(lines)b::bytea[]), unnest(%(words)b::text[]) FROM fence
)"""
_INSERT_DAMAGED = """, kept AS (
    INSERT INTO damaged (session_id, after, number, start, reason, line)
    SELECT %(session)s, one.* FROM fence,
           unnest(%(afters)b::int8[], %(numbers)b::int8[], %(places)b::int8[], %(reasons)b::text[], %(scraps)b::bytea[]) AS one
)"""
_COUNT = " SELECT count(*) FROM fence"


def write(
    connection: Connection[Any], session_id: str, rows: Rows, holder: UUID, epoch: int, now: int, *, new: bool, copying: bool = False
) -> bool:
    """Write them, if the log still ends where we think and is still ours to write. False: nothing was written."""
    end, summary = rows.end, rows.end.summary
    values: dict[str, Any] = {
        "session": session_id,
        "holder": holder,
        "epoch": epoch,
        "copying": copying,
        "was": rows.before.log_id,
        "from": rows.before.bytes,
        "log_id": end.log_id,
        "seq": end.seq,
        "bytes": end.bytes,
        "damaged": end.damaged,
        "title": clean(summary.title),
        "agent": clean(summary.agent),
        "format": clean(summary.format),
        "parent": clean(summary.parent_session_id),
        "archived": summary.archived,
        "created": summary.created,
        "said": summary.updated,
        "now": now,
        "status": clean(summary.status),
        "state": encode_state(end),
        "usage": rows.usage,
    }
    text = _INSERT_SESSION if new else _UPDATE_SESSION
    if rows.lines.seqs:
        text += _INSERT_EVENTS
        values |= {
            "seqs": int_array(rows.lines.seqs),
            "starts": int_array(rows.lines.starts),
            "times": int_array(rows.lines.times),
            "types": text_array(rows.lines.types),
            "ids": text_array(rows.lines.ids),
            "lines": bytes_array(rows.lines.lines),
            "words": text_array(rows.lines.search_texts),
        }
    if rows.damaged:
        text += _INSERT_DAMAGED
        values |= {
            "afters": int_array([line.after for line in rows.damaged]),
            "numbers": int_array([line.number for line in rows.damaged]),
            "places": int_array([line.start for line in rows.damaged]),
            "reasons": text_array([line.reason for line in rows.damaged]),
            "scraps": bytes_array([line.line for line in rows.damaged]),
        }
    found = connection.execute(text + _COUNT, values).fetchone()
    return found is not None and found[0] == 1


def encode_state(end: LogEnd) -> bytes:
    """Returns the summary and the writer's own two values as the row keeps them: one JSON object."""
    kept = msgspec.to_builtins(end.summary) | {"checkpoint": end.checkpoint, "last_id": end.last_id}
    return json.dumps(kept).encode()  # this encoder takes half an emoji


def decode_state(data: bytes) -> tuple[int, str, Summary]:
    """Returns the checkpoint, the last id and the summary that a row keeps. Version 0.1 left out what was 0 or empty."""
    kept = json.loads(data)
    if parent := kept.get("parent_session_id"):  # as version 0.1 wrote it
        kept.setdefault("lineage", {"kind": "fork", "session_id": parent})
    return kept.get("checkpoint", 0), kept.get("last_id", ""), msgspec.convert(kept, Summary)


def _clamp_times(times: list[int]) -> list[int]:
    """As a column can hold them."""
    if min(times) >= -1 and max(times) <= _MAX_TIME:
        return times
    return [max(-1, min(time, _MAX_TIME)) for time in times]


def _clean_all(texts: list[str]) -> list[str]:
    """The same as `clean` of each, which is nearly always nothing."""
    together = "".join(texts)
    return texts if together.isascii() and "\0" not in together else [clean(text) for text in texts]


def clean(text: str | None) -> Any:
    """What a column of the database can hold: no NUL, no half of a surrogate pair. The line itself has what was really said."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
