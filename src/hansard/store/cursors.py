"""Whether a cursor belongs to a log: an unknown one is an error, and never everything again."""

from __future__ import annotations

from hansard.errors import UnknownCursor
from hansard.store.interface import Cursor, Head


def seq_of(head: Head, cursor: object) -> int:
    """The seq of a cursor that belongs to this log; `UnknownCursor` for any other."""
    if isinstance(cursor, Cursor) and (cursor.log_id != head.log_id or not head.log_id):
        raise UnknownCursor(f"{cursor} belongs to another log; this one is {head.log_id!r}")
    seq: object = cursor.seq if isinstance(cursor, Cursor) else cursor
    if type(seq) is not int or seq < 0:
        raise UnknownCursor(f"not a cursor: {cursor!r}; it must be a seq of this log, 0 for its beginning")
    if seq > head.seq:
        raise UnknownCursor(f"cursor {seq} is above the head of the log, which is {head.seq}")
    return seq
