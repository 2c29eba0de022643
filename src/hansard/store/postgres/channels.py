"""The channels on which followers are woken: a few, by the session's id, so that nobody hears of everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID
from zlib import crc32

BUCKETS = 64
_LONGEST = 7_000  # a notification holds less than 8,000 bytes


def channel(schema: str, session_id: str) -> str:
    """Where news of a session are told."""
    return f"{schema}_{crc32(session_id.encode()) % BUCKETS}"


def door(schema: str, writer: UUID) -> str:
    """Where a process is told that there is something for it."""
    return f"{schema}_{writer.hex[:16]}"


def by_channel(schema: str, sessions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What to say on which channel: ids with a blank between them."""
    words: dict[str, list[str]] = {}
    for session_id in sorted(sessions):
        words.setdefault(channel(schema, session_id), []).append(session_id)
    for name, ids in words.items():
        at_once = _LONGEST // 65
        for begin in range(0, len(ids), at_once):
            yield name, " ".join(ids[begin : begin + at_once])
