"""Writing lines: one statement, so that it is all or nothing and nobody can stop in the middle of it, and the fence is its first part.

Whoever is not the holder of the session any more, or does not know its end, writes nothing.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct, field
from psycopg import Connection

from hansard.events import Event, SessionLifecycle
from hansard.store.interface import Damage
from hansard.store.postgres import arrays
from hansard.store.said import SAID, said
from hansard.store.summary import Summary

_LATEST = 2**63 - 1


class Lines(Struct):
    """The rows of records, column by column."""

    seqs: list[int] = field(default_factory=list[int])
    starts: list[int] = field(default_factory=list[int])
    times: list[int] = field(default_factory=list[int])
    types: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])
    lines: list[bytes] = field(default_factory=list[bytes])
    said: list[str | None] = field(default_factory=list[str | None])
    """What is looked for when somebody searches."""


class Scrap(Struct, frozen=True, gc=False):
    """The row of a line that is no record."""

    after: int
    number: int
    start: int
    reason: Damage
    line: bytes


class End(Struct):
    """Where a log ends, and what is known of it there."""

    log_id: str = ""
    seq: int = 0
    bytes: int = 0
    damaged: int = 0
    behind: int = 0
    """So many damaged lines stand behind the last record."""
    summary: Summary = field(default_factory=Summary)

    def add(self, rows: Lines, events: list[Event], lines: list[bytes], seqs: list[int], types: list[str]) -> None:
        """Put the rows of events that come next to the others; ``lines`` are without their line ends."""
        if not events:
            return
        *starts, end = accumulate([len(line) + 1 for line in lines], initial=self.bytes)
        rows.seqs += seqs
        rows.starts += starts
        rows.times += _times([event.timestamp for event in events])
        rows.types += _clean(types)
        rows.ids += _clean([event.id for event in events])
        rows.lines += lines
        rows.said += [clean(said(event).lower()) if kind in SAID else None for event, kind in zip(events, types, strict=True)]
        self.summary.saw_all(events)
        if SessionLifecycle in set(map(type, events)):
            self.log_id = clean(self.summary.log_id)
        self.seq, self.bytes, self.behind = seqs[-1], end, 0

    def add_damaged(self, line: bytes, reason: Damage) -> Scrap:
        """The row of a damaged line that comes next."""
        self.behind += 1
        self.damaged += 1
        row = Scrap(self.seq, self.behind, self.bytes, reason, line)
        self.bytes += len(line) + 1
        return row


class Rows(Struct):
    """Lines on their way into the log: where it ended before, where it ends then, and what stands between."""

    before: End
    end: End
    lines: Lines = field(default_factory=Lines)
    usage: str | None = None
    """What the session has used by then; None: as before."""
    scraps: list[Scrap] = field(default_factory=list[Scrap])


_GO_ON = """
WITH fence AS (
    UPDATE session SET
        log_id = %(log_id)s, seq = %(seq)s, bytes = %(bytes)s, damaged = %(damaged)s, title = %(title)s, agent = %(agent)s,
        format = %(format)s, parent_session_id = %(parent)s, archived = %(archived)s, created = %(created)s,
        updated = coalesce(%(said)s, %(now)s), status = %(status)s, state = %(state)b, usage = coalesce(%(usage)s::jsonb, usage)
    WHERE id = %(session)s AND holder = %(holder)s AND epoch = %(epoch)s AND log_id = %(was)s AND bytes = %(from)s
    RETURNING 1
)"""
_BEGIN = """
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
_LINES = """, written AS (
    INSERT INTO event (session_id, seq, start, time, type, id, line, said)
    SELECT %(session)s, unnest(%(seqs)b::int8[]), unnest(%(starts)b::int8[]), unnest(%(times)b::int8[]), unnest(%(types)b::text[]),
           unnest(%(ids)b::text[]), unnest(%(lines)b::bytea[]), unnest(%(words)b::text[]) FROM fence
)"""
_SCRAPS = """, kept AS (
    INSERT INTO damaged (session_id, after, number, start, reason, line)
    SELECT %(session)s, one.* FROM fence,
           unnest(%(afters)b::int8[], %(numbers)b::int8[], %(places)b::int8[], %(reasons)b::text[], %(scraps)b::bytea[]) AS one
)"""
_ANSWER = " SELECT count(*) FROM fence"


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
        "said": summary.said,
        "now": now,
        "status": clean(summary.status),
        "state": state_of(summary),
        "usage": rows.usage,
    }
    text = _BEGIN if new else _GO_ON
    if rows.lines.seqs:
        text += _LINES
        values |= {
            "seqs": arrays.numbers(rows.lines.seqs),
            "starts": arrays.numbers(rows.lines.starts),
            "times": arrays.numbers(rows.lines.times),
            "types": arrays.texts(rows.lines.types),
            "ids": arrays.texts(rows.lines.ids),
            "lines": arrays.lines(rows.lines.lines),
            "words": arrays.texts(rows.lines.said),
        }
    if rows.scraps:
        text += _SCRAPS
        values |= {
            "afters": arrays.numbers([scrap.after for scrap in rows.scraps]),
            "numbers": arrays.numbers([scrap.number for scrap in rows.scraps]),
            "places": arrays.numbers([scrap.start for scrap in rows.scraps]),
            "reasons": arrays.texts([scrap.reason for scrap in rows.scraps]),
            "scraps": arrays.lines([scrap.line for scrap in rows.scraps]),
        }
    found = connection.execute(text + _ANSWER, values).fetchone()
    return found is not None and found[0] == 1


def state_of(summary: Summary) -> bytes:
    """The summary for the row."""
    return json.dumps(msgspec.to_builtins(summary)).encode()  # this parser takes half an emoji


def summary_of(state: bytes) -> Summary:
    """The summary from the row."""
    return msgspec.convert(json.loads(state), Summary)


def _times(times: list[int]) -> list[int]:
    """As a column can hold them."""
    if min(times) >= -1 and max(times) <= _LATEST:
        return times
    return [max(-1, min(time, _LATEST)) for time in times]


def _clean(texts: list[str]) -> list[str]:
    """The same as `clean` of each, which is nearly always nothing."""
    together = "".join(texts)
    return texts if together.isascii() and "\0" not in together else [clean(text) for text in texts]


def clean(text: str | None) -> Any:
    """What a column of the database can hold: no NUL, no half of a surrogate pair. The line itself has what was really said."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
